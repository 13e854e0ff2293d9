// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/json_lines.h"

#include <algorithm>

#include "accrue/base/error.h"
#include "accrue/base/messages/formats.h"
#include "accrue/formats/foreign.h"
#include "accrue/formats/strict_json.h"
#include "accrue/formats/utf8.h"

namespace accrue {
namespace {

constexpr std::string_view kMark = "\xEF\xBB\xBF";
constexpr int64_t kMostProblems = 20;
constexpr size_t kMostShownBytes = 40;

// The errors of single lines, gathered without bound on their number and with one on their texts.
class LineProblems {
 public:
  void add(const DataError& error) {
    if (++count_ > kMostProblems) return;
    problems_.add({error.kind(), error.code(), "{text}"}, {{"text", error.what()}});
  }

  void throw_if_any(const std::string& path) {
    if (count_ > kMostProblems)
      problems_.add(message::lines_more, {{"path", path}, {"number", count_ - kMostProblems}});
    problems_.throw_if_any();
  }

 private:
  Problems problems_;
  int64_t count_ = 0;
};

std::string hexadecimal(char byte) {
  constexpr const char* digits = "0123456789ABCDEF";
  const auto value = static_cast<unsigned char>(byte);
  return {digits[value >> 4], digits[value & 15]};
}

nlohmann::ordered_json parse_row(std::string_view text, const std::string& path, int64_t line) {
  const std::string where = path + ":" + std::to_string(line);
  const size_t broken = find_broken_utf8(text);
  if (broken != std::string_view::npos)
    fail(message::lines_broken_utf8, {{"where", where},
                                      {"column", count_characters(text.substr(0, broken)) + 1},
                                      {"byte", hexadecimal(text[broken])}});
  if (text.starts_with(kMark)) fail(message::lines_mark, {{"where", where}});
  nlohmann::ordered_json row = parse_json_line(text, path, line);
  if (!row.is_object()) fail(message::lines_no_object, {{"where", where}, {"got", shown_json(row)}});
  return row;
}

}  // namespace

int64_t read_json_lines(std::string_view text, const std::string& path, const JsonLineReader& read,
                        const MappedFile* file) {
  refuse_foreign(text, path, Purpose::data);
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  LineProblems problems;
  int64_t num_blank = 0;
  int64_t num_lines = 0;
  ForgetBehind behind(file, text.data());
  while (!text.empty()) {
    behind.passed(text.data());
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++num_lines;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      ++num_blank;
      continue;
    }
    try {
      read(num_lines, parse_row(line, path, num_lines));
    } catch (const DataError& error) {
      problems.add(error);
    }
  }
  problems.throw_if_any(path);
  if (num_blank == num_lines) fail(message::lines_none, {{"path", path}});
  return num_blank;
}

std::string shown_json(const nlohmann::ordered_json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return shortened_text(value.dump(), kMostShownBytes);
}

}  // namespace accrue
