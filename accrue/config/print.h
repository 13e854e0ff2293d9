// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "accrue/config/load.h"

namespace accrue::config {

/// The complete resolved configuration with absolute paths; loading it gives the same run from any folder.
std::string to_yaml(const Run& run);

/// A table of the resolved values and their origins, then a line for each derivation.
std::string describe(const Loaded& loaded);

/// A key whose values differ; "not set" stands for a value that is absent.
struct Difference {
  std::string path;
  std::string before;
  std::string now;
};

/// Every difference of two runs, key by key, in the order of the schema.
std::vector<Difference> differences(const Run& before, const Run& now);

}  // namespace accrue::config
