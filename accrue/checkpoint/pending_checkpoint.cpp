// SPDX-License-Identifier: Apache-2.0
#include "accrue/checkpoint/pending_checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

#include "accrue/base/checksum.h"
#include "accrue/base/error.h"
#include "accrue/base/messages/checkpoint.h"
#include "accrue/base/messages/formats.h"
#include "accrue/checkpoint/checkpoint_folder.h"
#include "accrue/formats/atomic_file.h"
#include "accrue/formats/mapped_file.h"
#include "accrue/formats/strict_json.h"

namespace accrue {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kTemporary = ".tmp-update-";

void check(const std::error_code& error, const fs::path& path) {
  if (error) fail(message::file_unwritable, {{"path", path.string()}, {"reason", error.message()}});
}

Json sum_of(const fs::path& file) {
  const MappedFile mapped(file.string(), Purpose::checkpoint);
  uint32_t sum = 0;
  for (std::span<const std::byte> rest = mapped.bytes(); !rest.empty();) {
    const std::span<const std::byte> piece = rest.first(std::min(kPieceBytes, rest.size()));
    sum = crc32(piece, sum);
    mapped.forget(piece);
    rest = rest.subspan(piece.size());
  }
  return {{"bytes", mapped.bytes().size()}, {"crc32", sum}};
}

Json sums_of(const fs::path& folder, const std::set<std::string>& names) {
  Json sums = Json::object();
  for (const std::string& name : names) sums[name] = sum_of(folder / name);
  return sums;
}

/// Adds what differs between the files and the sums that were written with them.
void compare(const fs::path& folder, const Json& sums, std::vector<std::string>& damage) {
  for (const auto& [name, sum] : sums.items()) {
    std::error_code error;
    if (!fs::exists(folder / name, error)) {
      damage.push_back(name + " is missing");
      continue;
    }
    try {
      const Json now = sum_of(folder / name);
      if (now.at("bytes") != sum.at("bytes"))
        damage.push_back(name + " has " + now["bytes"].dump() + " bytes instead of " +
                         sum.at("bytes").dump());
      else if (now != sum)
        damage.push_back(name + " has another checksum than when it was written");
    } catch (const Error& unreadable) {
      damage.emplace_back(unreadable.what());
    }
  }
}

Json read_json(const fs::path& file) {
  const MappedFile mapped(file.string(), Purpose::checkpoint);
  return parse_json(mapped.text(), file.filename().string(), Purpose::checkpoint);
}

std::vector<std::string> damage_of(const fs::path& checkpoint) {
  std::vector<std::string> damage;
  std::error_code error;
  if (!fs::exists(checkpoint / checkpoint_file::kComplete, error)) {
    damage.emplace_back("COMPLETE is missing");
    return damage;
  }
  try {
    const Json complete = read_json(checkpoint / checkpoint_file::kComplete);
    if (complete.at("format") != kCheckpointFormat) {
      damage.push_back("it has format version " + complete["format"].dump() +
                       " and this program reads version " + std::to_string(kCheckpointFormat));
      return damage;
    }
    compare(checkpoint, complete.at("files"), damage);
    if (damage.empty())
      compare(checkpoint, read_json(checkpoint / checkpoint_file::kState).at("files"), damage);
  } catch (const Error& unreadable) {
    damage.emplace_back(unreadable.what());
  } catch (const Json::exception&) {
    damage.emplace_back("COMPLETE or state.json does not have the entries of a checkpoint");
  }
  return damage;
}

/// Puts a folder into its place at once; one that is there already comes back as `temporary`.
void take_place(const fs::path& temporary, const fs::path& place) {
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0) return;
  // No such place yet, or a file system that cannot exchange.
  std::error_code error;
  const fs::path away = temporary.string() + "-replaced";
  if (fs::exists(place, error)) fs::rename(place, away, error);
  check(error, place);
  fs::rename(temporary, place, error);
  check(error, place);
  fs::remove_all(away, error);
}

}  // namespace

std::optional<std::string> checkpoint_damage(const fs::path& checkpoint) {
  const std::vector<std::string> damage = damage_of(checkpoint);
  if (damage.empty()) return std::nullopt;
  std::string text;
  for (const std::string& part : damage) text += (text.empty() ? "" : "; ") + part;
  return text;
}

Json read_checkpoint_state(const fs::path& checkpoint) {
  if (const std::optional<std::string> damage = checkpoint_damage(checkpoint))
    fail(message::checkpoint_damaged, {{"path", checkpoint.string()}, {"damage", *damage}});
  return read_json(checkpoint / checkpoint_file::kState);
}

PendingCheckpoint::PendingCheckpoint(const fs::path& output_dir, int64_t update) {
  const fs::path folder = checkpoints_folder(output_dir);
  place_ = folder / checkpoint_name(update);
  temporary_ = folder / (".tmp-" + checkpoint_name(update) + "-" + std::to_string(::getpid()));
  std::error_code error;
  fs::create_directories(folder, error);
  check(error, folder);
  std::vector<fs::path> leftovers;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with(kTemporary)) leftovers.push_back(entry.path());
  check(error, folder);
  for (const fs::path& leftover : leftovers) fs::remove_all(leftover, error);
  fs::create_directory(temporary_, error);
  check(error, temporary_);
}

PendingCheckpoint::~PendingCheckpoint() {
  std::error_code error;
  fs::remove_all(temporary_, error);
}

fs::path PendingCheckpoint::commit(Json state) {
  std::error_code error;
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(temporary_, error))
    names.insert(entry.path().filename().string());
  check(error, temporary_);
  state["format"] = kCheckpointFormat;
  state["files"] = sums_of(temporary_, names);
  write_file_atomically((temporary_ / checkpoint_file::kState).string(), state.dump(1) + "\n");
  const Json complete = {{"format", kCheckpointFormat},
                         {"files", sums_of(temporary_, {checkpoint_file::kState})}};
  write_file_atomically((temporary_ / checkpoint_file::kComplete).string(), complete.dump() + "\n");
  take_place(temporary_, place_);
  sync_folder(place_.parent_path().string());
  return place_;
}

}  // namespace accrue
