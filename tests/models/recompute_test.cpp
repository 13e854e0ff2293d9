// SPDX-License-Identifier: Apache-2.0
// Models whose parts run again in backward make the updates of the plain ones.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "accrue/memory/live_bytes.h"
#include "accrue/microstep/batch_norm.h"
#include "accrue/microstep/losses.h"
#include "accrue/train/split_step.h"
#include "models/cnn.h"
#include "models/gpt.h"
#include "models/mlp.h"
#include "models/resnet.h"
#include "tests/support/models.h"

namespace accrue::models {
namespace {
namespace recompute_test {

using testing::ElementsAre;

std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> names;
  for (const SegmentInfo& segment : model.segments()) names.push_back(segment.name);
  return names;
}

enum class Which { none, first, odd, all };

std::vector<bool> marks_of(const Model& model, Which which) {
  std::vector<bool> marks;
  for (size_t i = 0; i < model.segments().size(); ++i) {
    marks.push_back(which == Which::all || (which == Which::odd && i % 2 == 1) ||
                    (which == Which::first && i == 0));
  }
  return marks;
}

/// Parameters and running statistics after two updates of the batch in micro-batches of 2.
std::vector<at::Tensor> trained(const Model& model, const Loss& loss, const Batch& batch, Which which) {
  model.recompute(marks_of(model, which));
  GradientBuffer gradients(model);
  Updater updater(gradients, Sgd{.lr = 0.1, .momentum = 0.9});
  // Without marks a chain would run without a graph, which rounds otherwise.
  SplitStep step(model, loss, updater, {.micro_batch = 2, .seed = 3, .compiled = false});
  step(batch);
  step(batch);
  std::vector<at::Tensor> result;
  for (const NamedTensor& parameter : model.parameters()) result.push_back(parameter.tensor.detach());
  for (const NamedTensor& buffer : model.buffers()) result.push_back(buffer.tensor);
  return result;
}

/// `make` gives the same model each time.
template <class Make>
void expect_the_plain_updates(const Make& make, const Loss& loss, const Batch& batch) {
  const std::vector<at::Tensor> plain = trained(make(), loss, batch, Which::none);
  for (const Which which : {Which::first, Which::odd, Which::all}) {
    const std::vector<at::Tensor> got = trained(make(), loss, batch, which);
    ASSERT_EQ(got.size(), plain.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(got[i].isfinite().all().item<bool>());
      EXPECT_TRUE(test::same_bits(got[i], plain[i])) << i << " of marks " << static_cast<int>(which);
    }
  }
}

Model small_gpt(double dropout) {
  return make_gpt({.width = 16, .layers = 3, .heads = 2, .vocabulary = 11, .context = 8, .dropout = dropout});
}

/// Five sequences of 2 to 6 tokens.
Batch token_batch() {
  const at::Tensor ids = at::arange(20).mul(7).remainder(11);
  return Batch(
      {{"input_ids", ids}, {"labels", ids}, {"offsets", at::tensor({0, 6, 9, 11, 15, 20}, at::kLong)}},
      {9, 4, 4, 2, 30});
}

TEST(RecomputedModels, GptMakesThePlainUpdates) {
  for (const double dropout : {0.0, 0.2}) {
    expect_the_plain_updates([&] { return small_gpt(dropout); }, next_token_loss(), token_batch());
  }
}

Batch image_batch(int64_t channels = 3) {
  const at::Tensor pixels = at::arange(6 * channels * 64, at::kFloat).mul(0.7).sin();
  return Batch({{"x", pixels.view({6, channels, 8, 8})}, {"y", at::tensor({0, 3, 1, 4, 2, 0}, at::kLong)}});
}

TEST(RecomputedModels, ResnetMakesThePlainUpdates) {
  for (const config::Norm norm : {config::Norm::group, config::Norm::batch}) {
    const auto make = [&] { return make_resnet({.image = {3, 8, 8}, .outputs = 5, .norm = norm}); };
    expect_the_plain_updates(make, cross_entropy_loss(), image_batch());
  }
}

TEST(RecomputedModels, AFrozenBatchNormKeepsItsSegments) {
  const auto make = [] {
    return freeze_batch_norm(make_resnet({.image = {3, 8, 8}, .outputs = 5, .norm = config::Norm::batch}));
  };
  EXPECT_EQ(make().segments().size(), 8U);
  expect_the_plain_updates(make, cross_entropy_loss(), image_batch());
}

TEST(RecomputedModels, CnnAndMlpMakeThePlainUpdates) {
  const auto cnn = [] {
    return make_cnn({.image = {1, 8, 8}, .outputs = 5, .channels = {4, 6}, .hidden = {7}});
  };
  expect_the_plain_updates(cnn, cross_entropy_loss(), image_batch(1));
  const auto mlp = [] { return make_mlp({.inputs = 64, .outputs = 5, .hidden = {8, 6}}); };
  expect_the_plain_updates(mlp, cross_entropy_loss(), image_batch(1));
}

TEST(RecomputedModels, NameTheirSegments) {
  EXPECT_THAT(names_of(small_gpt(0)), ElementsAre("transformer.h.0", "transformer.h.1", "transformer.h.2"));
  EXPECT_THAT(names_of(make_resnet({.image = {3, 8, 8}})),
              ElementsAre("layer1.0", "layer1.1", "layer2.0", "layer2.1", "layer3.0", "layer3.1", "layer4.0",
                          "layer4.1"));
  EXPECT_THAT(names_of(make_cnn({})), ElementsAre("0", "3"));
  EXPECT_THAT(names_of(make_mlp({.hidden = {8, 6}})), ElementsAre("0", "2"));
  EXPECT_THAT(names_of(make_mlp({.hidden = {}})), ElementsAre());
}

TEST(RecomputedModels, GptsPeakFalls) {
  const auto peak = [](Which which) {
    const Model model = make_gpt({.width = 32, .layers = 6, .heads = 2, .vocabulary = 16, .context = 64});
    model.recompute(marks_of(model, which));
    GradientBuffer gradients(model);
    const at::Tensor ids = at::zeros({16, 64}, at::kLong);
    const Batch batch({{"input_ids", ids}, {"labels", ids}});
    const memory::PeakBytes bytes;
    Window window(gradients, model);
    test::add(window, model, next_token_loss(), batch);
    return static_cast<double>(bytes.peak_bytes());
  };
  // Of a block's 34 numbers of `width` a token (Korthikanti et al. 2022) its input stays, 1/17 to 1/12; one
  // block of six is there in full while it runs again.
  EXPECT_LT(peak(Which::all), 0.5 * peak(Which::none));
  EXPECT_LT(peak(Which::odd), 0.8 * peak(Which::none));
}

}  // namespace recompute_test
}  // namespace
}  // namespace accrue::models
