// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/token_rows.h"

#include <gtest/gtest.h>

#include "tests/formats/bad_data_files.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/resident.h"

namespace accrue {
namespace {

using Ids = std::vector<int32_t>;
using Places = std::vector<int64_t>;

TEST(TokenRows, RowsLieEndToEnd) {
  const TokenRows rows = parse_token_rows(
      "{\"ids\": [1, 2, 3]}\n{\"text\": {\"a\": [1]}, \"input_ids\": [7]}", "f", {.vocabulary = 8});
  EXPECT_EQ(rows.ids, (Ids{1, 2, 3, 7}));
  EXPECT_EQ(rows.labels, rows.ids);
  EXPECT_EQ(rows.offsets, (Places{0, 3, 4}));
  EXPECT_EQ(rows.lines, (Places{1, 2}));
  EXPECT_EQ(rows.size(), 2);
  EXPECT_FALSE(rows.has_labels);
  EXPECT_EQ(rows.num_blank_lines + rows.num_padded + rows.num_supervised_padding + rows.num_cut, 0);
}

TEST(TokenRows, IdsGoUpToTheLargestOfTheirType) {
  EXPECT_EQ(parse_token_rows("{\"ids\": [2147483647, 0]}", "f", {}).ids, (Ids{2147483647, 0}));
  EXPECT_ERROR(parse_token_rows("{\"ids\": [2147483648]}", "f", {}), DataError,
               "f:1: ids[0] is 2147483648; a whole number from 0 to 2147483647 is needed");
}

TEST(TokenRows, OnlyALineFeedEndsALine) {
  const std::string text = "x\xE2\x80\xA8y\xE2\x80\xA9z\xC2\x85";
  const std::string line = "{\"text\": \"" + text + "\", \"ids\": [4]}";
  EXPECT_EQ(parse_token_rows(line + "\r\n" + line, "f", {}).ids, (Ids{4, 4}));
}

TEST(TokenRows, AMarkAndBlankLinesLoseNoRow) {
  const TokenRows rows = parse_token_rows(
      "\xEF\xBB\xBF{\"ids\": [1]}\r\n\r\n{\"ids\": [2]}\n  \t\n\n{\"ids\": [3], \"t\": \"\\u0000\"}", "f",
      {});
  EXPECT_EQ(rows.ids, (Ids{1, 2, 3}));
  EXPECT_EQ(rows.lines, (Places{1, 3, 6}));
  EXPECT_EQ(rows.num_blank_lines, 3);
}

TEST(TokenRows, PaddedPositionsAreLeftOutAndCounted) {
  const TokenRows rows = parse_token_rows(
      "{\"ids\": [0, 5, 6, 0], \"labels\": [-100, 5, -100, 9], \"attention_mask\": [0, 1, 1, 0]}\n"
      "{\"ids\": [7, 8], \"labels\": [-100, 8]}\n",
      "f", {.vocabulary = 10});
  EXPECT_TRUE(rows.has_labels);
  EXPECT_EQ(rows.ids, (Ids{5, 6, 7, 8}));
  EXPECT_EQ(rows.labels, (Ids{5, -100, -100, 8}));
  EXPECT_EQ(rows.offsets, (Places{0, 2, 4}));
  EXPECT_EQ(rows.num_padded, 2);
  EXPECT_EQ(rows.num_supervised_padding, 1);
  const TokenRows bare = parse_token_rows("{\"ids\": [3, 0, 0], \"attention_mask\": [1, 0, 0]}", "f", {});
  EXPECT_EQ(bare.labels, (Ids{3}));
  EXPECT_EQ(bare.num_padded, 2);
  EXPECT_EQ(bare.num_supervised_padding, 0);
}

TEST(TokenRows, RowsAreCutBeforeTheContextIsLookedAt) {
  const TokenRows rows = parse_token_rows(
      "{\"ids\": [1, 2, 3, 4, 5, 6], \"labels\": [-100, -100, -100, -100, 5, 6]}\n"
      "{\"ids\": [1, 2], \"labels\": [-100, -100]}\n",
      "f", {.context = 5, .max_length = 5});
  EXPECT_EQ(rows.ids, (Ids{1, 2, 3, 4, 5, 1, 2}));
  EXPECT_EQ(rows.labels, (Ids{-100, -100, -100, -100, 5, -100, -100}));
  EXPECT_EQ(rows.num_cut, 1);
}

TEST(TokenRows, PaddingIsLeftOutBeforeTheCut) {
  const TokenRows rows = parse_token_rows("{\"ids\": [0, 0, 1, 2], \"attention_mask\": [0, 0, 1, 1]}", "f",
                                          {.context = 2, .max_length = 2});
  EXPECT_EQ(rows.ids, (Ids{1, 2}));
  EXPECT_EQ(rows.num_cut, 0);
}

TEST(TokenRows, ACutThatTakesEveryTargetIsRefused) {
  const std::string message =
      "f:1: has 5 tokens, and no label that counts is left of them after the cut at max_length 4; raise "
      "max_length or remove the row";
  EXPECT_ERROR(parse_token_rows("{\"ids\": [1, 2, 3, 4, 5], \"labels\": [-100, -100, -100, -100, 5]}", "f",
                                {.max_length = 4}),
               DataError, message);
  EXPECT_ERROR(parse_token_rows("{\"ids\": [1, 2, 3, 4, 5], \"labels\": [1, -100, -100, -100, 5]}", "f",
                                {.max_length = 4}),
               DataError, message);
  EXPECT_NO_THROW(parse_token_rows("{\"ids\": [1, 2, 3, 4, 5], \"labels\": [5, -100, -100, -100, -100]}", "f",
                                   {.max_length = 4}));
}

TEST(TokenRows, EveryBadFileIsExplained) {
  const std::string folder = test::fresh_folder();
  for (const test::BadFile& bad : test::bad_token_rows()) {
    SCOPED_TRACE(bad.id);
    const std::string path = test::write_file(folder + "/" + bad.id, bad.bytes);
    const test::ResidentGrowth growth;
    EXPECT_ERROR(read_token_rows(path, {.vocabulary = 100, .context = 6, .max_length = 8}), DataError,
                 test::replaced(bad.text, "FILE", path));
    EXPECT_LT(growth.mebibytes(), 16);
  }
  EXPECT_GE(test::bad_token_rows().size(), 8u);
}

}  // namespace
}  // namespace accrue
