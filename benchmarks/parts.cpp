// SPDX-License-Identifier: Apache-2.0
// What layers and update are made of, beside torch's operations for the same, in turns in one process. Prints
// one JSON object a line: seconds of one call of each way, by rounds. usage: parts THREADS ROUNDS
#include "benchmarks/parts.h"

#include <ATen/Parallel.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "accrue/base/clock.h"
#include "accrue/memory/allocator.h"

namespace {

using parts::Part;

/// A round of a way takes about so long.
constexpr double kSeconds = 0.1;

double seconds_of(const std::function<void()>& run, int64_t times) {
  const accrue::Stopwatch clock;
  for (int64_t i = 0; i < times; ++i) run();
  return clock.seconds() / static_cast<double>(times);
}

/// Prints seconds of one call of each way, by rounds.
void measure(const Part& part, int rounds) {
  struct Way {
    const char* name;
    const std::function<void()>& run;
    int64_t times = 1;  // a round
    std::vector<double> seconds = {};
  };
  std::array<Way, 2> ways = {Way{"before", part.before}, Way{"now", part.now}};
  for (Way& way : ways) {
    seconds_of(way.run, 2);
    way.times = 1 + static_cast<int64_t>(kSeconds / seconds_of(way.run, 3));
  }
  for (int round = 0; round < rounds; ++round) {
    for (const size_t first : {size_t{0}, size_t{1}}) {
      Way& way = ways[(static_cast<size_t>(round) + first) % 2];
      way.seconds.push_back(seconds_of(way.run, way.times));
    }
  }
  std::printf("{\"part\": \"%s\", \"shape\": \"%s\"", part.name.c_str(), part.shape.c_str());
  for (const Way& way : ways) {
    std::printf(", \"%s\": ", way.name);
    for (size_t i = 0; i < way.seconds.size(); ++i)
      std::printf("%s%.9g", i == 0 ? "[" : ", ", way.seconds[i]);
    std::printf("]");
  }
  std::printf("}\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: parts THREADS ROUNDS\n");
    return 2;
  }
  accrue::memory::install();
  at::set_num_threads(std::atoi(argv[1]));
  for (const auto& group : {parts::layers_of_sequences, parts::layers_of_pictures, parts::updates}) {
    for (const Part& part : group()) measure(part, std::atoi(argv[2]));
  }
}
