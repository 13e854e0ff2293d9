// SPDX-License-Identifier: Apache-2.0
#include "models/resnet.h"

#include <gmock/gmock.h>

#include "accrue/data/tensor_file.h"
#include "accrue/microstep/batch_norm.h"
#include "tests/models/image_golden.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/warnings.h"

namespace accrue::models {
namespace {

using config::Norm;
using config::Stem;

const std::vector<int64_t> kTinyImage = {3, 8, 8};

Model tiny_resnet18(Norm norm, at::ScalarType dtype = at::kDouble) {
  return make_resnet({.image = kTinyImage, .outputs = 5, .norm = norm}, {.seed = 1, .dtype = dtype});
}

TEST(MakeResnet, HasTorchvisionsNamesShapesOrderAndNumberOfParameters) {
  for (const auto& [depth, count] :
       std::vector<std::pair<int64_t, int64_t>>{{18, 11'689'512}, {34, 21'797'672}, {50, 25'557'032}}) {
    const Model model = make_resnet(
        {.depth = depth, .image = {3, 224, 224}, .outputs = 1000, .norm = Norm::batch, .stem = Stem::large});
    EXPECT_EQ(num_parameters(model), count);
    EXPECT_EQ(model.name, "resnet" + std::to_string(depth));
    const auto expect = [](const std::vector<NamedTensor>& got, const nlohmann::ordered_json& wanted) {
      ASSERT_EQ(got.size(), wanted.size());
      size_t i = 0;
      for (const auto& [name, shape] : wanted.items()) {
        EXPECT_EQ(got[i].name, name);
        EXPECT_EQ(got[i].tensor.sizes(), shape.get<std::vector<int64_t>>()) << name;
        ++i;
      }
    };
    const nlohmann::ordered_json& wanted = test::image_golden()["resnets"][std::to_string(depth)];
    expect(model.parameters(), wanted["parameters"]);
    expect(model.buffers(), wanted["buffers"]);
  }
}

TEST(MakeResnet, EveryNormHasThePlaceOfBatchNorm) {
  const auto batch = test::tensors_by_name(tiny_resnet18(Norm::batch, at::kFloat));
  for (const Norm norm : {Norm::group, Norm::layer}) {
    const auto tensors = test::tensors_by_name(tiny_resnet18(norm, at::kFloat));
    EXPECT_EQ(tensors.size(), 62U);
    for (const auto& [name, tensor] : tensors) {
      ASSERT_TRUE(batch.contains(name)) << name;
      EXPECT_EQ(tensor.sizes(), batch.at(name).sizes()) << name;
    }
  }
  const auto bare = test::tensors_by_name(tiny_resnet18(Norm::none, at::kFloat));
  EXPECT_EQ(bare.size(), 22U);  // 20 convolutions and fc's two
  EXPECT_TRUE(bare.contains("layer2.0.downsample.0.weight"));
  EXPECT_FALSE(bare.contains("layer2.0.downsample.1.weight"));
}

TEST(MakeResnet, StartsAsItsHeaderSays) {
  const auto group = test::tensors_by_name(tiny_resnet18(Norm::group, at::kFloat));
  const at::Tensor& kernels = group.at("layer4.0.conv1.weight");  // 512 x 256 x 3 x 3: a million values
  EXPECT_NEAR(kernels.std().item<double>(), std::sqrt(2.0 / (512 * 9)), 1e-4);  // 0.0208
  EXPECT_NEAR(kernels.mean().item<double>(), 0, 1e-4);
  EXPECT_TRUE(group.at("bn1.weight").equal(at::ones({64})));
  EXPECT_TRUE(group.at("bn1.bias").equal(at::zeros({64})));
  EXPECT_GT(group.at("layer1.0.conv2.weight").abs().max().item<double>(), 0);
  EXPECT_LE(group.at("fc.weight").abs().max().item<double>(), 1 / std::sqrt(512.0));
  EXPECT_GT(group.at("fc.bias").abs().max().item<double>(), 0);
  const auto bare = test::tensors_by_name(tiny_resnet18(Norm::none, at::kFloat));
  EXPECT_EQ(bare.at("layer1.0.conv2.weight").abs().max().item<double>(), 0);
  EXPECT_GT(bare.at("layer1.0.conv1.weight").abs().max().item<double>(), 0);
  const auto deep = test::tensors_by_name(make_resnet({.depth = 50, .norm = Norm::none}));
  EXPECT_EQ(deep.at("layer3.5.conv3.weight").abs().max().item<double>(), 0);
  EXPECT_GT(deep.at("layer3.5.conv2.weight").abs().max().item<double>(), 0);
}

TEST(MakeResnet, WeightsDependOnTheSeedAlone) {
  const auto first = test::tensors_by_name(tiny_resnet18(Norm::group, at::kFloat));
  at::rand({5});
  const auto again = test::tensors_by_name(tiny_resnet18(Norm::group, at::kFloat));
  for (const auto& [name, tensor] : first) EXPECT_TRUE(test::same_bits(again.at(name), tensor)) << name;
}

// Tolerances: float64 rounding, which some twenty layers of sums of up to 4608 terms multiply. A batch norm
// over three samples of one pixel divides by a small deviation and multiplies it further.
TEST(MakeResnet, OutputsAndGradientsArePyTorchs) {
  test::expect_golden(tiny_resnet18(Norm::group), "resnet18_group", 1e-10);
  test::expect_golden(tiny_resnet18(Norm::layer), "resnet18_layer", 1e-10);
  test::expect_golden(tiny_resnet18(Norm::none), "resnet18_none", 1e-10);
  test::expect_golden(tiny_resnet18(Norm::batch), "resnet18_batch", 1e-8);
}

TEST(MakeResnet, BottlenecksAndTheLargeStemArePyTorchs) {
  const Model model = make_resnet({.depth = 50, .image = {3, 20, 24}, .outputs = 5, .stem = Stem::large},
                                  {.dtype = at::kDouble});
  test::expect_golden(model, "resnet50_group", 1e-10);
}

TEST(MakeResnet, AnySplitGivesTheGradientOfTheWholeBatchButForBatchNorm) {
  // Float64 rounding: micro-batches of 1, 3 and 7 add in another order than 11 at once.
  EXPECT_LT(test::split_distance(tiny_resnet18(Norm::group), kTinyImage), 1e-10);
  EXPECT_LT(test::split_distance(tiny_resnet18(Norm::layer), kTinyImage), 1e-10);
  const Model bare = tiny_resnet18(Norm::none);
  test::fill_golden(bare);  // its branches start at zero, and nothing before would have a gradient
  EXPECT_LT(test::split_distance(bare, kTinyImage), 1e-10);
  // In training mode BatchNorm refuses a single image, of which the last layers see one pixel.
  EXPECT_GT(test::split_distance(tiny_resnet18(Norm::batch), kTinyImage, {3, 8}), 1e-2);
}

TEST(MakeResnet, FrozenBatchNormGivesTheGradientOfTheWholeBatch) {
  const Model model = freeze_batch_norm(tiny_resnet18(Norm::batch));
  model.train(true);
  EXPECT_LT(test::split_distance(model, kTinyImage), 1e-10);
  const auto tensors = test::tensors_by_name(model);
  EXPECT_TRUE(tensors.at("bn1.running_mean").equal(at::zeros({64}, at::kDouble)));
  EXPECT_TRUE(test::same_bits(tensors.at("bn1.num_batches_tracked"), at::zeros({}, at::kLong)));
  EXPECT_TRUE(batch_norms(model).empty());
}

TEST(MakeResnet, BatchNormInTrainingRefusesOneValueAChannel) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Model model = tiny_resnet18(Norm::batch, type);
    const MicroBatch one({{"x", at::ones({1, 3, 8, 8})}});
    EXPECT_ERROR(
        model.forward(one), ModelError,
        "BatchNorm layer4.0.bn1 is in training mode and got [1, 512, 1, 1], one value a channel, "
        "where at least two are needed; take larger micro-batches or images, or model.norm: group, or "
        "freeze it (train.batch_norm: freeze; in the library freeze_batch_norm)");
    model.train(false);
    EXPECT_NO_THROW(model.forward(one));
  }
}

TEST(MakeResnet, BatchNormIsFoundByItsClass) {
  const Model model = tiny_resnet18(Norm::batch, at::kFloat);
  EXPECT_EQ(batch_norms(model).size(), 20U);
  EXPECT_TRUE(batch_norms(tiny_resnet18(Norm::group, at::kFloat)).empty());
}

TEST(MakeResnet, HalfPrecisionIsTheSameNetOfRoundedWeightsInFp32) {
  for (const Norm norm : {Norm::group, Norm::batch}) {
    const Model half = tiny_resnet18(norm, at::kBFloat16);
    const Model whole = tiny_resnet18(norm, at::kFloat);
    const auto rounded = test::tensors_by_name(half);
    for (const NamedTensor& entry : whole.parameters()) {
      const at::Tensor& other = rounded.at(entry.name);
      EXPECT_EQ(other.scalar_type(), at::kBFloat16) << entry.name;
      entry.tensor.set_data(other.to(at::kFloat));
    }
    const MicroBatch micro({{"x", test::golden_values({3, 3, 8, 8}, 1).to(at::kFloat)}});
    const at::Tensor output = half.forward(micro).tensor();
    EXPECT_TRUE(test::same_bits(output, whole.forward(micro).tensor()));
    const auto tensors = test::tensors_by_name(whole);
    for (const NamedTensor& buffer : half.buffers()) {
      EXPECT_TRUE(test::same_bits(buffer.tensor, tensors.at(buffer.name))) << buffer.name;
    }
  }
}

TEST(MakeResnet, WeightsAndStatisticsComeBackFromAFile) {
  const Model saved = tiny_resnet18(Norm::batch, at::kFloat);
  saved.forward(MicroBatch({{"x", test::golden_values({3, 3, 8, 8}, 1).to(at::kFloat)}}));
  NamedTensors tensors;
  for (const auto& [name, tensor] : test::tensors_by_name(saved)) tensors.add(name, tensor);
  const std::string path = test::fresh_folder() + "/resnet.safetensors";
  save_tensors(path, tensors);
  const Model loaded = make_resnet({.image = kTinyImage, .outputs = 5, .norm = Norm::batch}, {.seed = 2});
  const test::Warnings warnings;
  load_weights(loaded, load_tensors(path, Purpose::model), path);
  EXPECT_TRUE(warnings.texts.empty());
  const auto got = test::tensors_by_name(loaded);
  for (const auto& [name, tensor] : got) EXPECT_TRUE(test::same_bits(tensor, tensors[name])) << name;
  EXPECT_EQ(got.at("bn1.num_batches_tracked").item<int64_t>(), 1);
}

TEST(MakeResnet, SizesThatCannotBeAreRefused) {
  EXPECT_ERROR(make_resnet({.depth = 20}), ModelError,
               "model: a resnet of depth 20 is not known, needed 18, 34 or 50");
  EXPECT_ERROR(make_resnet({.groups = 3}), ModelError,
               "model: 3 groups do not divide 64 channels; groups must be one of 1, 2, 4, 8, 16, 32, 64");
  EXPECT_THROW(make_resnet({.groups = 128}), ModelError);
  EXPECT_THROW(make_resnet({.groups = 0}), ModelError);
  EXPECT_NO_THROW(make_resnet({.norm = Norm::layer, .groups = 3}));
  EXPECT_ERROR(make_resnet({.image = {3, 0, 8}}), ModelError,
               "model: the height of the images is 0, needed at least 1");
  EXPECT_ERROR(make_resnet({.outputs = 0}), ModelError,
               "model: the number of outputs is 0, needed at least 1");
  EXPECT_THROW(make_resnet({.outputs = int64_t{1} << 50}), BudgetError);
  EXPECT_THROW(make_resnet({.image = {int64_t{1} << 50, 8, 8}}), BudgetError);
}

TEST(MakeModel, ResnetsOfAConfiguration) {
  config::ModelOptions options;
  for (const auto& [kind, count] :
       std::vector<std::pair<config::ModelKind, size_t>>{{config::ModelKind::resnet18, 62},
                                                         {config::ModelKind::resnet34, 110},
                                                         {config::ModelKind::resnet50, 161}}) {
    options.kind = kind;
    const Model model = make_model(options, {.inputs = 192, .image = kTinyImage, .outputs = 5});
    EXPECT_EQ(model.parameters().size(), count);
    EXPECT_EQ(model.parameters()[0].tensor.sizes(), (std::vector<int64_t>{64, 3, 3, 3}));
  }
  EXPECT_ERROR(
      make_model(options, 7, 3), ConfigError,
      "model.kind: resnet50 takes images [channels, height, width] as its only input, got 7 numbers a "
      "sample; give image data, or take model.kind mlp");
}

}  // namespace
}  // namespace accrue::models
