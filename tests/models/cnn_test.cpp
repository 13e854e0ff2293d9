// SPDX-License-Identifier: Apache-2.0
#include "models/cnn.h"

#include <gmock/gmock.h>

#include "accrue/data/tensor_file.h"
#include "tests/models/image_golden.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"

namespace accrue::models {
namespace {

const CnnOptions kSmallCnn = {.image = {2, 12, 9}, .outputs = 5, .channels = {3, 4}, .hidden = {6}};

TEST(MakeCnn, IsPyTorchsSequentialByNameShapeAndInitialValue) {
  const Model model =
      make_cnn({.image = {3, 9, 6}, .outputs = 4, .channels = {2, 3}, .hidden = {5}}, {.seed = 7});
  const nlohmann::ordered_json& wanted = test::image_golden()["cnn_initial"];
  std::vector<std::string> names;
  for (const NamedTensor& entry : model.parameters()) {
    names.push_back(entry.name);
    const at::Tensor flat = entry.tensor.detach().flatten();
    const int64_t shown = std::min<int64_t>(4, flat.numel());
    ASSERT_TRUE(wanted.contains(entry.name)) << entry.name;
    const auto expected =
        at::tensor(wanted[entry.name].get<std::vector<double>>(), at::kDouble).to(at::kFloat);
    EXPECT_TRUE(test::same_bits(flat.slice(0, flat.numel() - shown), expected)) << entry.name;
  }
  EXPECT_THAT(names, testing::ElementsAre("0.weight", "0.bias", "3.weight", "3.bias", "7.weight", "7.bias",
                                          "9.weight", "9.bias"));
  const auto tensors = test::tensors_by_name(model);
  EXPECT_EQ(tensors.at("3.weight").sizes(), (std::vector<int64_t>{3, 2, 3, 3}));
  EXPECT_EQ(tensors.at("7.weight").sizes(), (std::vector<int64_t>{5, 3 * 2 * 1}));
}

TEST(MakeCnn, DefaultsHaveTheirNumberOfParameters) {
  // (9 + 1) 32 + (288 + 1) 64 + (64 7 7 + 1) 128 + (128 + 1) 10
  EXPECT_EQ(num_parameters(make_cnn({})), 320 + 18496 + 401536 + 1290);
}

TEST(MakeCnn, OutputsAndGradientsArePyTorchs) {
  const Model model =
      make_cnn({.image = {3, 9, 6}, .outputs = 4, .channels = {2, 3}, .hidden = {5}}, {.dtype = at::kDouble});
  test::expect_golden(model, "cnn", 1e-12);  // float64 rounding of sums of at most 20 terms a layer
}

TEST(MakeCnn, AnySplitGivesTheGradientOfTheWholeBatch) {
  const Model model = make_cnn(kSmallCnn, {.dtype = at::kDouble});
  EXPECT_LT(test::split_distance(model, kSmallCnn.image), 1e-13);  // float64 rounding
}

TEST(MakeCnn, WithoutConvolutionsOrHiddenLayersItIsOneAffineMap) {
  const Model model = make_cnn({.image = {1, 2, 3}, .outputs = 4, .channels = {}, .hidden = {}});
  const auto tensors = test::tensors_by_name(model);
  ASSERT_EQ(tensors.size(), 2U);
  const at::Tensor x = at::arange(12, at::kByte).reshape({2, 1, 2, 3});
  const at::Tensor wanted =
      at::linear(x.to(at::kFloat).flatten(1), tensors.at("1.weight"), tensors.at("1.bias"));
  EXPECT_TRUE(test::close(model.forward(MicroBatch({{"x", x}})).tensor(), wanted, 1e-6));
}

TEST(MakeCnn, HalfPrecisionIsTheSameNetOfRoundedWeightsInFp32) {
  const Model half = make_cnn(kSmallCnn, {.seed = 3, .dtype = at::kBFloat16});
  const Model whole = make_cnn(kSmallCnn, {.seed = 3});
  const auto rounded = test::tensors_by_name(half);
  for (const NamedTensor& entry : whole.parameters()) {
    const at::Tensor& other = rounded.at(entry.name);
    EXPECT_TRUE(test::same_bits(other, entry.tensor.detach().to(at::kBFloat16)));
    entry.tensor.set_data(other.to(at::kFloat));
  }
  const MicroBatch micro({{"x", test::golden_values({3, 2, 12, 9}, 1).to(at::kFloat)}});
  EXPECT_TRUE(test::same_bits(half.forward(micro).tensor(), whole.forward(micro).tensor()));
}

TEST(MakeCnn, WeightsDependOnTheSeedAlone) {
  const auto first = test::tensors_by_name(make_cnn(kSmallCnn, {.seed = 11}));
  at::rand({5});
  const at::Tensor state = at::globalContext().defaultGenerator(at::kCPU).get_state();
  const auto again = test::tensors_by_name(make_cnn(kSmallCnn, {.seed = 11}));
  EXPECT_TRUE(at::globalContext().defaultGenerator(at::kCPU).get_state().equal(state));
  for (const auto& [name, tensor] : first) EXPECT_TRUE(test::same_bits(again.at(name), tensor)) << name;
  const auto other = test::tensors_by_name(make_cnn(kSmallCnn, {.seed = 12}));
  EXPECT_FALSE(other.at("0.weight").equal(first.at("0.weight")));
}

TEST(MakeCnn, WeightsComeBackFromAFile) {
  const Model saved = make_cnn(kSmallCnn, {.seed = 1});
  NamedTensors tensors;
  for (const auto& [name, tensor] : test::tensors_by_name(saved)) tensors.add(name, tensor);
  const std::string path = test::fresh_folder() + "/cnn.safetensors";
  save_tensors(path, tensors);
  const Model loaded = make_cnn(kSmallCnn, {.seed = 2});
  load_weights(loaded, load_tensors(path, Purpose::model), path);
  for (const auto& [name, tensor] : test::tensors_by_name(loaded)) {
    EXPECT_TRUE(test::same_bits(tensor, tensors[name])) << name;
  }
}

TEST(MakeCnn, SizesThatCannotBeAreRefused) {
  EXPECT_ERROR(make_cnn({.image = {1, 28}}), ModelError,
               "model: images have 2 dimensions, needed three: channels, height, width");
  EXPECT_ERROR(make_cnn({.image = {0, 28, 28}}), ModelError,
               "model: the number of channels of the images is 0, needed at least 1");
  EXPECT_ERROR(make_cnn({.channels = {4, 0}}), ModelError,
               "model: width 2 of channels is 0, needed at least 1");
  EXPECT_ERROR(make_cnn({.hidden = {-1}}), ModelError, "model: width 1 of hidden is -1, needed at least 1");
  EXPECT_ERROR(make_cnn({.outputs = 0}), ModelError, "model: the number of outputs is 0, needed at least 1");
  EXPECT_ERROR(make_cnn({.image = {1, 8, 3}}), ModelError,
               "model: images of 8 x 3 have no pixel left after 2 poolings by 2; take fewer entries of "
               "channels or larger images");
  EXPECT_ERROR(make_cnn({}, {.fields = {"a", "b"}}), ModelError,
               "model: it takes one field of images, got 2 (a, b)");
}

TEST(MakeCnn, AModelLargerThanTheMachineIsRefused) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  EXPECT_THROW(make_cnn({.channels = {kHuge}}), BudgetError);
  EXPECT_THROW(make_cnn({.image = {kHuge, kHuge, kHuge}, .channels = {}, .hidden = {}}), BudgetError);
}

TEST(MakeCnn, OtherImagesAreRefused) {
  const Model model = make_cnn(kSmallCnn);
  EXPECT_ERROR(model.forward(MicroBatch({{"x", at::zeros({3, 2, 9, 12})}})), ModelError,
               "the images x have shape [3, 2, 9, 12], and the model takes [n, 2, 12, 9]; make them of one "
               "size, or change the model's");
  EXPECT_THROW(model.forward(MicroBatch({{"x", at::zeros({2, 12, 9})}})), ModelError);
}

TEST(MakeModel, ImageModelsNeedImages) {
  config::ModelOptions options;
  options.kind = config::ModelKind::cnn;
  options.channels = {3};
  const Model model =
      make_model(options, {.inputs = 32, .image = {2, 4, 4}, .outputs = 3}, {.fields = {"p"}});
  EXPECT_EQ(model.forward(MicroBatch({{"p", at::zeros({2, 2, 4, 4})}})).tensor().sizes(),
            (std::vector<int64_t>{2, 3}));
  EXPECT_ERROR(make_model(options, 7, 3), ConfigError,
               "model.kind: cnn takes images [channels, height, width] as its only input, got 7 numbers a "
               "sample; give image data, or take model.kind mlp");
  EXPECT_ERROR(
      make_model(options, {.inputs = 33, .image = {2, 4, 4}, .outputs = 3}, {.fields = {"p", "q"}}),
      ConfigError,
      "model.kind: cnn takes images [channels, height, width] as its only input, got 2 inputs (p, q); "
      "give image data, or take model.kind mlp");
  options.kind = config::ModelKind::mlp;
  EXPECT_EQ(make_model(options, {.inputs = 32, .image = {2, 4, 4}, .outputs = 3}, {.fields = {"p"}})
                .forward(MicroBatch({{"p", at::zeros({2, 2, 4, 4})}}))
                .tensor()
                .sizes(),
            (std::vector<int64_t>{2, 3}));
}

}  // namespace
}  // namespace accrue::models
