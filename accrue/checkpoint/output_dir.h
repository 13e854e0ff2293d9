// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace accrue {

/// What a run does with an output_dir that holds something.
enum class Existing {
  refuse,     ///< ConfigError that names the three ways out
  overwrite,  ///< removes what an earlier run wrote, and nothing else
  resume,     ///< goes on in it
};

/// `resume` if the checkpoint lies in `output_dir`, else `refuse`: a run that begins from another run's
/// checkpoint needs an output_dir of its own.
Existing existing_for_resume(const std::filesystem::path& checkpoint,
                             const std::filesystem::path& output_dir);

/// Whether `--overwrite` of this output_dir would remove that file.
bool would_remove(const std::filesystem::path& output_dir, const std::filesystem::path& file);

/// A run's output folder, created if missing and held by this process alone while the object lives. The lock
/// is `run.lock` in the folder; it goes with its process, however that ends.
class OutputDir {
 public:
  /// Throws ConfigError if the folder is not empty (`refuse`), is in use by another run (with its process and
  /// host), cannot be created or written, or holds files under a run's names although no run has been there
  /// (`overwrite`). A refusal creates and changes nothing.
  OutputDir(std::filesystem::path path, Existing existing);
  ~OutputDir();
  OutputDir(const OutputDir&) = delete;
  OutputDir& operator=(const OutputDir&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void open_lock();
  void check(Existing existing) const;

  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace accrue
