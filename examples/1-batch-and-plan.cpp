// SPDX-License-Identifier: Apache-2.0
// A batch and its plan: how many micro-steps an update takes, and what happens to a remainder.
#include <cstdio>

#include "accrue/accrue.h"

namespace {

void print(const char* title, const accrue::Plan& plan) {
  std::printf("%s: %lld samples in %lld micro-steps of", title, static_cast<long long>(plan.batch),
              static_cast<long long>(plan.num_micro_steps()));
  for (const int64_t size : plan.micro_sizes()) std::printf(" %lld", static_cast<long long>(size));
  std::printf(", effective batch %lld\n", static_cast<long long>(plan.effective_batch()));
}

}  // namespace

int main() {
  std::printf("%s\n", accrue::describe(accrue::plan(64, {.micro_batch = 16})).c_str());
  print("batch and micro-batch", accrue::plan(64, {.micro_batch = 16}));
  print("batch and num_micro_steps", accrue::plan(64, {.num_micro_steps = 8}));
  print("a remainder by name",
        accrue::plan(50, {.micro_batch = 16, .remainder = accrue::Remainder::smaller}));
  print("two ranks", accrue::plan(64, {.micro_batch = 16, .ranks = 2}));
  try {
    accrue::plan(64, {.micro_batch = 15});
  } catch (const accrue::ArgumentError& error) {
    std::printf("refused: %s\n", error.what());
  }
}
