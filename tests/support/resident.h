// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace accrue::test {

/// How far the process's resident size rose at most since this was made (Linux).
class ResidentGrowth {
 public:
  ResidentGrowth() {
    std::ofstream("/proc/self/clear_refs") << 5;  // the peak is now the present size
    start_ = peak();
  }
  int64_t mebibytes() const { return (peak() - start_) >> 10; }

 private:
  static int64_t peak() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (word == "VmHWM:") {
        int64_t kibibytes = 0;
        status >> kibibytes;
        return kibibytes;
      }
    return 0;
  }

  int64_t start_ = 0;
};

}  // namespace accrue::test
