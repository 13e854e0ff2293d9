// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/csv.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "accrue/formats/utf8.h"
#include "tests/formats/bad_files.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/resident.h"

namespace accrue {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(const CsvTable& table) {
  Rows rows(static_cast<size_t>(table.num_rows()));
  for (size_t row = 0; row < rows.size(); ++row)
    for (size_t column = 0; column < table.columns().size(); ++column)
      rows[row].emplace_back(table.cell(static_cast<int64_t>(row), column));
  return rows;
}

TEST(Csv, ReadingKeepsLittleOfALargeFileInTheProcess) {
  // Blank lines are most of it, so that the table is small.
  std::string text = "a\n";
  text.append(size_t{64} << 20, '\n');
  const std::string path = test::write_file(test::fresh_folder() + "/f.csv", text + "1\n");
  const test::ResidentGrowth growth;
  EXPECT_EQ(read_csv(path).num_rows(), 1);
  EXPECT_LT(growth.mebibytes(), 16);  // pieces of 4 MiB, of a file of 64
}

TEST(Csv, CharactersAtThePiecesOfALargeFileAreWhole) {
  for (const std::string end : {"\xF0\x9F\x98\x80", "\xE2\x82\xAC", "\xC3\xA9", "\xF0\x9F\x98",
                                "\x80\x80\x80\x80", "\xF0\x9F\x98\x80\x80", "\xE2\x82\xAC\x80"})
    for (size_t start = (size_t{4} << 20) - 4; start <= size_t{4} << 20; ++start) {
      std::string text = "a\n" + std::string(start - 2, '\n');
      const std::string whole = text + end + "\n1\n";
      const size_t broken = find_broken_utf8(whole);
      if (broken == std::string::npos) {
        EXPECT_EQ(parse_csv(whole, "f").num_rows(), 2) << start;
        continue;
      }
      const std::string message = "f:" + std::to_string(start) + ": is not valid UTF-8 at byte " +
                                  std::to_string(broken + 1) + " of the file; save it as UTF-8";
      EXPECT_ERROR(parse_csv(whole, "f"), DataError, message);
    }
}

TEST(Csv, ReadsCellsAsWritten) {
  const CsvTable table = parse_csv("a,007,\"b,c\"\n1, 2 ,NA\n\"x\ny\",\"he said \"\"no\"\"\",\n", "t.csv");
  EXPECT_EQ(table.columns(), (std::vector<std::string>{"a", "007", "b,c"}));
  EXPECT_EQ(rows_of(table), (Rows{{"1", " 2 ", "NA"}, {"x\ny", "he said \"no\"", ""}}));
  EXPECT_EQ(table.line(0), 2);
  EXPECT_EQ(table.line(1), 3);
  EXPECT_EQ(table.path(), "t.csv");
}

TEST(Csv, LineEndsMarksAndTheLastLine) {
  const Rows expected = {{"1", "2"}, {"3", "4"}};
  EXPECT_EQ(rows_of(parse_csv("a,b\n1,2\n3,4\n", "")), expected);
  EXPECT_EQ(rows_of(parse_csv("a,b\n1,2\n3,4", "")), expected);
  EXPECT_EQ(rows_of(parse_csv("a,b\r\n1,2\r\n3,4\r\n", "")), expected);
  EXPECT_EQ(rows_of(parse_csv("\xEF\xBB\xBF\"a\",b\n1,2\n3,4\n", "")), expected);
  EXPECT_EQ(rows_of(parse_csv("a,b\n1,2\n3,\"4\"", "")), expected);
  EXPECT_EQ(rows_of(parse_csv("a,b\n1,\n", "")), (Rows{{"1", ""}}));
}

TEST(Csv, BlankLinesAreSkippedAndCounted) {
  const CsvTable table = parse_csv("\na,b\n\n1,2\r\n\r\n3,4\n\n", "");
  EXPECT_EQ(rows_of(table), (Rows{{"1", "2"}, {"3", "4"}}));
  EXPECT_EQ(table.num_blank_lines(), 4);
  EXPECT_EQ(table.line(0), 4);
  EXPECT_EQ(table.line(1), 6);
  EXPECT_EQ(rows_of(parse_csv("a\n\"\"\nx\n", "")), (Rows{{""}, {"x"}}));
}

TEST(Csv, OnlyLineFeedsEndALine) {
  const std::string separators = "x\xE2\x80\xA8y\xE2\x80\xA9z\xC2\x85";
  EXPECT_EQ(rows_of(parse_csv("a\n" + separators + "\n", "")), (Rows{{separators}}));
}

TEST(Csv, CellsUpToOneMebibyteAreRead) {
  const std::string large(size_t{1} << 20, 'x');
  EXPECT_EQ(parse_csv("a\n" + large + "\n", "").cell(0, 0), large);
}

TEST(Csv, EveryBadFileIsExplained) {
  const std::string folder = test::fresh_folder();
  for (const test::BadFile& bad : test::bad_csv()) {
    SCOPED_TRACE(bad.id);
    const std::string path = test::write_file(folder + "/" + bad.id, bad.bytes);
    EXPECT_ERROR(read_csv(path), DataError, test::replaced(bad.text, "FILE", path));
    EXPECT_EQ(bad.kind, "DataError");
  }
  EXPECT_GE(test::bad_csv().size(), 15u);
}

RC_GTEST_PROP(CsvProperty, QuotedCellsComeBack, ()) {
  const auto letter = rc::gen::elementOf(std::string("ab ,\"\r\n;'\t1.-"));
  const auto cell = rc::gen::container<std::string>(letter);
  const auto width = *rc::gen::inRange<size_t>(1, 5);
  const auto rows =
      *rc::gen::nonEmpty(rc::gen::container<Rows>(rc::gen::container<std::vector<std::string>>(width, cell)));
  std::string text;
  for (size_t column = 0; column < width; ++column) text += (column ? ",c" : "c") + std::to_string(column);
  for (const auto& row : rows) {
    text += "\n";
    for (size_t column = 0; column < width; ++column) text += (column ? "," : "") + quote_csv(row[column]);
  }
  if (*rc::gen::arbitrary<bool>()) text += "\n";
  RC_ASSERT(rows_of(parse_csv(text, "")) == rows);
}

// Whatever the bytes, the answer is a table or a DataError.
RC_GTEST_PROP(CsvProperty, AnyBytesAreReadOrRefused, ()) {
  const auto letter = rc::gen::elementOf(std::string("ab,,\"\"\r\n\n\n\xC3\xA9"));
  const auto text = *rc::gen::container<std::string>(letter);
  try {
    RC_ASSERT(parse_csv(text, "").num_rows() > 0);
  } catch (const DataError&) {
  }
}

}  // namespace
}  // namespace accrue
