// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/processor.h"

#include <fstream>
#include <sstream>
#include <string>

namespace accrue {

bool has_bf16_units(const std::filesystem::path& root) {
  std::ifstream file(root / "proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !(line.starts_with("flags") || line.starts_with("Features"))) continue;
    std::istringstream flags(line.substr(colon + 1));
    for (std::string flag; flags >> flag;) {
      if (flag == "avx512_bf16" || flag == "amx_bf16" || flag == "bf16") return true;
    }
    return false;  // all processors of a machine have the same
  }
  return false;
}

}  // namespace accrue
