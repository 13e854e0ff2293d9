// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/load.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "accrue/data/tensor_file.h"
#include "tests/formats/bad_files.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

using testing::ElementsAre;
using Texts = std::vector<std::string>;

NamedTensors everything(const Data& data) {
  std::vector<int64_t> ids(static_cast<size_t>(data.size()));
  std::iota(ids.begin(), ids.end(), int64_t{0});
  return data.gather(ids);
}

DataOptions options_for(const std::string& path) {
  DataOptions options;
  options.train = path;
  return options;
}

std::string save(const std::string& path, const NamedTensors& tensors) {
  save_tensors(path, tensors);
  return path;
}

std::string numbered_csv(int64_t rows) {
  std::string text = "a,y\n";
  for (int64_t row = 0; row < rows; ++row) text += std::to_string(row) + "," + std::to_string(row) + "\n";
  return text;
}

TEST(LoadCsv, GivesFeaturesAndTarget) {
  const std::string path = test::write_file(test::fresh_folder() + "/t.csv", "a,c,y\n1,u,3\n\n3,v,4\n");
  const Dataset dataset = load_data(options_for(path), false, 0);
  EXPECT_EQ(dataset.format, DataFormat::csv);
  EXPECT_EQ(dataset.input_width(), 3);
  EXPECT_EQ(dataset.output_width(), 1);
  EXPECT_EQ(dataset.valid, nullptr);
  EXPECT_EQ(dataset.inputs[0].name, "x");
  EXPECT_EQ(dataset.target.name, "y");
  const NamedTensors fields = everything(*dataset.train);
  EXPECT_TRUE(at::equal(fields["x"], at::tensor({-1.0f, 1.0f, 0.0f, 1.0f, 0.0f, 1.0f}).reshape({2, 3})));
  EXPECT_TRUE(at::equal(fields["y"], at::tensor({3.0f, 4.0f}).reshape({2, 1})));
  EXPECT_THAT(dataset.notes,
              ElementsAre(path + ": 1 blank line(s) skipped", path + ": read as categories: c (2)"));
}

TEST(LoadCsv, ClassesAndAFileForValidation) {
  test::Warnings warnings;
  const std::string folder = test::fresh_folder();
  DataOptions options = options_for(test::write_file(folder + "/t.csv", "a,id,y\n1,7,no\n3,8,yes\n"));
  options.inputs = {"a"};
  options.valid = test::write_file(folder + "/v.csv", "y,z,a\nyes,0,5\n");
  const Dataset dataset = load_data(options, true, 0);
  EXPECT_EQ(dataset.classes, (Texts{"no", "yes"}));
  EXPECT_EQ(dataset.output_width(), 2);
  EXPECT_EQ(dataset.target.shape, std::vector<int64_t>{});
  const NamedTensors valid = everything(*dataset.valid);
  EXPECT_EQ(valid["x"].item<float>(), 3);
  EXPECT_EQ(valid["y"].item<int64_t>(), 1);
  EXPECT_THAT(dataset.notes, ElementsAre(options.train + ": not used: id"));
  EXPECT_THAT(warnings.texts,
              ElementsAre(options.valid + ": columns that the training does not use are ignored: z"));
}

TEST(LoadCsv, ASavedTransformationIsAppliedAsItIs) {
  const std::string folder = test::fresh_folder();
  const Dataset first =
      load_data(options_for(test::write_file(folder + "/t.csv", "a,y\n1,0\n3,0\n")), false, 0);
  const DataOptions other = options_for(test::write_file(folder + "/u.csv", "a,y\n7,0\n"));
  const Dataset second = load_data(other, false, 0, first.transform_json);
  EXPECT_EQ(everything(*second.train)["x"].item<float>(), 5);
  EXPECT_EQ(second.transform_json, first.transform_json);
  EXPECT_ERROR(load_data(other, true, 0, first.transform_json), CheckpointError,
               "the saved data transformation is of another task; resume with the task of the saved run");
}

TEST(LoadShares, AreChosenBySeedAlone) {
  DataOptions options = options_for(test::write_file(test::fresh_folder() + "/t.csv", numbered_csv(10)));
  options.valid_fraction = 0.3;
  options.standardize = false;
  const Dataset dataset = load_data(options, false, 42);
  EXPECT_EQ(dataset.train->size(), 7);
  EXPECT_EQ(dataset.valid->size(), 3);
  const auto numbers = [](const Data& data) {
    const at::Tensor y = everything(data)["y"].flatten();
    return std::vector<float>(y.const_data_ptr<float>(), y.const_data_ptr<float>() + y.numel());
  };
  std::vector<float> train = numbers(*dataset.train);
  const std::vector<float> valid = numbers(*dataset.valid);
  EXPECT_TRUE(std::is_sorted(train.begin(), train.end()));
  EXPECT_EQ(valid, numbers(*load_data(options, false, 42).valid));
  std::set<std::vector<float>> choices;
  for (uint64_t seed = 0; seed < 8; ++seed) choices.insert(numbers(*load_data(options, false, seed).valid));
  EXPECT_GT(choices.size(), 3u);
  train.insert(train.end(), valid.begin(), valid.end());
  std::sort(train.begin(), train.end());
  EXPECT_THAT(train, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(dataset.notes, ElementsAre("validation keeps 3 of 10 samples, chosen by seed 42"));
}

TEST(LoadShares, BothSidesNeedASample) {
  DataOptions options = options_for(test::write_file(test::fresh_folder() + "/t.csv", numbered_csv(3)));
  options.valid_fraction = 0.1;
  EXPECT_ERROR(load_data(options, false, 0), DataError,
               options.train +
                   ": a validation fraction of 0.1 of 3 samples leaves 3 for training and 0 for "
                   "validation; at least 1 is needed on each side");
  options.valid_fraction = 0.9;
  EXPECT_ERROR(load_data(options, false, 0), DataError,
               options.train +
                   ": a validation fraction of 0.9 of 3 samples leaves 0 for training and 3 for "
                   "validation; at least 1 is needed on each side");
  options.valid_fraction = 1.0;
  EXPECT_ERROR(load_data(options, false, 0), ArgumentError,
               "the validation fraction must be above 0 and below 1, got 1");
  options.valid = "v.csv";
  EXPECT_ERROR(load_data(options, false, 0), ArgumentError,
               "both a validation file (v.csv) and a fraction (1) are given; give one of them");
}

TEST(LoadFields, FindsInputsAndTargetByDefault) {
  const std::string folder = test::fresh_folder();
  // The name does not matter: the content decides.
  const std::string path = save(folder + "/t.csv", {{"x", at::arange(12, at::kDouble).reshape({3, 2, 2})},
                                                    {"extra", at::zeros({3})},
                                                    {"y", at::tensor({0, 2, 1}, at::kInt)}});
  const Dataset dataset = load_data(options_for(path), true, 0);
  EXPECT_EQ(dataset.format, DataFormat::safetensors);
  EXPECT_EQ(dataset.input_width(), 4);
  EXPECT_EQ(dataset.num_classes, 3);
  EXPECT_EQ(dataset.inputs[0].dtype, at::kFloat);
  const NamedTensors fields = everything(*dataset.train);
  EXPECT_FALSE(fields.contains("extra"));
  EXPECT_TRUE(at::equal(fields["y"], at::tensor({0, 2, 1}, at::kLong)));
  EXPECT_TRUE(at::equal(fields["x"], at::arange(12, at::kFloat).reshape({3, 2, 2})));
  EXPECT_THAT(dataset.notes,
              testing::UnorderedElementsAre(path + ": field \"x\" converted from Double to Float",
                                            path + ": field \"y\" converted from Int to Long",
                                            path + ": not used: extra"));
  const std::string single =
      save(folder + "/single", {{"y", at::zeros({2})}, {"tokens", at::zeros({2, 5}, at::kByte)}});
  const Dataset other = load_data(options_for(single), false, 0);
  EXPECT_EQ(other.inputs[0].name, "tokens");
  EXPECT_EQ(other.inputs[0].dtype, at::kByte);
  EXPECT_EQ(other.target.shape, std::vector<int64_t>{1});
}

TEST(LoadFields, SeveralInputsByName) {
  DataOptions options = options_for(
      save(test::fresh_folder() + "/t.safetensors", {{"a", at::zeros({2, 3}, at::kHalf)},
                                                     {"b", at::zeros({2}, at::ScalarType::UInt16)},
                                                     {"goal", at::zeros({2, 4}, at::kBFloat16)}}));
  options.inputs = {"b", "a"};
  options.target = "goal";
  const Dataset dataset = load_data(options, false, 0);
  EXPECT_EQ(dataset.inputs[0].name, "b");
  EXPECT_EQ(dataset.inputs[0].dtype, at::kInt);
  EXPECT_EQ(dataset.input_width(), 4);
  EXPECT_EQ(dataset.output_width(), 4);
  EXPECT_EQ(dataset.target.dtype, at::kFloat);
}

TEST(LoadFields, NaNIsThePolicysMatter) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string path =
      save(test::fresh_folder() + "/t.safetensors", {{"x", at::full({2, 1}, nan)}, {"y", at::zeros({2})}});
  EXPECT_EQ(load_data(options_for(path), false, 0).train->size(), 2);
}

TEST(LoadFields, WrongFieldsAreExplained) {
  const std::string folder = test::fresh_folder();
  const auto refused = [&](const NamedTensors& tensors, bool classification, const std::string& text,
                           const Texts& inputs = {}) {
    DataOptions options = options_for(save(folder + "/t.safetensors", tensors));
    options.inputs = inputs;
    EXPECT_ERROR(load_data(options, classification, 0), DataError, options.train + text);
  };
  const at::Tensor x = at::zeros({3, 2});
  const at::Tensor y = at::tensor({0, 1, 2}, at::kLong);
  refused({{"a", x}, {"b", x}, {"y", y}}, true,
          ": which field is the input? name it in data.inputs; the fields are: y, a, b");
  refused({{"x", x}, {"labels", y}}, true, ": there is no field \"y\"; the fields are: labels, x");
  refused({{"y", y}}, true, ": which field is the input? name it in data.inputs; the fields are: y");
  refused({{"x", x}, {"z", y}}, true, ": there is no field \"y\"; the fields are: z, x", {"x"});
  refused({{"x", x}, {"y", y}}, true, ": there is no field \"xx\"; the fields are: y, x; did you mean \"x\"?",
          {"xx"});
  refused({{"x", x}, {"y", y}}, true,
          ": column \"y\" is the target and stands in data.inputs too; leave it out of one", {"y"});
  refused({{"x", at::zeros({4, 2})}, {"y", y}}, true,
          ": field \"x\" has 4 samples and field \"y\" has 3; all fields need the same first dimension");
  refused({{"x", at::zeros({})}, {"y", y}}, true,
          ": field \"x\" has no first dimension that counts the samples; every field needs one");
  refused({{"x", at::zeros({3, 0})}, {"y", y}}, true,
          ": field \"x\" has the shape [3,0] and so no value; each sample needs at least one");
  refused({{"x", x}, {"y", at::full({3}, -1, at::kLong)}}, true,
          ": target \"y\" of sample 0 is -1; a class id of at least 0 is needed");
  refused({{"x", x.to(at::kComplexFloat)}, {"y", y}}, true,
          ": field \"x\" has the type ComplexFloat; real numbers are needed");
  refused({{"x", x}, {"y", y.to(at::kComplexFloat)}}, false,
          ": field \"y\" has the type ComplexFloat; real numbers are needed");
  refused({{"x", x}, {"y", y.to(at::kFloat)}}, true,
          ": field \"y\" has the type Float; integer class ids are needed");
  refused({{"x", x}, {"y", at::zeros({3, 2}, at::kLong)}}, true,
          ": target \"y\" has the shape [3,2]; [n] or [n, 1] is needed");
  refused({{"x", x}, {"y", at::zeros({3, 2, 2})}}, false,
          ": target \"y\" has the shape [3,2,2]; [n] or [n, k] is needed");
  refused({{"x", x}, {"y", at::tensor({0, -100, 2}, at::kLong)}}, true,
          ": target \"y\" of sample 1 is -100; a class id of at least 0 is needed");
  refused(
      {{"x", x}, {"y", at::tensor({0, 5000000, 2}, at::kLong)}}, true,
      ": target \"y\" holds the class id 5000000; ids below 1000000 are needed: number the classes from 0");
  refused({{"x", x}, {"y", at::zeros({3}, at::kLong)}}, true,
          ": the target column \"y\" holds 1 class(es); classification needs at least 2");
}

TEST(LoadFields, AFileForValidationMustFit) {
  const std::string folder = test::fresh_folder();
  const at::Tensor y = at::tensor({0, 1, 2}, at::kLong);
  DataOptions options = options_for(save(folder + "/t", {{"x", at::zeros({3, 2})}, {"y", y}}));
  options.valid = save(folder + "/v", {{"x", at::zeros({3, 2})}, {"y", y}});
  EXPECT_EQ(load_data(options, true, 0).valid->size(), 3);
  save(options.valid, {{"x", at::zeros({3, 2})}, {"y", y.add(1)}});
  EXPECT_ERROR(load_data(options, true, 0), DataError,
               options.valid + ": target \"y\" of sample 2 is 3; a class id from 0 to 2 is needed");
  save(options.valid, {{"x", at::zeros({3, 4})}, {"y", y}});
  EXPECT_ERROR(load_data(options, true, 0), DataError,
               options.valid +
                   ": field \"x\" is Float [4] a sample and Float [2] in the training file; both must "
                   "agree");
}

TEST(LoadFields, AResumedRunNeedsTheSameFields) {
  const std::string folder = test::fresh_folder();
  const at::Tensor y = at::tensor({0, 1, 2}, at::kLong);
  const DataOptions options = options_for(save(folder + "/t", {{"x", at::zeros({3, 2})}, {"y", y}}));
  const std::string saved = load_data(options, true, 0).transform_json;
  save(options.train, {{"x", at::zeros({3, 2})}, {"y", y.clamp_max(1)}});
  EXPECT_EQ(load_data(options, true, 0, saved).num_classes, 3);
  save(options.train, {{"x", at::zeros({3, 4})}, {"y", y}});
  try {
    load_data(options, true, 0, saved);
    FAIL() << "nothing was thrown";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("the data are not those of the saved run: saved "));
    EXPECT_THAT(error.what(), testing::EndsWith("; resume with the same fields"));
  }
  EXPECT_ERROR(load_data(options, true, 0, R"({"format": "accrue-table/1"})"), CheckpointError,
               "data transformation: is not what this version writes; use the checkpoint as it was saved");
}

TEST(Load, FilesOfOtherKindsAreNamed) {
  const std::string folder = test::fresh_folder();
  for (const auto& bad : test::bad_csv()) {
    SCOPED_TRACE(bad.id);
    const std::string path = test::write_file(folder + "/t.csv", bad.bytes);
    EXPECT_ERROR(load_data(options_for(path), false, 0), DataError, test::replaced(bad.text, "FILE", path));
  }
  const std::string path =
      test::write_file(folder + "/t.safetensors", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_ERROR(
      load_data(options_for(path), false, 0), DataError,
      path +
          ": is a Git LFS pointer, not the file itself; run \"git lfs pull\" in its repository or download "
          "the file");
  EXPECT_ERROR(load_data(options_for(folder), false, 0), DataError,
               folder + ": is a folder; a file is needed");
}

}  // namespace
}  // namespace accrue
