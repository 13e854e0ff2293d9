// SPDX-License-Identifier: Apache-2.0
// Where checkpoints lie: OUTPUT_DIR/checkpoints/update-000123/ with these files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace accrue {

/// The files of one checkpoint. `COMPLETE` is written last; it holds size and checksum of state.json, which
/// holds those of the others.
namespace checkpoint_file {
inline constexpr const char* kModel = "model.safetensors";          ///< parameters and buffers
inline constexpr const char* kOptimizer = "optimizer.safetensors";  ///< state of the optimizer
inline constexpr const char* kRandom = "random.safetensors";        ///< state of the default generator
inline constexpr const char* kConfig = "config.yaml";               ///< the resolved run
inline constexpr const char* kTransform = "data.json";              ///< the data's transformation
inline constexpr const char* kPlan = "plan.json";    ///< how batches are cut, if a planner did it
inline constexpr const char* kState = "state.json";  ///< counters, positions, versions
inline constexpr const char* kComplete = "COMPLETE";
}  // namespace checkpoint_file

/// Version of this layout; a checkpoint of another one is refused.
inline constexpr int64_t kCheckpointFormat = 1;

/// A folder that has a checkpoint's name; it may be damaged.
struct CheckpointFolder {
  int64_t update = 0;
  std::filesystem::path path;
};

/// "update-000123": at least six digits.
std::string checkpoint_name(int64_t update);

/// OUTPUT_DIR/checkpoints.
std::filesystem::path checkpoints_folder(const std::filesystem::path& output_dir);

/// The folders called update-DIGITS, with any number of digits, in ascending order of that number. Others are
/// left out.
std::vector<CheckpointFolder> list_checkpoints(const std::filesystem::path& output_dir);

/// What is wrong with a checkpoint, as a text without its path: a missing file, a wrong size or checksum,
/// another format version. Nothing if it is complete. Reads every byte.
std::optional<std::string> checkpoint_damage(const std::filesystem::path& checkpoint);

/// The complete checkpoint with the highest number; a newer one that is damaged is skipped with a warning
/// that names it and says what is wrong.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& output_dir);

/// The checkpoint that `where` means: itself, or the latest of a run's output_dir. CheckpointError if there
/// is none, saying what was looked for and what was found damaged.
std::filesystem::path find_checkpoint(const std::filesystem::path& where);

/// What best.json of an output_dir names.
struct BestCheckpoint {
  std::filesystem::path path;
  bool average = false;  ///< the averaged weights in it were measured
};
/// CheckpointError if there is no best, or its checkpoint is gone or damaged.
BestCheckpoint best_checkpoint(const std::filesystem::path& output_dir);

/// Removes the complete checkpoints of updates up to `newest` except the last `keep` of them and `best`. What
/// cannot be removed is a warning.
void keep_last_checkpoints(const std::filesystem::path& output_dir, int64_t newest, int64_t keep,
                           std::optional<int64_t> best);

/// Removes the checkpoints of updates after `update`, with a warning that names them: the lost tail of a run
/// that went on from an earlier checkpoint. For after its first save.
void discard_later_checkpoints(const std::filesystem::path& output_dir, int64_t update);

}  // namespace accrue
