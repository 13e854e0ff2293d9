// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <vector>

#include "accrue/base/nearest.h"

int main() {
  const std::vector<std::string> names{"micro_batch", "updates"};
  const std::string nearest = accrue::nearest_name("micro-batch", names);
  std::printf("nearest name: %s\n", nearest.c_str());
  return nearest == "micro_batch" ? 0 : 1;
}
