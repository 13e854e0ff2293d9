// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ostream>
#include <string_view>
#include <utility>

#include "accrue/report/text.h"

namespace accrue {
namespace {

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string two_digits(int64_t number) {
  return (number < 10 ? "0" : "") + std::to_string(number);
}

std::string metrics_text(const EvalRecord& record) {
  std::string text;
  for (const auto& [name, value] : record.metrics) text += "  " + name + " " + significant(value, 6);
  return text;
}

std::string evaluation_line(const EvalRecord& record) {
  return record.split + (record.weights == "average" ? " (average)" : "") + " at update " +
         std::to_string(record.update) + metrics_text(record);
}

std::string counted(int64_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

}  // namespace

ConsoleOptions console_options(std::FILE* stream) {
  ConsoleOptions options;
  const int descriptor = ::fileno(stream);
  options.live =
      ::isatty(descriptor) == 1 && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
  winsize size{};
  if (options.live && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    options.columns = size.ws_col;
  }
  return options;
}

std::string format_duration(double seconds) {
  // Beyond a century it is no forecast.
  constexpr double kMost = 100.0 * 365 * 86400;
  if (!(seconds >= 0 && seconds <= kMost)) return "-";
  const int64_t whole = std::llround(seconds);
  const int64_t minutes = whole / 60;
  const std::string tail = ":" + two_digits(whole % 60);
  if (minutes < 60) return std::to_string(minutes) + tail;
  return std::to_string(minutes / 60) + ":" + two_digits(minutes % 60) + tail;
}

std::string update_line(const Record& record, int64_t total_updates, std::optional<double> eta_seconds) {
  std::string text = "update " + std::to_string(record.update);
  if (total_updates > 0) text += "/" + std::to_string(total_updates);
  text += "  loss " + significant(record.loss, 6) + "  lr " + significant(record.lr, 4) + "  norm " +
          significant(record.grad_norm, 4);
  text += "  " + rate_text(record.per_second(record.samples)) + " samples/s";
  if (eta_seconds) text += "  ETA " + format_duration(*eta_seconds);
  if (!record.applied) text += "  not applied: " + (record.reason.empty() ? "unknown" : record.reason);
  return text;
}

Console::Console(std::ostream& out, ConsoleOptions options) : out_(out), options_(options) {}

Console::~Console() {
  if (!live_.empty()) out_ << '\n' << std::flush;
}

void Console::header(const std::vector<std::string>& lines) {
  if (options_.verbosity == Verbosity::quiet) return;
  for (const std::string& text : lines) line(text);
}

void Console::micro_step(int64_t micro_step, int64_t of, bool skipped) {
  if (options_.verbosity != Verbosity::verbose) return;
  std::string text = "micro-step " + std::to_string(micro_step);
  if (of > 0) text += " of " + std::to_string(of);
  if (skipped) {
    line(text + ": left out, not finite");
  } else if (micro_step == of) {
    pending_micro_ = text;
  } else {
    line(text + ": accumulated");
  }
}

void Console::say_pending(const Record& record) {
  if (pending_micro_.empty()) return;
  const std::string text = std::exchange(pending_micro_, {});
  line(text + (record.applied ? ": updated" : ": accumulated, not updated"));
}

std::optional<double> Console::eta(int64_t update) const {
  if (options_.total_updates <= 0 || updates_ == 0) return std::nullopt;
  const int64_t left = options_.total_updates > update ? options_.total_updates - update : 0;
  return seconds_ / static_cast<double>(updates_) * static_cast<double>(left);
}

void Console::update(const Record& record) {
  if (options_.verbosity == Verbosity::quiet) return;
  say_pending(record);
  const double seconds = record.seconds.total.value_or(-1);
  if (seconds >= 0 && std::isfinite(seconds)) {
    seconds_ += seconds;
    ++updates_;
  }
  const std::string text = update_line(record, options_.total_updates, eta(record.update));
  if (!options_.live) return line(text);
  const double now = monotonic_seconds();
  const bool last = record.update == options_.total_updates;
  if (drawn_ >= 0 && now - drawn_ < options_.live_seconds && !last && record.applied) return;
  drawn_ = now;
  draw(text);
}

void Console::evaluation(const EvalRecord& record) {
  if (options_.verbosity != Verbosity::quiet) line(evaluation_line(record));
}

void Console::finish(const RunSummary& summary) {
  if (options_.verbosity == Verbosity::quiet) return;
  std::string text = summary.interrupted ? "interrupted: " : "done: ";
  text += counted(summary.updates, "update");
  if (summary.skipped > 0) text += " (" + std::to_string(summary.skipped) + " not applied)";
  text += ", " + counted(summary.samples, "sample") + " in " + format_duration(summary.seconds);
  if (summary.seconds > 0) {
    text += " (" + rate_text(static_cast<double>(summary.samples) / summary.seconds) + " samples/s)";
  }
  if (summary.loss) text += "  loss " + significant(summary.loss, 6);
  line(text);
  if (summary.evaluation) line(evaluation_line(*summary.evaluation));
  if (!summary.output_dir.empty()) line("records and checkpoints: " + summary.output_dir);
}

void Console::message(const std::string& text) {
  line(text);
}

void Console::line(const std::string& text) {
  const std::string live = std::exchange(live_, {});
  if (!live.empty()) out_ << "\r\033[K";
  out_ << text << '\n';
  if (!live.empty()) draw(live);
  out_ << std::flush;
}

void Console::draw(const std::string& text) {
  // The last column stays free: some terminals wrap there.
  live_ = text.substr(0, static_cast<size_t>(std::max(options_.columns - 1, 1)));
  out_ << '\r' << live_ << "\033[K" << std::flush;
}

}  // namespace accrue
