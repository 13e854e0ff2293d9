// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace accrue::config {

/// The content of a configuration file. Throws ConfigError for a missing file (with the full path looked at),
/// a folder, and an unreadable or overlong file.
std::string read_file(const std::string& path);

/// `path` from the current folder on, without "." and ".." and without a slash at the end; a leading "~/" is
/// the home folder. An empty path stays empty.
std::string absolute_path(const std::string& path);

}  // namespace accrue::config
