// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace accrue {

/// Where measured choices are kept between runs: ACCRUE_PLAN_CACHE, else accrue/plans.json in XDG_CACHE_HOME
/// or ~/.cache. A relative one lies in the current folder. Empty where ACCRUE_PLAN_CACHE is "off", or no home
/// is known. Deleting the file clears it.
std::filesystem::path choice_file_path();

/// The text kept under `key` in `file`; empty where there is none, or the file cannot be read or is no such
/// file (a cache that is broken counts as empty).
std::optional<std::string> find_choice(const std::filesystem::path& file, std::string_view key);

/// Keeps `choice` (a JSON text) under `key`, the 200 latest of them, atomically and beside other processes
/// that do the same; the folder is made where it is missing. A file that is broken is made anew, with a
/// warning. False, with a warning, where it could not be written, or where the file is there and is not one
/// of these (nothing else is ever replaced); never throws.
bool keep_choice(const std::filesystem::path& file, std::string_view key, const std::string& choice);

}  // namespace accrue
