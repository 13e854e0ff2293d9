// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "accrue/report/record.h"

namespace accrue {

/// A file of records, one line each (metrics.jsonl, eval.jsonl). Every failure is a StateError with path and
/// reason.
class RecordFile {
 public:
  /// Goes on after update `last_update`: later lines and a half-written last line are cut off, a broken line
  /// between others is cut out with a warning. 0: the file starts empty (for eval.jsonl: a record of update 0
  /// stays).
  explicit RecordFile(std::string path, int64_t last_update = 0);
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
