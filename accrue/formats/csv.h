// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace accrue {

/// A CSV file (RFC 4180, first line is the header) as text: every cell as written, without its quotes.
class CsvTable {
 public:
  /// The path as given, for messages.
  const std::string& path() const noexcept { return path_; }
  const std::vector<std::string>& columns() const noexcept { return columns_; }
  int64_t num_rows() const noexcept { return static_cast<int64_t>(lines_.size()); }
  /// The cell in row [0, num_rows()) and column [0, columns().size()).
  std::string_view cell(int64_t row, size_t column) const noexcept {
    const size_t index = static_cast<size_t>(row) * columns_.size() + column;
    return std::string_view(text_).substr(ends_[index], ends_[index + 1] - ends_[index]);
  }
  /// The line of the file, from 1, on which a row begins.
  int64_t line(int64_t row) const noexcept { return lines_[static_cast<size_t>(row)]; }
  /// Wholly empty lines, which are skipped.
  int64_t num_blank_lines() const noexcept { return num_blank_lines_; }

 private:
  friend class CsvReader;

  std::string path_;
  std::vector<std::string> columns_;
  std::string text_;
  std::vector<size_t> ends_{0};
  std::vector<int64_t> lines_;
  int64_t num_blank_lines_ = 0;
};

/// Reads a text as CSV. Throws DataError with `path` and line for a wrong number of fields, quotes that are
/// not closed or have text after them, a cell above 1 MiB, NUL bytes, broken UTF-8, a repeated or empty
/// column name, and for a file without rows.
CsvTable parse_csv(std::string_view text, const std::string& path);
CsvTable read_csv(const std::string& path);

/// A cell as it stands in a file: quoted where it must be.
std::string quote_csv(std::string_view cell);

}  // namespace accrue
