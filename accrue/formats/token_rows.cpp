// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/token_rows.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "accrue/base/messages/formats.h"
#include "accrue/formats/json_lines.h"
#include "accrue/formats/mapped_file.h"
#include "accrue/formats/utf8.h"

namespace accrue {
namespace {

using Json = nlohmann::ordered_json;

constexpr int32_t kNotCounted = -100;
constexpr size_t kMostShownKeys = 120;

// The whole numbers that a list may hold: [0, last], and -100 if `or_not_counted`.
struct Allowed {
  int64_t last = 0;
  bool or_not_counted = false;

  bool has(int64_t number) const {
    return (number >= 0 && number <= last) || (or_not_counted && number == kNotCounted);
  }
  std::string text() const {
    return "a whole number from 0 to " + std::to_string(last) + (or_not_counted ? " (or -100)" : "");
  }
};

// Fits into int64, or nothing that any list allows.
int64_t whole_number(const Json& value) {
  constexpr int64_t never = std::numeric_limits<int64_t>::min();
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    return std::in_range<int64_t>(number) ? static_cast<int64_t>(number) : never;
  }
  return value.is_number_integer() ? value.get<int64_t>() : never;
}

class RowReader {
 public:
  RowReader(const std::string& path, const TokenRowOptions& options) : path_(path), options_(options) {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    last_id_ = options.vocabulary > 0 ? std::min(options.vocabulary - 1, most) : most;
  }

  void read(int64_t line, const Json& row) {
    where_ = path_ + ":" + std::to_string(line);
    ids_key_ = find_ids(row);
    read_numbers(row, ids_key_, {last_id_, false}, ids_);
    if (ids_.empty()) fail(message::rows_empty, {{"where", where_}, {"key", ids_key_}});
    const bool has_labels = row.contains("labels");
    check_same_labels(has_labels, line);
    labels_ = ids_;
    if (has_labels) read_numbers(row, "labels", {last_id_, true}, labels_);
    const Padding padding = row.contains("attention_mask") ? leave_out(row) : Padding{};
    const bool cut = cut_row();
    const auto length = static_cast<int64_t>(ids_.size());
    if (options_.context > 0 && length > options_.context)
      fail(message::rows_context, {{"where", where_}, {"got", length}, {"limit", options_.context}});
    append(line);
    rows_.num_padded += padding.left_out;
    rows_.num_supervised_padding += has_labels ? padding.supervised : 0;
    rows_.num_cut += cut ? 1 : 0;
  }

  TokenRows finish(int64_t num_blank_lines) {
    rows_.num_blank_lines = num_blank_lines;
    return std::move(rows_);
  }

 private:
  std::string find_ids(const Json& row) const {
    const bool short_name = row.contains("ids");
    const bool long_name = row.contains("input_ids");
    if (short_name && long_name) fail(message::rows_two_ids, {{"where", where_}});
    if (short_name) return "ids";
    if (long_name) return "input_ids";
    std::string keys;
    for (const auto& [key, value] : row.items()) {
      if (keys.size() > kMostShownKeys) break;
      keys += (keys.empty() ? "" : ", ") + key;
    }
    fail(message::rows_no_ids,
         {{"where", where_}, {"keys", keys.empty() ? "none" : shortened_text(keys, kMostShownKeys)}});
  }

  // Reads row[key]; every list but the ids themselves is as long as they are.
  void read_numbers(const Json& row, const std::string& key, const Allowed& allowed,
                    std::vector<int32_t>& numbers) const {
    const Json& list = row.at(key);
    if (!list.is_array())
      fail(message::rows_list, {{"where", where_}, {"key", key}, {"got", shown_json(list)}});
    if (key != ids_key_ && list.size() != ids_.size())
      fail(message::rows_unequal, {{"where", where_},
                                   {"key", key},
                                   {"got", list.size()},
                                   {"ids", ids_key_},
                                   {"needed", ids_.size()}});
    numbers.resize(list.size());
    for (size_t place = 0; place < list.size(); ++place) {
      const int64_t number = whole_number(list[place]);
      if (!allowed.has(number))
        fail(message::rows_number, {{"where", where_},
                                    {"key", key},
                                    {"place", place},
                                    {"got", shown_json(list[place])},
                                    {"needed", allowed.text()}});
      numbers[place] = static_cast<int32_t>(number);
    }
  }

  void check_same_labels(bool has_labels, int64_t line) {
    if (first_line_ == 0) {
      first_line_ = line;
      rows_.has_labels = has_labels;
    }
    if (has_labels == rows_.has_labels) return;
    fail(message::rows_some_labels, {{"where", where_},
                                     {"got", has_labels ? "labels" : "no labels"},
                                     {"line", first_line_},
                                     {"other", has_labels ? "none" : "some"}});
  }

  // Positions that the mask leaves out, and how many of them have a label that is not -100.
  struct Padding {
    int64_t left_out = 0;
    int64_t supervised = 0;
  };

  Padding leave_out(const Json& row) {
    read_numbers(row, "attention_mask", {1, false}, mask_);
    size_t kept = 0;
    int64_t supervised = 0;
    for (size_t place = 0; place < mask_.size(); ++place) {
      if (mask_[place] == 0) {
        supervised += labels_[place] != kNotCounted ? 1 : 0;
        continue;
      }
      ids_[kept] = ids_[place];
      labels_[kept++] = labels_[place];
    }
    if (kept == 0) fail(message::rows_all_padding, {{"where", where_}});
    const auto padded = static_cast<int64_t>(mask_.size() - kept);
    ids_.resize(kept);
    labels_.resize(kept);
    return {padded, supervised};
  }

  // The label of a row's first token is nobody's target: nothing stands before it.
  bool has_target() const {
    return std::any_of(labels_.begin() + 1, labels_.end(),
                       [](int32_t label) { return label != kNotCounted; });
  }

  bool cut_row() {
    const size_t length = ids_.size();
    if (options_.max_length <= 0 || std::cmp_less_equal(length, options_.max_length)) return false;
    const bool had_target = has_target();
    ids_.resize(static_cast<size_t>(options_.max_length));
    labels_.resize(ids_.size());
    if (had_target && !has_target())
      fail(message::rows_cut_targets, {{"where", where_}, {"got", length}, {"limit", options_.max_length}});
    return true;
  }

  void append(int64_t line) {
    rows_.ids.insert(rows_.ids.end(), ids_.begin(), ids_.end());
    rows_.labels.insert(rows_.labels.end(), labels_.begin(), labels_.end());
    rows_.offsets.push_back(static_cast<int64_t>(rows_.ids.size()));
    rows_.lines.push_back(line);
  }

  const std::string& path_;
  const TokenRowOptions& options_;
  int64_t last_id_ = 0;
  TokenRows rows_;
  int64_t first_line_ = 0;
  std::string where_;
  std::string ids_key_;
  std::vector<int32_t> ids_;
  std::vector<int32_t> labels_;
  std::vector<int32_t> mask_;
};

TokenRows read_rows(std::string_view text, const std::string& path, const TokenRowOptions& options,
                    const MappedFile* file) {
  RowReader reader(path, options);
  const int64_t num_blank_lines = read_json_lines(
      text, path, [&](int64_t line, const Json& row) { reader.read(line, row); }, file);
  return reader.finish(num_blank_lines);
}

}  // namespace

TokenRows read_token_rows(const std::string& path, const TokenRowOptions& options) {
  const MappedFile file(path, Purpose::data);
  return read_rows(file.text(), path, options, &file);
}

TokenRows parse_token_rows(std::string_view text, const std::string& path, const TokenRowOptions& options) {
  return read_rows(text, path, options, nullptr);
}

}  // namespace accrue
