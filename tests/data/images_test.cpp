// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "accrue/data/image_data.h"
#include "accrue/data/load.h"
#include "accrue/data/tensor_file.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/pictures.h"

namespace accrue::images {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> all_ids(int64_t size) {
  std::vector<int64_t> ids(static_cast<size_t>(size));
  std::iota(ids.begin(), ids.end(), int64_t{0});
  return ids;
}

NamedTensors everything(const Data& data) {
  return data.gather(all_ids(data.size()));
}

DataOptions options_for(const std::string& path) {
  DataOptions options;
  options.train = path;
  return options;
}

Dataset load(const DataOptions& options, const std::string& transform = "") {
  return load_data(options, Learned::image_classes, 1, transform);
}

std::string counted(size_t bytes, int first = 0) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(first + static_cast<int>(i));
  return text;
}

/// A folder with two pictures of 2 x 3 pixels to train on and one to test on.
std::string idx_folder() {
  const std::string folder = test::fresh_folder();
  test::write_file(folder + "/train-images-idx3-ubyte", test::idx_file({2, 2, 3}, counted(12)));
  test::write_file(folder + "/train-labels-idx1-ubyte", test::idx_file({2}, std::string("\x02\x00", 2)));
  test::write_file(folder + "/t10k-images-idx3-ubyte", test::idx_file({1, 2, 3}, counted(6, 100)));
  test::write_file(folder + "/t10k-labels-idx1-ubyte", test::idx_file({1}, "\x01"));
  return folder;
}

TEST(LoadIdx, FolderGivesBothSharesAsFloats) {
  DataOptions options = options_for(idx_folder());
  options.valid = options.train;
  const Dataset dataset = load(options);
  EXPECT_EQ(dataset.format, DataFormat::idx);
  EXPECT_EQ(dataset.num_classes, 3);
  EXPECT_THAT(dataset.inputs[0].shape, ElementsAre(1, 2, 3));
  const NamedTensors fields = everything(*dataset.train);
  EXPECT_TRUE(at::equal(fields["x"], at::arange(12, at::kFloat).div(255).reshape({2, 1, 2, 3})));
  EXPECT_TRUE(at::equal(fields["y"], at::tensor({2, 0}, at::kLong)));
  EXPECT_EQ(dataset.valid->size(), 1);
  EXPECT_TRUE(at::equal(everything(*dataset.valid)["y"], at::tensor({1}, at::kLong)));
}

TEST(LoadIdx, FilesThatDoNotBelongTogether) {
  const std::string folder = idx_folder();
  const std::string labels =
      test::write_file(folder + "/train-labels-idx1-ubyte", test::idx_file({1}, "\x02"));
  EXPECT_ERROR(
      load(options_for(folder)), DataError,
      labels + ": holds 1 labels, and " + folder + "/train-images-idx3-ubyte 2 pictures; both must agree");
  std::filesystem::remove(labels);
  EXPECT_ERROR(load(options_for(folder)), DataError,
               folder + "/train-images-idx3-ubyte: there is no file of labels beside it; looked for " +
                   labels + ", packed or not");
  test::write_file(folder + "/train-images-more", test::idx_file({1, 1}, "a"));
  EXPECT_ERROR(load(options_for(folder)), DataError,
               folder + ": one file of pictures is needed (train-images*), found: " + folder +
                   "/train-images-idx3-ubyte, " + folder + "/train-images-more; name the file itself");
}

TEST(LoadIdx, ValidationLabelOutsideTheTrainingClasses) {
  DataOptions options = options_for(idx_folder());
  options.valid = options.train;
  test::write_file(options.train + "/t10k-labels-idx1-ubyte", test::idx_file({1}, "\x03"));
  EXPECT_ERROR(load(options), DataError,
               options.train + ": target \"y\" of sample 0 is 3; a class id from 0 to 2 is needed");
}

TEST(LoadCifar, FolderOfSeveralFiles) {
  const std::string folder = test::fresh_folder();
  const std::string pixels(3072, '\x33');
  test::write_file(folder + "/data_batch_1.bin", "\x07" + pixels + "\x01" + pixels);
  test::write_file(folder + "/data_batch_2.bin", "\x09" + pixels);
  test::write_file(folder + "/test_batch.bin", "\x03" + pixels);
  DataOptions options = options_for(folder);
  options.valid = folder;
  const Dataset dataset = load(options);
  EXPECT_EQ(dataset.format, DataFormat::cifar);
  EXPECT_EQ(dataset.num_classes, 10);
  EXPECT_TRUE(at::equal(everything(*dataset.train)["y"], at::tensor({7, 1, 9}, at::kLong)));
  EXPECT_FLOAT_EQ(everything(*dataset.train)["x"][2][1][31][31].item<float>(), 0.2F);
  EXPECT_EQ(dataset.valid->size(), 1);
}

/// cat and dog with one picture each of 1 x 2, hidden things beside them.
std::string picture_folder() {
  const std::string folder = test::fresh_folder();
  for (const char* name : {"cat", "dog", ".ipynb_checkpoints"})
    std::filesystem::create_directory(folder + "/" + name);
  test::write_file(folder + "/cat/a.txt", test::gray_png(1, 2, {10, 20}));  // by content, not by suffix
  test::write_file(folder + "/dog/b.png", test::gray_png(1, 2, {30, 40}));
  test::write_file(folder + "/dog/Thumbs.db", "no picture");
  test::write_file(folder + "/dog/.DS_Store", "hidden");
  test::write_file(folder + "/.ipynb_checkpoints/c.png", test::gray_png(1, 2, {50, 60}));
  return folder;
}

TEST(LoadFolder, ClassesByNameAndHiddenThingsLeftOut) {
  const Dataset dataset = load(options_for(picture_folder()));
  EXPECT_EQ(dataset.format, DataFormat::image_folder);
  EXPECT_THAT(dataset.classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(dataset.notes, ElementsAre(HasSubstr("3 hidden entries")));
  const NamedTensors fields = everything(*dataset.train);
  EXPECT_TRUE(at::equal(fields["y"], at::tensor({0, 1}, at::kLong)));
  EXPECT_TRUE(
      at::equal(fields["x"], at::tensor({10.0F, 20.0F, 30.0F, 40.0F}).div(255).reshape({2, 1, 1, 2})));
}

TEST(LoadFolder, ValidationCountsByTheTrainingNames) {
  DataOptions options = options_for(picture_folder());
  const std::string valid = options.train + "-valid";
  std::filesystem::remove_all(valid);
  std::filesystem::create_directories(valid + "/dog");
  test::write_file(valid + "/dog/z.png", test::gray_png(1, 2, {1, 2}));
  options.valid = valid;
  const Dataset dataset = load(options);
  EXPECT_TRUE(at::equal(everything(*dataset.valid)["y"], at::tensor({1}, at::kLong)));
  std::filesystem::create_directories(valid + "/dogs");
  EXPECT_ERROR(load(options), DataError,
               valid +
                   ": the class \"dogs\" is none of the training folder's (cat, dog); did you mean \"dog\"?; "
                   "remove it, or train with it");
  // A later run of the same model counts by the names that were saved.
  std::filesystem::remove_all(options.train + "/cat");
  options.valid.clear();
  EXPECT_TRUE(
      at::equal(everything(*load(options, dataset.transform_json).train)["y"], at::tensor({1}, at::kLong)));
}

TEST(LoadFolder, EmptyClassAndOtherSizesAreNamed) {
  const std::string folder = picture_folder();
  std::filesystem::create_directory(folder + "/aa");
  EXPECT_ERROR(load(options_for(folder)), DataError,
               folder + ": the class folder \"aa\" holds no PNG or JPEG picture; remove it or add pictures");
  std::filesystem::remove(folder + "/aa");
  test::write_file(folder + "/dog/c.png", test::gray_png(2, 2, {1, 2, 3, 4}));
  EXPECT_ERROR(
      everything(*load(options_for(folder)).train), DataError,
      folder + "/dog/c.png: is 2 x 2 and the first picture is 1 x 2; set data.resize, or make them one size");
  DataOptions options = options_for(folder);
  options.resize = {4};
  EXPECT_THAT(everything(*load(options).train)["x"].sizes(), ElementsAre(3, 1, 4, 4));
}

TEST(LoadFolder, WhatIsCalledAPictureMustBeOne) {
  const std::string folder = picture_folder();
  const std::string path = test::write_file(folder + "/dog/lost.PNG", "");
  EXPECT_ERROR(load(options_for(folder)), DataError,
               path + ": is called a picture and is no PNG or JPEG file; fetch it again, or remove it");
  test::write_file(path, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  EXPECT_ERROR(
      load(options_for(folder)), DataError,
      path +
          ": is a Git LFS pointer, not the file itself; run \"git lfs pull\" in its repository or download "
          "the file");
}

TEST(LoadFolder, ClassNamesAreUtf8) {
  const std::string folder = picture_folder();
  std::filesystem::create_directory(folder + "/\xff");
  EXPECT_ERROR(load(options_for(folder)), DataError,
               folder + ": the name of a class folder is not valid UTF-8 (byte 0 of it); rename it");
}

TEST(LoadFolder, TheNormalisationBelongsToTheModel) {
  DataOptions options = options_for(picture_folder());
  options.mean = {0.5};
  const std::string saved = load(options).transform_json;
  EXPECT_NO_THROW(load(options, saved));
  options.mean = {0.4};
  EXPECT_THROW(load(options, saved), CheckpointError);
}

TEST(LoadCifar, BothSharesAreOfOneKind) {
  DataOptions options = options_for(test::fresh_folder());
  test::write_file(options.train + "/train.bin", std::string(3074, '\x01'));
  test::write_file(options.train + "/test.bin", std::string(3073, '\x01'));
  options.valid = options.train;
  EXPECT_ERROR(load(options), DataError,
               options.train +
                   ": has 10 classes and the training file 100 (CIFAR-10 and CIFAR-100 together); use one "
                   "kind");
}

TEST(LoadImageFields, BytesBecomePicturesAndFloatsStay) {
  const std::string path = test::fresh_folder() + "/t.safetensors";
  const at::Tensor bytes = at::arange(12, at::kByte).reshape({2, 2, 3});
  save_tensors(path, {{"x", bytes}, {"y", at::tensor({0, 1}, at::kLong)}});
  DataOptions options = options_for(path);
  options.mean = {0.5};
  options.deviation = {2};
  const Dataset dataset = load(options);
  EXPECT_THAT(dataset.inputs[0].shape, ElementsAre(1, 2, 3));
  const at::Tensor expected = bytes.to(at::kDouble).div(255).sub(0.5).div(2).to(at::kFloat).unsqueeze(1);
  EXPECT_TRUE(at::equal(everything(*dataset.train)["x"], expected));

  save_tensors(path, {{"x", bytes.to(at::kFloat)}, {"y", at::tensor({0, 1}, at::kLong)}});
  EXPECT_ERROR(
      load(options), DataError,
      path +
          ": field \"x\" holds Float; data.mean works on pictures stored as bytes (U8): store them so, "
          "or leave the key out");
  EXPECT_TRUE(at::equal(everything(*load(options_for(path)).train)["x"], bytes.to(at::kFloat).unsqueeze(1)));
}

/// One picture whose pixels are all different.
class OnePicture : public PixelSource {
 public:
  int64_t size() const override { return 100; }
  int64_t label(int64_t) const override { return 0; }
  void read(int64_t, uint8_t* out) const override { std::iota(out, out + 20, uint8_t{1}); }
};

ImageData augmented(bool flip, int64_t crop, uint64_t seed = 1) {
  DataOptions options;
  options.flip = flip;
  options.crop = crop;
  return ImageData(std::make_shared<OnePicture>(), PixelTransform(options, {1, 4, 5}, seed));
}

at::Tensor trained_on(const ImageData& data, std::vector<int64_t> ids, std::vector<int64_t> epochs) {
  return data.gather_for_training(ids, epochs)["x"];
}

TEST(Augmentation, DependsOnSeedEpochAndIdAlone) {
  const ImageData data = augmented(true, 2);
  const at::Tensor together = trained_on(data, {3, 4, 5, 3}, {7, 7, 7, 8});
  const at::Tensor apart = at::cat({trained_on(data, {3}, {7}), trained_on(data, {4}, {7}),
                                    trained_on(data, {5}, {7}), trained_on(data, {3}, {8})});
  EXPECT_TRUE(at::equal(together, apart));
  int64_t other_epoch = 0;
  int64_t other_seed = 0;
  for (int64_t id = 0; id < 100; ++id) {
    const at::Tensor here = trained_on(data, {id}, {0});
    other_epoch += at::equal(here, trained_on(data, {id}, {1})) ? 0 : 1;
    other_seed += at::equal(here, trained_on(augmented(true, 2, 2), {id}, {0})) ? 0 : 1;
  }
  // 50 outcomes: two draws are alike once in 50; 80 of 100 is far from 98.
  EXPECT_GT(other_epoch, 80);
  EXPECT_GT(other_seed, 80);
}

TEST(Augmentation, MirrorsHalfOfThem) {
  const ImageData data = augmented(true, 0);
  const at::Tensor plain = data.gather(std::vector<int64_t>{0})["x"];
  int64_t mirrored = 0;
  for (int64_t id = 0; id < 100; ++id) {
    const at::Tensor x = trained_on(data, {id}, {0});
    if (at::equal(x, plain)) continue;
    EXPECT_TRUE(at::equal(x, at::flip(plain, {3})));
    ++mirrored;
  }
  // Binomial(100, 1/2): 30 to 70 is four deviations each way.
  EXPECT_GT(mirrored, 30);
  EXPECT_LT(mirrored, 70);
}

TEST(Augmentation, CutsOutOfABlackFrameAtEveryPlace) {
  const ImageData data = augmented(false, 1);
  const at::Tensor plain = data.gather(std::vector<int64_t>{0})["x"].reshape({4, 5});
  at::Tensor frame = at::zeros({6, 7});
  frame.narrow(0, 1, 4).narrow(1, 1, 5).copy_(plain);
  std::set<std::pair<int64_t, int64_t>> places;
  for (int64_t id = 0; id < 100; ++id) {
    const at::Tensor x = trained_on(data, {id}, {0}).reshape({4, 5});
    bool found = false;
    for (int64_t down = 0; down < 3; ++down) {
      for (int64_t right = 0; right < 3; ++right) {
        if (!at::equal(x, frame.narrow(0, down, 4).narrow(1, right, 5))) continue;
        places.insert({down, right});
        found = true;
      }
    }
    EXPECT_TRUE(found);
  }
  EXPECT_EQ(places.size(), 9);
}

TEST(Augmentation, EvaluationSeesThePicturesAsTheyAre) {
  const ImageData data = augmented(true, 2);
  EXPECT_TRUE(
      at::equal(data.gather(std::vector<int64_t>{9})["x"].flatten(), at::arange(1, 21, at::kFloat).div(255)));
}

TEST(PixelTransformTest, RefusesValuesThatDoNotFit) {
  DataOptions options;
  options.mean = {0.1, 0.2};
  EXPECT_ERROR(
      PixelTransform(options, {3, 4, 4}, 0), ConfigError,
      "data.mean has 2 values and the pictures have 3 channel(s); give one value a channel, or one for all");
  options.mean.clear();
  options.crop = 5;
  EXPECT_ERROR(PixelTransform(options, {1, 4, 6}, 0), ConfigError,
               "data.crop is 5 and the pictures are 4 x 6; at most the smaller side is possible");
}

TEST(FindFormat, SaysWhatTheTaskLearnsFrom) {
  const std::string path = test::write_file(test::fresh_folder() + "/t.csv", "a,y\n1,2\n");
  DataOptions options = options_for(path);
  options.format = DataFormat::csv;
  EXPECT_ERROR(load(options), DataError,
               path +
                   ": is read as csv, and this task learns from: idx, cifar, image-folder, safetensors; set "
                   "data.format, or another task");
  options.format = DataFormat::idx;
  EXPECT_ERROR(
      load_data(options, Learned::numbers, 0), DataError,
      path +
          ": is read as idx, and this task learns from: csv, safetensors; set data.format, or another "
          "task");
}

}  // namespace
}  // namespace accrue::images
