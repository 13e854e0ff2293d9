// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/pressure.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace accrue::memory {
namespace {

TEST(Pressure, CallsEveryHookThatLives) {
  int first = 0;
  int second = 0;
  const PressureHook a([&] { ++first; });
  auto b = std::make_unique<PressureHook>([&] { ++second; });
  relieve_pressure();
  b.reset();
  relieve_pressure();
  EXPECT_EQ(first, 2);
  EXPECT_EQ(second, 1);
}

TEST(Pressure, TheEndOfAHookWaitsForItsCall) {
  std::atomic<bool> entered = false;
  std::atomic<bool> left = false;
  std::atomic<bool> go_on = false;
  auto hook = std::make_unique<PressureHook>([&] {
    entered = true;
    while (!go_on) std::this_thread::yield();
    left = true;
  });
  std::thread caller(relieve_pressure);
  while (!entered) std::this_thread::yield();
  std::thread ender([&] {
    hook.reset();
    EXPECT_TRUE(left);
  });
  go_on = true;
  ender.join();
  caller.join();
}

}  // namespace
}  // namespace accrue::memory
