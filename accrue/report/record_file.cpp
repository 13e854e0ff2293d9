// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/record_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/formats.h"
#include "accrue/base/messages/report.h"
#include "accrue/formats/atomic_file.h"
#include "accrue/formats/mapped_file.h"

namespace accrue {
namespace {

[[noreturn]] void fail_writing(const std::string& path, int error_number) {
  fail(message::file_unwritable, {{"path", path}, {"reason", std::generic_category().message(error_number)}});
}

/// The update of a line, or nothing if the line is no record.
std::optional<int64_t> update_of(std::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto update = json.find("update");
  if (update == json.end() || !update->is_number_integer()) return std::nullopt;
  return update->get<int64_t>();
}

/// The lines of `text` up to update `last_update`. Broken lines go; those before a good one are told to the
/// user.
std::string kept_lines(const std::string& path, std::string_view text, int64_t last_update) {
  std::string kept;
  std::vector<int64_t> broken;
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::optional<int64_t> update = update_of(line);
    if (!update) {
      broken.push_back(number);
      continue;
    }
    for (const int64_t cut : std::exchange(broken, {})) {
      warn(message::record_line_broken, {{"path", path}, {"line", cut}});
    }
    if (*update <= last_update) kept.append(line).append("\n");
  }
  return kept;
}

void cut_back(const std::string& path, int64_t last_update) {
  if (!std::filesystem::exists(path)) return;
  const MappedFile file(path, Purpose::checkpoint);
  const std::string kept = kept_lines(path, file.text(), last_update);
  if (kept != file.text()) write_file_atomically(path, kept);
}

}  // namespace

RecordFile::RecordFile(std::string path, std::optional<int64_t> last_update) : path_(std::move(path)) {
  if (last_update) cut_back(path_, *last_update);
  const int start = last_update ? 0 : O_TRUNC;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | start, 0666);
  if (descriptor_ < 0) fail_writing(path_, errno);
}

RecordFile::~RecordFile() {
  ::close(descriptor_);
}

void RecordFile::append(std::string line) {
  line += '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_writing(path_, errno);
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

void RecordFile::sync() {
  // EINVAL: a pipe or a device, which has nothing to flush.
  if (::fsync(descriptor_) != 0 && errno != EINVAL) fail_writing(path_, errno);
}

}  // namespace accrue
