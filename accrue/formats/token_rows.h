// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace accrue {

/// Sequences of token ids laid end to end: row i has tokens [offsets[i], offsets[i + 1]).
struct TokenRows {
  std::vector<int32_t> ids;
  std::vector<int32_t> labels;  ///< as long as ids: an id, or -100 where the loss does not count it
  std::vector<int64_t> offsets{0};
  std::vector<int64_t> lines;  ///< the line of the file, from 1, of each row; empty for arrays
  bool has_labels = false;     ///< else labels equal ids
  int64_t num_blank_lines = 0;
  int64_t num_padded = 0;              ///< positions that a mask left out
  int64_t num_supervised_padding = 0;  ///< of them with a label that is not -100 (it is not counted)
  int64_t num_cut = 0;                 ///< rows that were cut at max_length

  int64_t size() const noexcept { return static_cast<int64_t>(offsets.size()) - 1; }
};

struct TokenRowOptions {
  int64_t vocabulary = 0;  ///< ids must be below it; 0: not checked
  int64_t context = 0;     ///< a longer row is an error; 0: no limit
  int64_t max_length = 0;  ///< rows are cut after this many tokens, before `context` is looked at; 0: never
};

/// JSON lines of objects with `ids` or `input_ids` (a list of whole numbers), and if wanted `labels` (as
/// long, -100 where not counted; all rows or none) and `attention_mask` (as long, 0 or 1: positions with 0
/// are left out). Other keys are ignored. Only LF ends a line (CR before it allowed); blank lines are
/// counted, a byte order mark may open the file. DataErrors with path:line: broken JSON or UTF-8, not an
/// object, no ids or both, a wrong type, an id that is negative or too large, unequal lengths, an empty row,
/// a row longer than `context`, no row at all; of each file at most 20 at once.
TokenRows read_token_rows(const std::string& path, const TokenRowOptions& options);
TokenRows parse_token_rows(std::string_view text, const std::string& path, const TokenRowOptions& options);

}  // namespace accrue
