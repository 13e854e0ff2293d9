// SPDX-License-Identifier: Apache-2.0
// The decoder against PyTorch's numbers in golden/gpt.json, made by golden/make_gpt.py.
#include "models/gpt.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "accrue/microstep/losses.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace accrue::models {
namespace {

using Sequences = std::vector<std::vector<int64_t>>;
using Aliases = std::vector<std::string>;

const nlohmann::json& gpt_golden() {
  static const auto file = nlohmann::json::parse(std::ifstream(ACCRUE_SOURCE_DIR "/tests/golden/gpt.json"));
  return file;
}

GptOptions golden_options(double dropout = 0) {
  const auto& sizes = gpt_golden()["sizes"];
  return {.width = sizes["width"],
          .layers = sizes["layers"],
          .heads = sizes["heads"],
          .vocabulary = sizes["vocabulary"],
          .context = sizes["context"],
          .dropout = dropout};
}

/// With the parameters of make_gpt.py's `start`.
Model golden_model(at::ScalarType dtype, double dropout = 0) {
  Model model = make_gpt(golden_options(dropout), {.dtype = dtype});
  const c10::NoGradGuard no_grad;
  int64_t p = 0;
  for (const NamedTensor& parameter : model.parameters()) {
    const bool is_scale =
        parameter.name.find(".ln_") != std::string::npos && parameter.name.ends_with("weight");
    const at::Tensor index = at::arange(parameter.tensor.numel()) * 7 + 5 * p++;
    const at::Tensor values = (index.remainder(23) - 11).to(at::kDouble) / 32 + (is_scale ? 1 : 0);
    parameter.tensor.copy_(values.view(parameter.tensor.sizes()));
  }
  return model;
}

/// The sequences end to end.
Batch packed(const Sequences& sequences, std::vector<int64_t> ids = {}) {
  std::vector<int64_t> tokens;
  std::vector<int64_t> offsets = {0};
  for (const auto& sequence : sequences) {
    tokens.insert(tokens.end(), sequence.begin(), sequence.end());
    offsets.push_back(static_cast<int64_t>(tokens.size()));
  }
  const at::Tensor input_ids = at::tensor(tokens, at::kLong);
  return Batch({{"input_ids", input_ids}, {"labels", input_ids}, {"offsets", at::tensor(offsets, at::kLong)}},
               std::move(ids));
}

Batch golden_batch() {
  return packed(gpt_golden()["sequences"].get<Sequences>(), {100, 7, 33, 4});
}

at::Tensor golden_logits() {
  std::vector<at::Tensor> rows;
  for (const auto& values : gpt_golden()["logits"]) {
    rows.push_back(at::tensor(values.get<std::vector<double>>(), at::kDouble).view({-1, 11}));
  }
  return at::cat(rows);
}

/// Gradient sums of the window over parts of these sizes, by parameter.
std::vector<at::Tensor> gradient_sums(const Model& model, const Batch& batch,
                                      const std::vector<int64_t>& sizes) {
  GradientBuffer gradients(model);
  Window window(gradients, model);
  for (const MicroBatch& micro : test::parts(batch, sizes)) {
    test::add(window, model, next_token_loss(), micro);
  }
  window.close();
  std::vector<at::Tensor> views;
  for (const GradientBuffer::Entry& entry : gradients.entries()) views.push_back(entry.view.clone());
  return views;
}

TEST(MakeGpt, HasTransformersNamesAndShapes) {
  const Model model = make_gpt(golden_options());
  const auto& wanted = gpt_golden()["parameters"];
  const std::vector<NamedTensor> parameters = model.parameters();
  ASSERT_EQ(parameters.size(), wanted.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(parameters[i].name, wanted[i][0].get<std::string>());
    EXPECT_EQ(parameters[i].tensor.sizes(), wanted[i][1].get<std::vector<int64_t>>()) << parameters[i].name;
    const Aliases aliases = i == 0 ? Aliases{"lm_head.weight"} : Aliases{};
    EXPECT_EQ(parameters[i].aliases, aliases) << parameters[i].name;
  }
  EXPECT_EQ(model.name, "gpt");
  EXPECT_TRUE(model.takes_offsets);
}

TEST(MakeGpt, InitialValuesDependOnTheSeedAlone) {
  const GptOptions options = {.width = 64, .layers = 8, .heads = 4, .vocabulary = 512, .context = 64};
  const std::vector<NamedTensor> parameters = make_gpt(options, {.seed = 5}).parameters();
  const std::vector<NamedTensor> same = make_gpt(options, {.seed = 5}).parameters();
  const std::vector<NamedTensor> other = make_gpt(options, {.seed = 6}).parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, tensor, aliases] = parameters[i];
    EXPECT_TRUE(tensor.equal(same[i].tensor)) << name;
    if (name.ends_with("bias")) {
      EXPECT_TRUE(tensor.equal(at::zeros_like(tensor))) << name;
    } else if (name.find(".ln_") != std::string::npos) {
      EXPECT_TRUE(tensor.equal(at::ones_like(tensor))) << name;
    } else {
      EXPECT_FALSE(tensor.equal(other[i].tensor)) << name;
      // The deviation of n normal draws is itself uncertain by 1 / sqrt(2 n); five times that.
      const double deviation = name.find("c_proj") == std::string::npos ? 0.02 : 0.02 / 4;
      const double share = 5 / std::sqrt(2.0 * static_cast<double>(tensor.numel()));
      EXPECT_NEAR(tensor.std().item<double>(), deviation, deviation * share) << name;
    }
  }
}

TEST(MakeGpt, LogitsAreThoseOfPyTorch) {
  // The golden parameters are exact in bf16, which is storage only: its bound is that of fp32, some hundred
  // roundings of 6e-8 of numbers up to 4.
  for (const auto& [dtype, tolerance] : std::vector<std::pair<at::ScalarType, double>>{
           {at::kDouble, 1e-13}, {at::kFloat, 2e-5}, {at::kBFloat16, 2e-5}}) {
    const at::Tensor logits = golden_model(dtype).forward(golden_batch()).tensor();
    EXPECT_EQ(logits.scalar_type(), dtype == at::kDouble ? at::kDouble : at::kFloat);
    EXPECT_TRUE(test::close(logits, golden_logits(), tolerance)) << toString(dtype);
  }
}

// PyTorch's gradient of the tied tensor is the sum of both uses.
TEST(MakeGpt, GradientsAreThoseOfPyTorchTiedOnesToo) {
  const Model model = golden_model(at::kDouble);
  const std::vector<at::Tensor> got = gradient_sums(model, golden_batch(), {4});
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string name = model.parameters()[i].name;
    const at::Tensor expected =
        at::tensor(gpt_golden()["gradients"][name].get<std::vector<double>>(), at::kDouble);
    EXPECT_TRUE(test::close(got[i].reshape({-1}), expected, 1e-11)) << name;
  }
}

TEST(MakeGpt, AnySplitHasTheGradientsOfTheWholeBatch) {
  for (const double dropout : {0.0, 0.3}) {
    const Model model = golden_model(at::kDouble, dropout);
    const at::Tensor whole = test::joined(gradient_sums(model, golden_batch(), {4}));
    for (const auto& sizes : Sequences{{1, 1, 1, 1}, {2, 2}, {3, 1}, {1, 3}}) {
      const at::Tensor split = test::joined(gradient_sums(model, golden_batch(), sizes));
      EXPECT_LT(test::relative_distance(split, whole), 1e-13) << dropout;
    }
  }
}

// The last block and norm are computed where the loss asks for logits alone; the reference takes them whole.
TEST(MakeGpt, ALossOfFewTokensHasTheGradientsOfAllLogits) {
  Batch batch = golden_batch();
  at::Tensor labels = batch["input_ids"].clone();
  labels.masked_fill_(at::arange(labels.numel()).remainder(3).ne(0), -100);
  batch = Batch({{"input_ids", batch["input_ids"]}, {"labels", labels}, {"offsets", batch["offsets"]}},
                {4, 2, 8, 6});
  Loss whole = next_token_loss();
  whole.terms = [](const Outputs& outputs, const MicroBatch& micro) {
    return loss::segment_cross_entropy(outputs.tensor(), micro["labels"], micro.offsets());
  };
  for (const double dropout : {0.0, 0.3}) {
    const Model model = golden_model(at::kDouble, dropout);
    const auto sums = [&](const Loss& loss) {
      GradientBuffer gradients(model);
      Window window(gradients, model);
      test::add(window, model, loss, batch);
      window.close();
      return gradients.flats()[0].clone();
    };
    const at::Tensor expected = sums(whole);
    EXPECT_GT(expected.abs().max().item<double>(), 0.01);
    EXPECT_LT(test::relative_distance(sums(next_token_loss()), expected), 1e-13) << dropout;
    model.recompute(std::vector<bool>(model.segments().size(), true));
    EXPECT_LT(test::relative_distance(sums(next_token_loss()), expected), 1e-13) << dropout;
  }
}

TEST(MakeGpt, RectanglesAreSequencesOfOneLength) {
  const Sequences rows = {{3, 1, 4}, {1, 5, 9}};
  const Batch rectangle({{"input_ids", at::tensor({3, 1, 4, 1, 5, 9}, at::kInt).view({2, 3})}}, {8, 2});
  for (const double dropout : {0.0, 0.3}) {
    const Model model = golden_model(at::kDouble, dropout);
    const auto logits = [&](const Batch& batch) {
      const MicroStepContext context = {.sample_ids = batch.ids(), .offsets = batch.offsets()};
      const ContextScope scope(context);
      return model.forward(batch).tensor();
    };
    EXPECT_TRUE(test::close(logits(rectangle), logits(packed(rows, {8, 2})).view({2, 3, 11}), 1e-14));
  }
}

TEST(MakeGpt, DropoutIsForTrainingOnlyAndEachPlaceHasItsOwn) {
  const Model model = golden_model(at::kDouble, 0.3);
  const Batch batch = golden_batch();
  const MicroStepContext context = {.seed = 1, .sample_ids = batch.ids(), .offsets = batch.offsets()};
  const auto logits = [&](bool training) {
    const ContextScope scope(context);
    model.train(training);
    return model.forward(batch).tensor();
  };
  EXPECT_TRUE(test::close(logits(false), golden_logits(), 1e-13));
  EXPECT_FALSE(test::close(logits(true), golden_logits(), 0.1));
  EXPECT_TRUE(logits(true).equal(logits(true)));
  // Another forward of the same micro-step draws other numbers.
  const ContextScope scope(context);
  const at::Tensor first = model.forward(batch).tensor();
  EXPECT_FALSE(model.forward(batch).tensor().equal(first));
}

TEST(MakeGpt, Float64ValuesMayStandInTheParametersPlace) {
  const Model model = golden_model(at::kFloat);
  for (const NamedTensor& parameter : model.parameters()) {
    parameter.tensor.set_data(parameter.tensor.variable_data().to(at::kDouble));
  }
  EXPECT_TRUE(test::close(model.forward(golden_batch()).tensor(), golden_logits(), 1e-13));
}

TEST(MakeGpt, DataThatDoNotFitAreNamedByTheirSample) {
  const Model model = golden_model(at::kFloat);
  EXPECT_ERROR(
      model.forward(packed({{1}, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}, {5, 70, 6})),
      DataError,
      "sample 70 has 8 tokens, and the model has 7 positions; cut the data with "
      "data.max_length, or take a larger model.context\nsample 6 has 9 tokens, and the model has 7 "
      "positions; cut the data with data.max_length, or take a larger model.context");
  EXPECT_ERROR(
      model.forward(packed({{1, 10}, {1, 2, 11}}, {5, 70})), DataError,
      "sample 70, token 2: id 11 is outside the vocabulary, needed ids in [0, 11); check the tokenizer "
      "or model.vocabulary");
  EXPECT_THROW(model.forward(packed({{-1}})), DataError);
  EXPECT_ERROR(
      model.forward(Batch({{"input_ids", at::zeros({2, 3})}})), ModelError,
      "input_ids have shape [2, 3] and type Float, needed integers: [tokens] beside offsets, or [n, T]");
  EXPECT_THROW(model.forward(Batch({{"input_ids", at::zeros({2}, at::kLong)}})), ModelError);
}

TEST(MakeGpt, AMaskMayOnlyHideTheEndOfARow) {
  const Model model = golden_model(at::kDouble);
  const at::Tensor ids = at::tensor({3, 1, 4, 1, 5, 9}, at::kLong).view({2, 3});
  const auto forward = [&](std::vector<int64_t> mask, at::ScalarType type = at::kLong) {
    const at::Tensor shown = at::tensor(mask, at::kLong).view({2, -1}).to(type);
    return model.forward(Batch({{"input_ids", ids}, {"attention_mask", shown}}, {8, 70})).tensor();
  };
  const std::string text =
      ": attention_mask shows it after a token that it hides, and this model attends to all that comes "
      "before; pad on the right, or give the sequences end to end with offsets and leave masked tokens out";
  EXPECT_ERROR(forward({1, 1, 1, 0, 1, 1}), DataError, "sample 70, token 1" + text);
  EXPECT_ERROR(forward({1, 0, 1, 0, 1, 1}), DataError, "sample 8, token 2" + text);
  EXPECT_ERROR(forward({0, 0, 1, 1, 1, 1}, at::kBool), DataError, "sample 8, token 2" + text);
  EXPECT_ERROR(forward({1, 1, 1, 1}), ModelError,
               "attention_mask has shape [2, 2], needed that of input_ids, [2, 3]");
  const at::Tensor real = forward({1, 1, 0, 1, 1, 1});
  EXPECT_TRUE(real.equal(forward({1, 1, 1, 1, 1, 1})));
  EXPECT_TRUE(test::close(real[0].narrow(0, 0, 2), model.forward(packed({{3, 1}})).tensor(), 1e-14));
}

TEST(MakeGpt, SizesThatCannotBeAreRefused) {
  EXPECT_ERROR(make_gpt({.layers = 0}), ModelError, "model: layers is 0, needed at least 1");
  EXPECT_THROW(make_gpt({.vocabulary = 0}), ModelError);
  EXPECT_THROW(make_gpt({.heads = -1}), ModelError);
  EXPECT_ERROR(make_gpt({.width = 10, .heads = 4}), ModelError,
               "model: a width of 10 cannot be divided among 4 heads; choose heads that divide the width");
  EXPECT_ERROR(make_gpt({.dropout = 1}), ModelError, "model: dropout is 1, needed at least 0 and below 1");
  EXPECT_THROW(make_gpt({.width = int64_t{1} << 40, .heads = 1}), BudgetError);
  EXPECT_THROW(make_gpt({.layers = int64_t{1} << 60}), BudgetError);
}

TEST(MakeModel, AGptTakesTokensAlone) {
  config::ModelOptions options;
  options.kind = config::ModelKind::gpt;
  options.vocabulary = 11;
  options.width = 8;
  options.heads = 2;
  options.layers = 1;
  EXPECT_EQ(make_model(options, Shapes{}).forward(packed({{1, 2}})).tensor().sizes(),
            (std::vector<int64_t>{2, 11}));
  EXPECT_ERROR(
      make_model(options, Shapes{.inputs = 4}), ConfigError,
      "model.kind: gpt takes tokens (input_ids), got 4 numbers a sample; give text or token data, or "
      "take another model.kind");
  EXPECT_THROW(make_model(options, Shapes{.image = {3, 8, 8}}), ConfigError);
}

}  // namespace
}  // namespace accrue::models
