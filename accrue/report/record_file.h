// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "accrue/report/record.h"

namespace accrue {

/// A file of records, one line each (metrics.jsonl, eval.jsonl). Every failure is a StateError with path and
/// reason.
class RecordFile {
 public:
  /// Without `last_update` the file starts empty. With it the file goes on after that update: later lines and
  /// what a crash left at its end are cut off, a broken line between good ones is cut out with a warning.
  explicit RecordFile(std::string path, std::optional<int64_t> last_update = std::nullopt);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  /// Appends one line; it is with the system when the call returns.
  void write(const Record& record) { append(to_json(record)); }
  void write(const EvalRecord& record) { append(to_json(record)); }
  /// Flushes to the disk: before a checkpoint that counts on the lines.
  void sync();
  const std::string& path() const noexcept { return path_; }

 private:
  void append(std::string line);

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace accrue
