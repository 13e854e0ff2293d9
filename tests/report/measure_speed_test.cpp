// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/measure_speed.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace accrue {
namespace {

class NumThreads {
 public:
  explicit NumThreads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~NumThreads() { at::set_num_threads(before_); }

 private:
  int before_;
};

TEST(MeasureSpeed, GivesEveryRateAfterOneRound) {
  const NumThreads threads(2);
  const Speed speed = measure_speed({.seconds = 0, .rounds = 1});
  for (const std::optional<double>& rate :
       {speed.fma_gflops, speed.fma_gflops_one_thread, speed.sgemm_gflops, speed.wide_sgemm_gflops,
        speed.small_sgemm_gflops, speed.bf16_gemm_gflops, speed.stream_gbytes_per_second,
        speed.fresh_gbytes_per_second, speed.fresh_huge_gbytes_per_second, speed.page_faults_per_second}) {
    ASSERT_TRUE(rate.has_value());
    EXPECT_GT(*rate, 0);
  }
}

TEST(CountParallelThreads, FindsThoseThatWereSet) {
  for (const int count : {1, 2, 3}) {
    const NumThreads threads(count);
#if defined(ACCRUE_TEST_OPENMP)
    EXPECT_EQ(count_parallel_threads(), count);
#else
    EXPECT_EQ(count_parallel_threads(), 1);
#endif
  }
}

}  // namespace
}  // namespace accrue
