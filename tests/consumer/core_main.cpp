// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <vector>

#include "accrue/base/nearest.h"
#include "accrue/formats/image.h"

int main() {
  const std::vector<std::string> names{"micro_batch", "updates"};
  const std::string nearest = accrue::nearest_name("micro-batch", names);
  std::printf("nearest name: %s\n", nearest.c_str());
  // What reads pictures brings its libraries with it.
  const bool is_image = accrue::is_image({});
  const accrue::Image image = accrue::resized({.channels = 1, .height = 1, .width = 1, .pixels = {7}}, 1, 2);
  return nearest == "micro_batch" && !is_image && image.pixels == std::vector<uint8_t>{7, 7} ? 0 : 1;
}
