// SPDX-License-Identifier: Apache-2.0
#include "accrue/checkpoint/output_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/checkpoint.h"
#include "accrue/checkpoint/checkpoint_folder.h"

namespace accrue {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kLock = "run.lock";
/// What runs write into their output_dir beside checkpoints/ and the lock.
constexpr std::array<std::string_view, 8> kRunFiles = {"config.yaml",       "metrics.jsonl",
                                                       "eval.jsonl",        "best.json",
                                                       "model.safetensors", "model-average.safetensors",
                                                       "data.json",         "run.json"};

bool has_anything(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().filename() != kLock) return true;
  return false;
}

/// A name under which a run would write and which is taken, or nothing.
std::string taken_name(const fs::path& folder) {
  std::error_code error;
  const auto* const file = std::find_if(kRunFiles.begin(), kRunFiles.end(), [&](std::string_view name) {
    return fs::exists(folder / name, error);
  });
  if (file != kRunFiles.end()) return std::string(*file);
  return list_checkpoints(folder).empty() ? "" : "checkpoints";
}

void remove_run(const fs::path& folder) {
  std::error_code error;
  const auto remove = [&](const fs::path& path) {
    fs::remove_all(path, error);
    if (error) fail(message::output_dir_unwritable, {{"path", path.string()}, {"reason", error.message()}});
  };
  for (const CheckpointFolder& checkpoint : list_checkpoints(folder)) remove(checkpoint.path);
  for (const std::string_view name : kRunFiles) remove(folder / name);
  // Only where it is empty now: other people's files in it stay.
  fs::remove(checkpoints_folder(folder), error);
}

std::string owner_of(int descriptor) {
  std::array<char, 512> text{};
  const ssize_t length = ::pread(descriptor, text.data(), text.size(), 0);
  std::string owner(text.data(), static_cast<size_t>(std::max<ssize_t>(length, 0)));
  owner = owner.substr(0, owner.find('\n'));
  return owner.empty() ? "another process" : owner;
}

std::string this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return "process " + std::to_string(::getpid()) + " on " + host.data();
}

/// Takes the lock, or says who has it.
void take_lock(int descriptor, const fs::path& folder) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return;
  const int error_number = errno;
  if (error_number == EWOULDBLOCK)
    fail(message::output_dir_in_use, {{"path", folder.string()}, {"owner", owner_of(descriptor)}});
  // Some network file systems have no locks.
  warn(message::output_dir_not_locked,
       {{"path", folder.string()}, {"reason", std::generic_category().message(error_number)}});
}

}  // namespace

Existing existing_for_resume(const fs::path& checkpoint, const fs::path& output_dir) {
  std::error_code error;
  const bool inside = fs::equivalent(checkpoint.parent_path(), checkpoints_folder(output_dir), error);
  return inside && !error ? Existing::resume : Existing::refuse;
}

bool would_remove(const fs::path& output_dir, const fs::path& file) {
  std::error_code ignored;
  const fs::path inside =
      fs::weakly_canonical(file, ignored).lexically_relative(fs::weakly_canonical(output_dir, ignored));
  if (inside.empty()) return false;
  return *inside.begin() == "checkpoints" ||
         std::find(kRunFiles.begin(), kRunFiles.end(), inside) != kRunFiles.end();
}

OutputDir::OutputDir(fs::path path, Existing existing) : path_(std::move(path)) {
  std::error_code error;
  if (fs::exists(path_, error) && !fs::is_directory(path_, error))
    fail(message::output_dir_not_folder, {{"path", path_.string()}});
  try {
    lock_ = ::open((path_ / kLock).c_str(), O_RDWR | O_CLOEXEC);
    const int error_number = errno;
    if (existing != Existing::refuse && lock_ < 0 && error_number != ENOENT && error_number != ENOTDIR)
      fail(message::output_dir_unwritable,
           {{"path", path_.string()}, {"reason", std::generic_category().message(error_number)}});
    if (lock_ >= 0) take_lock(lock_, path_);
    check(existing);
    if (lock_ < 0) open_lock();
    // Another run may have come and gone since the first look.
    check(existing);
    const std::string owner = this_process() + "\n";
    if (::ftruncate(lock_, 0) != 0 || ::pwrite(lock_, owner.data(), owner.size(), 0) < 0)
      fail(message::output_dir_unwritable,
           {{"path", path_.string()}, {"reason", std::generic_category().message(errno)}});
    if (existing == Existing::overwrite) remove_run(path_);
  } catch (...) {
    if (lock_ >= 0) ::close(lock_);
    throw;
  }
}

OutputDir::~OutputDir() {
  ::close(lock_);
}

void OutputDir::open_lock() {
  std::error_code error;
  fs::create_directories(path_, error);
  if (!error) {
    lock_ = ::open((path_ / kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock_ < 0) error.assign(errno, std::generic_category());
  }
  if (error) fail(message::output_dir_unwritable, {{"path", path_.string()}, {"reason", error.message()}});
  take_lock(lock_, path_);
}

void OutputDir::check(Existing existing) const {
  if (existing == Existing::refuse && has_anything(path_))
    fail(message::output_dir_exists, {{"path", path_.string()}});
  if (existing != Existing::overwrite || lock_ >= 0) return;
  if (const std::string taken = taken_name(path_); !taken.empty())
    fail(message::output_dir_foreign, {{"path", path_.string()}, {"name", taken}});
}

}  // namespace accrue
