// SPDX-License-Identifier: Apache-2.0
// For sources only: it shows nlohmann::json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace accrue {

/// A checkpoint that is being written, in a temporary folder beside its place. Without `commit` nothing of it
/// is left. Failures are StateErrors of the file that could not be written.
class PendingCheckpoint {
 public:
  /// Also removes what killed saves left behind.
  PendingCheckpoint(const std::filesystem::path& output_dir, int64_t update);
  ~PendingCheckpoint();
  PendingCheckpoint(const PendingCheckpoint&) = delete;
  PendingCheckpoint& operator=(const PendingCheckpoint&) = delete;

  /// Where the files go.
  const std::filesystem::path& folder() const noexcept { return temporary_; }
  /// Adds format version, sizes and checksums of the files to `state`, writes it and COMPLETE, and takes the
  /// checkpoint's place, of which an earlier checkpoint with that name is removed. Returns the place.
  std::filesystem::path commit(nlohmann::ordered_json state);

 private:
  std::filesystem::path place_;
  std::filesystem::path temporary_;
};

/// state.json of a checkpoint without damage. CheckpointError that lists everything that is wrong.
nlohmann::ordered_json read_checkpoint_state(const std::filesystem::path& checkpoint);

}  // namespace accrue
