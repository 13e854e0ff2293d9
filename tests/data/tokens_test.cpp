// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "accrue/batch/batch.h"
#include "accrue/data/load.h"
#include "accrue/data/subset_data.h"
#include "accrue/data/tensor_file.h"
#include "accrue/data/token_arrays.h"
#include "accrue/data/token_data.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/warnings.h"

namespace accrue::tokens {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

at::Tensor longs(std::vector<int64_t> values) {
  return at::tensor(values, at::kLong);
}

DataOptions options_for(const std::string& path) {
  DataOptions options;
  options.train = path;
  options.vocabulary = 100;
  options.context = 4;
  return options;
}

Dataset load(const DataOptions& options) {
  return load_data(options, Learned::tokens, 1);
}

std::string shard(std::vector<uint16_t> tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(uint16_t)};
}

TEST(LoadTokens, ShardsAreCutIntoConsecutiveRows) {
  const std::string folder = test::fresh_folder();
  test::write_file(folder + "/b.bin", shard({11, 12, 13, 14}));
  test::write_file(folder + "/a.bin", shard({1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const Dataset dataset = load(options_for(folder));
  EXPECT_EQ(dataset.format, DataFormat::tokens);
  EXPECT_EQ(dataset.train->size(), 3);
  EXPECT_EQ(dataset.num_tokens, 12);
  EXPECT_THAT(dataset.notes, ElementsAre(HasSubstr("1 tokens left over")));
  const NamedTensors rows = dataset.train->gather(std::vector<int64_t>{2, 1});
  EXPECT_TRUE(at::equal(rows["input_ids"], longs({11, 12, 13, 14, 5, 6, 7, 8})));
  EXPECT_TRUE(at::equal(rows["labels"], rows["input_ids"]));
  EXPECT_TRUE(at::equal(rows["offsets"], longs({0, 4, 8})));
  EXPECT_EQ(dataset.train->sample_size(2), Batch(rows).sizes()[0]);
  EXPECT_ERROR(dataset.train->gather(std::vector<int64_t>{3}), IndexError,
               "sample 3 was asked for and there are 3; ids from 0 to 2 are needed");
}

TEST(LoadTokens, ShardWithoutAWholeRow) {
  const std::string path = test::write_file(test::fresh_folder() + "/a.bin", shard({1, 2, 3}));
  EXPECT_ERROR(
      load(options_for(path)), DataError,
      path +
          ": no shard holds a whole row: the longest has 3 tokens, and a row has 4; lower model.context "
          "or data.max_length");
}

TEST(LoadTokens, JsonLinesAreLaidEndToEnd) {
  const std::string path = test::write_file(test::fresh_folder() + "/t.jsonl",
                                            "{\"ids\": [1, 2, 3], \"labels\": [-100, 2, 3]}\n"
                                            "{\"ids\": [4, 5], \"labels\": [4, -100]}\n");
  const Dataset dataset = load(options_for(path));
  EXPECT_EQ(dataset.format, DataFormat::jsonl);
  const NamedTensors rows = dataset.train->gather(std::vector<int64_t>{1, 0});
  EXPECT_TRUE(at::equal(rows["input_ids"], longs({4, 5, 1, 2, 3})));
  EXPECT_TRUE(at::equal(rows["labels"], longs({4, -100, -100, 2, 3})));
  EXPECT_TRUE(at::equal(rows["offsets"], longs({0, 2, 5})));
  EXPECT_THAT(dataset.notes, ElementsAre(HasSubstr("2 rows, 5 tokens, 2 of them targets")));
  EXPECT_TRUE(Batch(rows).is_ragged());
}

TEST(LoadTokens, SharesAreChosenBySeedAndKeepTheirRows) {
  std::string text;
  for (int row = 0; row < 10; ++row) text += "{\"ids\": [" + std::to_string(row) + ", 9]}\n";
  DataOptions options = options_for(test::write_file(test::fresh_folder() + "/t.jsonl", text));
  options.valid_fraction = 0.3;
  const Dataset dataset = load(options);
  EXPECT_EQ(dataset.train->size(), 7);
  EXPECT_EQ(dataset.valid->size(), 3);
  std::set<int64_t> seen;
  for (const auto& share : {dataset.train, dataset.valid})
    for (int64_t id = 0; id < share->size(); ++id)
      seen.insert(share->gather({&id, 1})["input_ids"][0].item<int64_t>());
  EXPECT_EQ(seen.size(), 10);
}

TEST(LoadTokens, NothingToLearnFrom) {
  const std::string path =
      test::write_file(test::fresh_folder() + "/t.jsonl", "{\"ids\": [1, 2], \"labels\": [1, -100]}\n");
  EXPECT_ERROR(load(options_for(path)), DataError,
               path + ": no token is a target: all labels are -100, or every row has one token");
}

/// The loss-mask example: masks [[1,1,1,0],[1,1,0,0]], labels [[-100,7,8,-100],[-100,9,-100,3]].
NamedTensors masked_example() {
  return {{"input_ids", longs({6, 7, 8, 0, 5, 9, 0, 0}).reshape({2, 4})},
          {"attention_mask", longs({1, 1, 1, 0, 1, 1, 0, 0}).reshape({2, 4})},
          {"labels", longs({-100, 7, 8, -100, -100, 9, -100, 3}).reshape({2, 4})}};
}

TEST(TokenArrays, RectanglesLoseTheirPadding) {
  const TokenRows rows = rows_of_arrays(masked_example(), "t", {.vocabulary = 10, .context = 4});
  EXPECT_THAT(rows.ids, ElementsAre(6, 7, 8, 5, 9));
  EXPECT_THAT(rows.labels, ElementsAre(-100, 7, 8, -100, 9));
  EXPECT_THAT(rows.offsets, ElementsAre(0, 3, 5));
  EXPECT_EQ(rows.num_padded, 3);
  EXPECT_EQ(rows.num_supervised_padding, 1);
}

TEST(TokenArrays, SupervisedPaddingIsWarnedAbout) {
  const std::string path = test::fresh_folder() + "/t.safetensors";
  save_tensors(path, masked_example());
  test::Warnings warnings;
  const Dataset dataset = load(options_for(path));
  EXPECT_THAT(warnings.texts,
              ElementsAre(path + ": 1 padded positions have a label that is not -100; they are not "
                                 "counted: check how the labels were made"));
  EXPECT_EQ(dataset.num_tokens, 5);
  EXPECT_THAT(dataset.notes[0], HasSubstr("5 tokens, 3 of them targets"));
}

TEST(TokenArrays, EndToEndArraysAndAnyIntegerType) {
  const NamedTensors fields = {{"input_ids", longs({1, 2, 3, 4, 5}).to(at::kInt)},
                               {"offsets", longs({0, 2, 5})}};
  const TokenRows rows = rows_of_arrays(fields, "t", {});
  EXPECT_THAT(rows.offsets, ElementsAre(0, 2, 5));
  EXPECT_THAT(rows.labels, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_FALSE(rows.has_labels);
}

TEST(TokenArrays, RowsAreCutAtMaxLength) {
  const TokenRows rows = rows_of_arrays(masked_example(), "t", {.max_length = 2});
  EXPECT_THAT(rows.offsets, ElementsAre(0, 2, 4));
  EXPECT_EQ(rows.num_cut, 1);
}

TEST(TokenArrays, ACutMustLeaveATarget) {
  const NamedTensors fields = {{"input_ids", longs({1, 2, 3, 4}).reshape({1, 4})},
                               {"labels", longs({-100, -100, -100, 4}).reshape({1, 4})}};
  EXPECT_ERROR(rows_of_arrays(fields, "t", {.max_length = 3}), DataError,
               "t: row 0 has no label that counts left after the cut at data.max_length 3; raise it or "
               "remove the row");
}

TEST(LoadTokens, AShardMayBeginLikeJson) {
  const std::string path = test::write_file(test::fresh_folder() + "/a.bin", shard({'{', '"', 'a', '"'}));
  DataOptions options = options_for(path);
  options.vocabulary = 256;
  EXPECT_EQ(load(options).format, DataFormat::tokens);
}

TEST(LoadTokens, EveryShareIsReadInItsOwnFormatAndCountsItsOwnTokens) {
  const std::string folder = test::fresh_folder();
  std::string text;
  for (int row = 1; row <= 4; ++row) text += "{\"ids\": [1" + std::string(row > 2 ? ", 2, 3]}\n" : ", 2]}\n");
  DataOptions options = options_for(test::write_file(folder + "/t.jsonl", text));
  options.valid = folder + "/v.safetensors";
  save_tensors(options.valid, {{"input_ids", longs({1, 2, 3, 4}).reshape({2, 2})}});
  const Dataset dataset = load(options);
  EXPECT_EQ(dataset.num_tokens, 10);
  EXPECT_EQ(dataset.valid->size(), 2);
  options.valid.clear();
  options.valid_fraction = 0.5;
  const Dataset shared = load(options);
  int64_t tokens = 0;
  for (int64_t id = 0; id < shared.train->size(); ++id)
    tokens += shared.train->gather({&id, 1})["input_ids"].size(0);
  EXPECT_EQ(shared.num_tokens, tokens);
}

TEST(TokenArrays, RefusesWhatIsNoSequence) {
  const auto read = [](const NamedTensors& fields, const TokenRowOptions& options = {}) {
    return rows_of_arrays(fields, "t", options);
  };
  const at::Tensor ids = longs({1, 2, 3, 4}).reshape({2, 2});
  EXPECT_ERROR(
      read({{"x", ids}}), DataError,
      "t: there is no field \"input_ids\"; token ids [rows, positions], or [tokens] beside \"offsets\", "
      "are needed");
  EXPECT_ERROR(read({{"input_ids", ids.to(at::kFloat)}}), DataError,
               "t: field \"input_ids\" has the type Float; integers are needed");
  EXPECT_ERROR(read({{"input_ids", longs({1, 2})}}), DataError,
               "t: field \"input_ids\" has the shape [2]; [rows, positions] is needed, or [tokens] beside "
               "\"offsets\"");
  EXPECT_ERROR(read({{"input_ids", ids}, {"labels", longs({1, 2})}}), DataError,
               "t: field \"labels\" has the shape [2] and \"input_ids\" [2, 2]; both must agree");
  EXPECT_ERROR(read({{"input_ids", ids}, {"attention_mask", at::full({2, 2}, 2, at::kLong)}}), DataError,
               "t: row 0 of \"attention_mask\" holds 2; 0 or 1 is needed");
  EXPECT_ERROR(read({{"input_ids", ids}, {"attention_mask", longs({1, 1, 0, 0}).reshape({2, 2})}}), DataError,
               "t: row 1 has no token; remove it");
  EXPECT_ERROR(read({{"input_ids", ids}}, {.vocabulary = 4}), DataError,
               "t: row 1 of \"input_ids\" holds 4; ids from 0 to below 4 are needed (labels: or -100)");
  EXPECT_ERROR(
      read({{"input_ids", ids}, {"labels", longs({1, -1, 3, 4}).reshape({2, 2})}}), DataError,
      "t: row 0 of \"labels\" holds -1; ids from 0 to below 2147483648 are needed (labels: or -100)");
  EXPECT_ERROR(
      read({{"input_ids", ids}}, {.context = 1}), DataError,
      "t: row 0 has 2 tokens and model.context is 1; set data.max_length to cut longer rows, or raise the "
      "context");
  EXPECT_ERROR(read({{"input_ids", longs({1, 2})}, {"offsets", longs({0, 1})}}), DataError,
               "t: \"offsets\" must begin with 0, never fall and end with 2, the number of tokens");
  EXPECT_ERROR(read({{"input_ids", longs({1, 2})}, {"offsets", longs({0, 3, 2})}}), DataError,
               "t: \"offsets\" must begin with 0, never fall and end with 2, the number of tokens");
  EXPECT_ERROR(read({{"input_ids", longs({1, 2})}, {"offsets", longs({0, 0, 2})}}), DataError,
               "t: row 0 has no token; remove it");
}

TEST(SubsetDataTest, MapsIdsAndRefusesOthers) {
  const auto all = std::make_shared<RowData>(
      rows_of_arrays({{"input_ids", longs({1, 2, 3, 4, 5, 6}).reshape({3, 2})}}, "t", {}));
  const SubsetData part(all, {2, 0});
  EXPECT_EQ(part.size(), 2);
  EXPECT_TRUE(at::equal(part.gather(std::vector<int64_t>{1, 0})["input_ids"], longs({1, 2, 5, 6})));
  EXPECT_ERROR(SubsetData(all, {3}), IndexError,
               "sample 3 was asked for and there are 3; ids from 0 to 2 are needed");
  EXPECT_ERROR(part.gather(std::vector<int64_t>{2}), IndexError,
               "sample 2 was asked for and there are 2; ids from 0 to 1 are needed");
}

}  // namespace
}  // namespace accrue::tokens
