// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "tests/support/errors.h"

namespace accrue {
namespace {

void sleep_for(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(Measure, WarmUpCallsAreMadeAndNotCounted) {
  int calls = 0;
  const Measurement measured = measure_train_step(
      [&calls] {
        if (++calls <= 3) sleep_for(200);
      },
      {.warmup = 3, .iters = 5});
  EXPECT_EQ(calls, 8);
  ASSERT_EQ(measured.repeats_ms.size(), 5U);
  // A warm-up call takes 200 ms at least; five empty calls are far from that on any machine.
  EXPECT_LT(std::accumulate(measured.repeats_ms.begin(), measured.repeats_ms.end(), 0.0), 200);
}

TEST(Measure, TheDeviceIsWaitedForBeforeAndAfterEachTiming) {
  std::string order;
  measure_train_step([&order] { order += "u"; },
                     {.warmup = 1, .iters = 2, .synchronize = [&order] { order += "s"; }});
  EXPECT_EQ(order,
            "u"
            "sus"
            "sus");
}

TEST(Measure, TheWaitingAfterACallIsPartOfItsTime) {
  bool called = false;
  const Measurement measured =
      measure_train_step([&called] { called = true; }, {.warmup = 0, .iters = 1, .synchronize = [&called] {
                                                          if (called) sleep_for(20);
                                                        }});
  EXPECT_GE(measured.step_time_ms, 20);
}

TEST(Measure, TimeIsTheMeanOfAllRepeatsAndARateComesFromIt) {
  const Measurement measured = measure_train_step([] { sleep_for(1); }, {.iters = 4, .batch_size = 32});
  ASSERT_EQ(measured.repeats_ms.size(), 4U);
  const double sum = std::accumulate(measured.repeats_ms.begin(), measured.repeats_ms.end(), 0.0);
  EXPECT_DOUBLE_EQ(measured.step_time_ms, sum / 4);
  EXPECT_GE(measured.step_time_ms, 1);
  EXPECT_DOUBLE_EQ(measured.samples_per_s, 32 * 1000 / measured.step_time_ms);
}

TEST(Measure, ACpuHasNoMemoryOfADevice) {
  EXPECT_EQ(measure_train_step([] {}).peak_mem_mb, 0);
}

TEST(Measure, WrongArgumentsAreErrorsBeforeTheFirstCall) {
  int calls = 0;
  const auto step = [&calls] { ++calls; };
  EXPECT_ERROR(measure_train_step(step, {.warmup = -1}), ArgumentError, "warmup must be at least 0, got -1");
  EXPECT_ERROR(measure_train_step(step, {.iters = 0}), ArgumentError, "iters must be at least 1, got 0");
  EXPECT_ERROR(measure_train_step(step, {.batch_size = 0}), ArgumentError,
               "batch_size must be at least 1, got 0");
  EXPECT_ERROR(measure_train_step({}), ArgumentError,
               "there is nothing to time, for the function is empty; give one that performs an update");
  EXPECT_EQ(calls, 0);
}

TEST(Measure, ADeviceThatIsMissingIsAnError) {
  EXPECT_ERROR(measure_train_step([] {}, {.device = "cuda"}), DeviceError,
               "the device cuda is asked for, but this build has cpu alone; needed is cpu");
}

TEST(Measure, AnErrorOfTheUpdateIsUnchanged) {
  EXPECT_THROW(measure_train_step([] { throw std::logic_error("mine"); }), std::logic_error);
}

}  // namespace
}  // namespace accrue
