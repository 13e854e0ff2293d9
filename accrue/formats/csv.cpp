// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/csv.h"

#include <algorithm>
#include <span>
#include <unordered_map>

#include "accrue/base/messages/formats.h"
#include "accrue/formats/foreign.h"
#include "accrue/formats/mapped_file.h"
#include "accrue/formats/utf8.h"

namespace accrue {
namespace {

/// About `kPieceBytes` of a text, cut between two characters where it is UTF-8.
std::string_view first_piece(std::string_view text) {
  if (text.size() <= kPieceBytes) return text;
  size_t size = kPieceBytes;
  const auto is_inside = [&] { return (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U; };
  while (is_inside() && size > kPieceBytes - 3) --size;
  return text.substr(0, is_inside() ? kPieceBytes : size);
}

}  // namespace

// After two looks at the bytes, one pass over the text. Errors are thrown at once: behind a wrong quote every
// later row would be wrong too.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& path, const MappedFile* file)
      : file_(file), rest_(text) {
    table_.path_ = path;
  }

  CsvTable read() {
    check_text();
    if (rest_.empty()) fail(message::csv_empty, {{"path", table_.path_}});
    read_header();
    make_room();
    ForgetBehind behind(file_, rest_.data());
    while (!rest_.empty()) {
      read_row();
      behind.passed(rest_.data());
    }
    if (table_.lines_.empty()) fail(message::csv_header_only, {{"path", table_.path_}});
    return std::move(table_);
  }

 private:
  static constexpr size_t kMostCellBytes = size_t{1} << 20;

  [[noreturn]] void refuse(const Message& message, int64_t line, size_t column = 0, size_t number = 0) const {
    fail(message, {{"path", table_.path_},
                   {"line", line},
                   {"column", column},
                   {"number", number},
                   {"columns", table_.columns_.size()}});
  }

  void check_text() {
    const auto line_of = [this](size_t place) {
      return 1 + std::count(rest_.begin(), rest_.begin() + static_cast<ptrdiff_t>(place), '\n');
    };
    refuse_foreign(rest_, table_.path_, Purpose::data);
    const auto find_in_pieces = [&](const auto& find) {
      for (size_t begin = 0; begin < rest_.size();) {
        const std::string_view piece = first_piece(rest_.substr(begin));
        const size_t place = find(piece);
        if (place != std::string_view::npos) return begin + place;
        begin += piece.size();
        if (file_ != nullptr) file_->forget(std::as_bytes(std::span(piece)));
      }
      return std::string_view::npos;
    };
    const size_t nul = find_in_pieces([this](std::string_view piece) {
      num_commas_ += static_cast<size_t>(std::count(piece.begin(), piece.end(), ','));
      num_line_ends_ += static_cast<size_t>(std::count(piece.begin(), piece.end(), '\n'));
      return piece.find('\0');
    });
    if (nul != std::string_view::npos) refuse(message::csv_nul, line_of(nul));
    const size_t broken = find_in_pieces(find_broken_utf8);
    if (broken != std::string_view::npos) refuse(message::csv_broken_utf8, line_of(broken), 0, broken + 1);
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
  }

  void read_header() {
    while (skip_blank_line()) continue;
    if (rest_.empty()) fail(message::csv_empty, {{"path", table_.path_}});
    const int64_t line = line_;
    for (bool more = true; more;) {
      std::string name;
      more = read_field(name, table_.columns_.size() + 1);
      table_.columns_.push_back(std::move(name));
    }
    check_header(line);
  }

  /// At most so much comes: what grows by doubling would stand in memory twice while it is copied.
  void make_room() {
    const size_t rows = num_line_ends_ + 1;
    table_.text_.reserve(rest_.size());
    table_.ends_.reserve(std::min(num_commas_ + rows, rows * table_.columns_.size()) + 1);
    table_.lines_.reserve(rows);
  }

  void check_header(int64_t line) const {
    std::unordered_map<std::string_view, size_t> places;
    for (size_t column = 0; column < table_.columns_.size(); ++column) {
      const std::string& name = table_.columns_[column];
      if (name.empty()) refuse(message::csv_unnamed_column, line, column + 1);
      const auto [place, fresh] = places.emplace(name, column);
      if (!fresh)
        fail(message::csv_repeated_column, {{"path", table_.path_},
                                            {"line", line},
                                            {"first", place->second + 1},
                                            {"second", column + 1},
                                            {"name", name}});
    }
    if (table_.columns_.size() > 1) return;
    if (table_.columns_[0].find(';') != std::string::npos) refuse(message::csv_semicolons, line);
    if (table_.columns_[0].find('\t') != std::string::npos) refuse(message::csv_tabs, line);
  }

  bool skip_blank_line() {
    const size_t length = rest_.starts_with("\r\n") ? 2 : rest_.starts_with('\n') ? 1 : 0;
    if (length == 0) return false;
    rest_.remove_prefix(length);
    ++line_;
    ++table_.num_blank_lines_;
    return true;
  }

  void read_row() {
    if (skip_blank_line()) return;
    const int64_t line = line_;
    size_t num_fields = 0;
    for (bool more = true; more;) {
      more = read_field(table_.text_, ++num_fields);
      table_.ends_.push_back(table_.text_.size());
    }
    if (num_fields != table_.columns_.size()) refuse(message::csv_field_count, line, 0, num_fields);
    table_.lines_.push_back(line);
  }

  // Appends a field to `target`; true if another one follows in the row.
  bool read_field(std::string& target, size_t column) {
    const size_t start = target.size();
    const int64_t line = line_;
    if (rest_.starts_with('"')) {
      read_quoted(target, column);
    } else {
      const std::string_view field = rest_.substr(0, rest_.find_first_of(",\r\n"));
      if (field.find('"') != std::string_view::npos) refuse(message::csv_bare_quote, line, column);
      target.append(field);
      rest_.remove_prefix(field.size());
    }
    if (target.size() - start > kMostCellBytes) refuse(message::csv_large_cell, line, column, kMostCellBytes);
    return end_field();
  }

  void read_quoted(std::string& target, size_t column) {
    const int64_t line = line_;
    rest_.remove_prefix(1);
    while (true) {
      const size_t quote = rest_.find('"');
      if (quote == std::string_view::npos) refuse(message::csv_open_quote, line, column);
      const std::string_view part = rest_.substr(0, quote);
      target.append(part);
      line_ += std::count(part.begin(), part.end(), '\n');
      rest_.remove_prefix(quote + 1);
      if (!rest_.starts_with('"')) break;
      target += '"';
      rest_.remove_prefix(1);
    }
    if (!rest_.empty() && std::string_view(",\r\n").find(rest_[0]) == std::string_view::npos)
      refuse(message::csv_after_quote, line_, column);
  }

  bool end_field() {
    if (rest_.empty()) return false;
    const char separator = rest_[0];
    rest_.remove_prefix(1);
    if (separator == ',') return true;
    if (separator == '\r') {
      if (!rest_.starts_with('\n')) refuse(message::csv_bare_return, line_);
      rest_.remove_prefix(1);
    }
    ++line_;
    return false;
  }

  const MappedFile* file_;  // null for a text that is no file's
  std::string_view rest_;
  CsvTable table_;
  int64_t line_ = 1;
  size_t num_commas_ = 0;  // in quotes too
  size_t num_line_ends_ = 0;
};

CsvTable parse_csv(std::string_view text, const std::string& path) {
  return CsvReader(text, path, nullptr).read();
}

CsvTable read_csv(const std::string& path) {
  const MappedFile file(path, Purpose::data);
  return CsvReader(file.text(), path, &file).read();
}

std::string quote_csv(std::string_view cell) {
  if (!cell.empty() && cell.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(cell);
  std::string quoted = "\"";
  for (const char letter : cell) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + '"';
}

}  // namespace accrue
