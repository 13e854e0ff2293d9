// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "accrue/checkpoint/checkpoint_folder.h"
#include "accrue/checkpoint/pending_checkpoint.h"
#include "tests/support/files.h"

namespace accrue::test {

/// A complete checkpoint of two small files; `weights` is the content of one.
inline std::filesystem::path make_checkpoint(const std::filesystem::path& output_dir, int64_t update,
                                             const std::string& weights = "weights") {
  PendingCheckpoint pending(output_dir, update);
  write_file((pending.folder() / checkpoint_file::kModel).string(), weights);
  write_file((pending.folder() / checkpoint_file::kConfig).string(), "seed: 1\n");
  return pending.commit({{"update", update}});
}

/// The names in a folder, sorted.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// Changes one bit of a file, in place.
inline void flip_bit(const std::filesystem::path& file, size_t bit) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekg(static_cast<std::streamoff>(bit / 8));
  const int byte = stream.get();
  stream.seekp(static_cast<std::streamoff>(bit / 8));
  stream.put(static_cast<char>(byte ^ (1 << (bit % 8))));
}

}  // namespace accrue::test
