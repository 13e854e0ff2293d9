// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "accrue/report/record.h"

namespace accrue {

enum class Verbosity { quiet, normal, verbose };

struct ConsoleOptions {
  Verbosity verbosity = Verbosity::normal;
  bool live = false;          ///< one line that is written over, instead of a line an update
  int columns = 80;           ///< the live line's limit
  double live_seconds = 0.1;  ///< the live line is drawn no more often than this
  int64_t total_updates = 0;  ///< of the run; 0: not known
};

/// `live` and `columns` for a stream: live on a terminal unless NO_COLOR is set (to anything but nothing) or
/// TERM is dumb.
ConsoleOptions console_options(std::FILE* stream);

/// What is said at a run's end.
struct RunSummary {
  int64_t updates = 0;  ///< made in this session, applied or not
  int64_t skipped = 0;  ///< of them not applied
  int64_t samples = 0;
  double seconds = 0;               ///< monotonic
  std::optional<double> loss = {};  ///< of the last update
  std::optional<EvalRecord> evaluation = {};
  std::string output_dir = {};  ///< where record and checkpoints lie; empty: not said
  bool interrupted = false;
};

/// Progress for people: header, a line an update, micro-steps, evaluations, summary. With `quiet` only
/// `message` speaks.
class Console {
 public:
  Console(std::ostream& out, ConsoleOptions options);
  /// Ends a live line.
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// Lines above the run: the resolved configuration, how the micro-batches came about.
  void header(const std::vector<std::string>& lines);
  /// "micro-step 2 of 4: accumulated" with `verbose`; the last one of a window is said by `update`
  /// ("updated"). `of` is 0 where not known; `skipped`: left out for being non-finite.
  void micro_step(int64_t micro_step, int64_t of, bool skipped = false);
  void update(const Record& record);
  void evaluation(const EvalRecord& record);
  void finish(const RunSummary& summary);
  /// A line of its own (a warning), whatever the verbosity; a live line is cleared first.
  void message(const std::string& text);

 private:
  void line(const std::string& text);
  void draw(const std::string& text);
  void say_pending(const Record& record);
  std::optional<double> eta(int64_t update) const;

  std::ostream& out_;
  ConsoleOptions options_;
  std::string live_;           // what stands on the live line
  std::string pending_micro_;  // the window's last micro-step, until its update is known
  double drawn_ = -1;          // when the live line was drawn, in seconds on the monotonic clock
  int64_t updates_ = 0;        // seen with their seconds
  double seconds_ = 0;         // of those
};

/// Seconds as "0:05", "12:34" or "1:02:03"; "-" for what is no time.
std::string format_duration(double seconds);
/// The line of one update, "update 12/340  loss 0.5  lr 0.001  norm 1.2  850 samples/s  ETA 1:02".
std::string update_line(const Record& record, int64_t total_updates, std::optional<double> eta_seconds);

}  // namespace accrue
