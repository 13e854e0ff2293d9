// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/support/errors.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Texts = std::vector<std::string>;

std::vector<int64_t> all_rows(const CsvTable& table) {
  std::vector<int64_t> rows(static_cast<size_t>(table.num_rows()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

TableTransform fit(const std::string& text, const DataOptions& options = {}, bool classification = false) {
  const CsvTable table = parse_csv(text, "t.csv");
  return fit_table(table, all_rows(table), options, classification);
}

struct Arrays : TableTargets {
  std::vector<float> x;
};

Arrays arrays_of(const TableTransform& transform, const CsvTable& table) {
  Arrays arrays;
  arrays.x.resize(static_cast<size_t>(table.num_rows() * transform.width()));
  static_cast<TableTargets&>(arrays) = apply_table(transform, table, all_rows(table), arrays.x);
  return arrays;
}

Arrays arrays_of(const TableTransform& transform, const std::string& text) {
  return arrays_of(transform, parse_csv(text, "t.csv"));
}

TEST(Table, StandardizesNumbersAndKeepsTheTarget) {
  const std::string text = "a,b,y\n1,5,10\n3,5,20\n";
  const TableTransform transform = fit(text);
  EXPECT_EQ(transform.target, "y");
  EXPECT_EQ(transform.width(), 2);
  EXPECT_EQ(transform.inputs[0].mean, 2);
  EXPECT_EQ(transform.inputs[0].deviation, 1);
  const Arrays arrays = arrays_of(transform, text);
  EXPECT_THAT(arrays.x, ElementsAre(-1, 0, 1, 0));
  EXPECT_THAT(arrays.numbers, ElementsAre(10, 20));
  EXPECT_THAT(arrays.class_ids, IsEmpty());
  DataOptions plain;
  plain.standardize = false;
  EXPECT_THAT(arrays_of(fit(text, plain), text).x, ElementsAre(1, 5, 3, 5));
}

TEST(Table, StatisticsComeFromTheTrainingRowsAlone) {
  const CsvTable table = parse_csv("a,y\n1,0\n100,0\n3,0\n,0\n", "t.csv");
  DataOptions options;
  options.missing = Missing::mean;
  const std::vector<int64_t> training = {0, 2};
  const TableTransform transform = fit_table(table, training, options, false);
  EXPECT_EQ(transform.inputs[0].mean, 2);
  EXPECT_EQ(transform.inputs[0].deviation, 1);
  EXPECT_THAT(arrays_of(transform, table).x, ElementsAre(-1, 98, 1, 0));
}

TEST(Table, ConstantColumnsAreZeroEvenWhereTheirMeanRounds) {
  std::string text = "a,y\n";
  for (int row = 0; row < 10; ++row) text += "0.1,1\n";
  const TableTransform transform = fit(text);
  EXPECT_EQ(transform.inputs[0].deviation, 0);
  for (const float value : arrays_of(transform, text).x) EXPECT_EQ(value, 0);
}

TEST(Table, TextsBecomeCategories) {
  const std::string text = "c,a,y\nred,1,0\nNA,3,0\nblue,1,0\nred,3,0\n";
  const TableTransform transform = fit(text);
  EXPECT_FALSE(transform.inputs[0].numeric);
  EXPECT_EQ(transform.inputs[0].categories, (Texts{"NA", "blue", "red"}));
  EXPECT_EQ(transform.width(), 4);
  EXPECT_THAT(arrays_of(transform, text).x, ElementsAre(0, 0, 1, -1, 1, 0, 0, 1, 0, 1, 0, -1, 0, 0, 1, 1));
}

TEST(Table, ClassesAreTextsAsWritten) {
  DataOptions options;
  options.target = "region";
  const std::string text = "region,a\nNA,1\nNone,2\nnull,3\nnan,4\nEU,5\n\"NA\",6\n";
  const TableTransform transform = fit(text, options, true);
  EXPECT_EQ(transform.classes, (Texts{"EU", "NA", "None", "nan", "null"}));
  EXPECT_THAT(arrays_of(transform, text).class_ids, ElementsAre(1, 2, 4, 3, 0, 1));
}

TEST(Table, IntegerClassesKeepEveryDigitAndTheOrderOfNumbers) {
  const std::string text =
      "a,y\n1,9007199254740993\n2,9007199254740992\n3,10\n4,9\n5,1234567890123456789012345\n";
  const TableTransform transform = fit(text, {}, true);
  EXPECT_EQ(transform.classes,
            (Texts{"9", "10", "9007199254740992", "9007199254740993", "1234567890123456789012345"}));
  EXPECT_THAT(arrays_of(transform, text).class_ids, ElementsAre(3, 2, 1, 0, 4));
}

TEST(Table, SaysWhenFp32MergesWholeNumbers) {
  test::Warnings warnings;
  const std::string merged = "a,y\n9007199254740992,1\n9007199254740993,2\n5,3\n";
  arrays_of(fit(merged), merged);
  EXPECT_THAT(warnings.texts,
              ElementsAre("column \"a\": fp32 cannot tell 9007199254740992 and 9007199254740993 "
                          "apart; both become the same input"));
  warnings.texts.clear();
  const std::string apart = "a,y\n16777217,1\n16777219,2\n16777217,3\n";
  arrays_of(fit(apart), apart);
  EXPECT_THAT(warnings.texts, IsEmpty());
  DataOptions plain;
  plain.standardize = false;
  const std::string near = "a,y\n16777216,1\n16777217,2\n";
  arrays_of(fit(near, plain), near);
  EXPECT_EQ(warnings.texts.size(), 1u);
}

TEST(Table, EveryOddCellIsListedAtOnce) {
  const std::string text = "a,b,y\n,1,1\n2,NaN,2\n3,inf,x\n4,1e400,\n5,6,inf\n";
  const TableTransform transform = fit(text);
  EXPECT_ERROR(arrays_of(transform, text), DataError,
               "t.csv:2: the cell in column 1 (\"a\") is empty; fill it, or set data.missing to mean\n"
               "t.csv:3: the cell in column 2 (\"b\") is \"NaN\"; a finite number within fp32 is needed\n"
               "t.csv:4: the cell in column 2 (\"b\") is \"inf\"; a finite number within fp32 is needed\n"
               "t.csv:5: the cell in column 2 (\"b\") is \"1e400\"; a finite number within fp32 is needed\n"
               "t.csv:4: the cell in column 3 (\"y\") is \"x\"; a number is needed\n"
               "t.csv:5: the target in column 3 (\"y\") is empty; fill it or remove the row\n"
               "t.csv:6: the cell in column 3 (\"y\") is \"inf\"; a finite number within fp32 is needed");
}

TEST(Table, OddCellsAreListedAlsoWhereAColumnHasNoOthers) {
  const std::string text = "a,b,y\n1e400,,1\ninf,2,2\n";
  EXPECT_ERROR(arrays_of(fit(text), text), DataError,
               "t.csv:2: the cell in column 1 (\"a\") is \"1e400\"; a finite number within fp32 is needed\n"
               "t.csv:3: the cell in column 1 (\"a\") is \"inf\"; a finite number within fp32 is needed\n"
               "t.csv:2: the cell in column 2 (\"b\") is empty; fill it, or set data.missing to mean");
}

TEST(Table, AtMostTwentyCellsAreListed) {
  std::string text = "a,y\n1,1\n";
  for (int row = 0; row < 30; ++row) text += "inf,1\n";
  try {
    arrays_of(fit(text), text);
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    const std::string message = error.what();
    EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 20);
    EXPECT_TRUE(message.ends_with("\nand 10 more")) << message;
  }
}

TEST(Table, MeanFillsNumbersAndLeavesCategoriesOut) {
  DataOptions options;
  options.missing = Missing::mean;
  const std::string text = "a,c,y\n1,u,1\n,v,1\n3,,1\n";
  const TableTransform transform = fit(text, options);
  EXPECT_THAT(arrays_of(transform, text).x, ElementsAre(-1, 1, 0, 0, 0, 1, 1, 0, 0));
  options.standardize = false;
  EXPECT_THAT(arrays_of(fit(text, options), text).x, ElementsAre(1, 1, 0, 2, 0, 1, 3, 0, 0));
}

TEST(Table, AFileThatComesLaterMustFit) {
  const TableTransform transform = fit("a,c,y\n1,u,no\n2,v,yes\n", {}, true);
  EXPECT_ERROR(
      arrays_of(transform, "a,c,y\n1,w,no\n2,u,maybe\nx,,\n"), DataError,
      "t.csv:4: the cell in column 1 (\"a\") is \"x\"; a number is needed\n"
      "t.csv:2: the cell in column 2 (\"c\") is \"w\", a category that the training file does not have; use "
      "one of its categories or add training rows\n"
      "t.csv:4: the cell in column 2 (\"c\") is empty; fill it, or set data.missing to mean\n"
      "t.csv:3: the target in column 3 (\"y\") is \"maybe\", a class that the training file does not have; "
      "use one of its classes or add training rows\n"
      "t.csv:4: the target in column 3 (\"y\") is empty; fill it or remove the row");
  EXPECT_ERROR(arrays_of(transform, "aa,y,z\n1,no,1\n"), DataError,
               "t.csv: there is no column \"a\"; the columns are: aa, y, z; did you mean \"aa\"?\n"
               "t.csv: there is no column \"c\"; the columns are: aa, y, z");
  const CsvTable extra = parse_csv("y,id,c,a\nyes,7,v,1.5\n", "t.csv");
  EXPECT_THAT(arrays_of(transform, extra).x, ElementsAre(0, 0, 1));
  EXPECT_EQ(unused_columns(transform, extra), Texts{"id"});
}

TEST(Table, ChoosesColumns) {
  DataOptions options;
  options.inputs = {"007", "y"};
  options.target = "1.0";
  const TableTransform transform = fit("1.0,y,n,007\n1,2,3,4\n2,3,4,6\n", options);
  EXPECT_EQ(transform.inputs[0].name, "007");
  EXPECT_EQ(transform.inputs[0].mean, 5);
  EXPECT_EQ(transform.inputs[1].mean, 2.5);
  options.inputs = {"y", "y"};
  EXPECT_ERROR(fit("1.0,y\n1,2\n", options), DataError,
               "t.csv: column \"y\" stands twice in data.inputs; give it once");
  options.inputs = {"1.0"};
  EXPECT_ERROR(fit("1.0,y\n1,2\n", options), DataError,
               "t.csv: column \"1.0\" is the target and stands in data.inputs too; leave it out of one");
  EXPECT_ERROR(fit("y\n1\n"), DataError,
               "t.csv: there is no column beside the target \"y\"; at least one input column is needed");
}

TEST(Table, ColumnsThatCannotBeInputs) {
  std::string text = "a,y\n";
  for (int row = 0; row < 65; ++row) text += "name" + std::to_string(row) + ",1\n";
  EXPECT_ERROR(fit(text), DataError,
               "t.csv:2: column \"a\" holds \"name0\", which is no number, and more than 64 different texts; "
               "make it a "
               "number, group its texts, or leave it out of data.inputs");
  text = "a,y\n";
  for (int row = 0; row < 64; ++row) text += "name" + std::to_string(row) + ",1\n";
  EXPECT_EQ(fit(text).width(), 64);
  EXPECT_ERROR(fit("a,y\n,1\n,2\n"), DataError,
               "t.csv: column \"a\" holds no number in any training row; leave it out of data.inputs");
  EXPECT_ERROR(fit("a,y\n1,u\n2,u\n", {}, true), DataError,
               "t.csv: the target column \"y\" holds 1 class(es); classification needs at least 2");
}

TEST(Table, ATypingErrorAmongNumbersIsSaid) {
  test::Warnings warnings;
  fit("a,y\n1,1\n2,1\no.5,1\n");
  EXPECT_THAT(warnings.texts,
              ElementsAre("t.csv:4: column \"a\" is read as categories since \"o.5\" is no number, "
                          "though 2 of 3 cells are"));
}

TEST(Table, LongCellsAreShortenedInMessages) {
  const std::string euros = "a,y\n1,1\n\"" + std::string(39, 'x') + "\xE2\x82\xAC" + "tail\",1\n";
  EXPECT_ERROR(
      arrays_of(fit("a,y\n1,1\n"), euros), DataError,
      "t.csv:3: the cell in column 1 (\"a\") is \"" + std::string(39, 'x') + "...\"; a number is needed");
}

TEST(TableJson, ComesBackToTheBit) {
  DataOptions options;
  options.missing = Missing::mean;
  TableTransform transform = fit("a,c,\"q\"\"\",y\n0.1,u,1,no\n0.7,\xC3\xA9,1,yes\n", options, true);
  transform.inputs[0].mean = std::nextafter(0.4, 1.0);
  EXPECT_EQ(table_transform_from_json(to_json(transform)), transform);
  const TableTransform plain = fit("a,y\n1,1\n");
  EXPECT_EQ(table_transform_from_json(to_json(plain)), plain);
}

TEST(TableJson, RefusesOtherTexts) {
  const std::string text =
      "data transformation: is not what this version writes; use the checkpoint as it was saved";
  EXPECT_ERROR(table_transform_from_json("{}"), CheckpointError, text);
  EXPECT_ERROR(table_transform_from_json("[1]"), CheckpointError, text);
  EXPECT_ERROR(table_transform_from_json(R"({"format": "accrue-table/9"})"), CheckpointError, text);
  std::string cut = to_json(fit("a,y\n1,1\n"));
  cut.replace(cut.find("\"mean\""), 6, "\"men\"");
  EXPECT_ERROR(table_transform_from_json(cut), CheckpointError, text);
  EXPECT_ERROR(table_transform_from_json("{"), CheckpointError,
               "data transformation: is not valid JSON at byte 2; the file is damaged or of another kind");
}

}  // namespace
}  // namespace accrue
