// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <vector>

#include "accrue/base/clock.h"
#include "accrue/memory/allocator.h"
#include "accrue/train/refusal.h"
#include "tests/budget/workloads.h"

namespace accrue::test {

// Before any tensor exists.
inline const bool installed = (memory::install(), true);

inline SplitOptions options_of(const Workload& work) {
  return {.micro_batch = work.micro_batch, .seed = 5};
}

/// Ids that reach a loss in an update that was not given up.
struct SeenIds {
  std::vector<int64_t> ids;
  Loss watch(const Loss& loss) {
    Loss watched = loss;
    watched.terms = [this, inner = loss.terms](const Outputs& outputs, const MicroBatch& micro) {
      LossTerms terms = inner(outputs, micro);
      ids.insert(ids.end(), micro.ids().begin(), micro.ids().end());
      return terms;
    };
    return watched;
  }
};

/// Which allocations of an update are made to fail.
struct Failing {
  int64_t every = 1;     ///< the first and each so-many-th after it
  double seconds = 1e9;  ///< fewer, spread over all, where it would take longer
};

/// Fails allocations of an update in turn. Each failed update must leave everything as it was, and the
/// retried one must be the undisturbed one to the bit, with every sample in it once. Says how many it were.
inline void fail_each_allocation(const Workload& work, const Failing& failing = {}) {
  ASSERT_TRUE(installed);
  SCOPED_TRACE(work.name);
  Trained trained(work);
  SeenIds seen;
  std::vector<at::Tensor> before;
  int64_t differing = -1;
  SplitOptions options = options_of(work);
  options.refused = [&](const RefusalEvent& event) {
    EXPECT_EQ(event.after, AfterRefusal::again);
    if (const auto place = test::first_difference(trained.everything(), before))
      differing = static_cast<int64_t>(*place);
    seen.ids.clear();
  };
  SplitStep step(work.model, seen.watch(work.loss), trained.updater, options);
  step(work.batch);  // makes what is made once
  before = trained.everything();
  const OptimizerState state = trained.updater.state();
  const int64_t count_before = memory::statistics().num_allocations;
  seen.ids.clear();
  const UpdateResult expected = step(work.batch);
  const int64_t num_allocations = memory::statistics().num_allocations - count_before;
  const std::vector<at::Tensor> after = trained.everything();
  ASSERT_GT(num_allocations, 5);

  int64_t num_failed = 0;
  int64_t num_tried = 0;
  int64_t every = failing.every;
  const Stopwatch clock;
  for (int64_t k = 1; k <= num_allocations; k += every, ++num_tried) {
    if (num_tried == 3) {  // the first ones tell what one takes
      const double all = clock.seconds() / 3 * static_cast<double>(num_allocations);
      every = std::max(every, static_cast<int64_t>(std::ceil(all / failing.seconds)));
    }
    trained.restore(before, state);
    seen.ids.clear();
    const int64_t refusals = memory::statistics().num_refusals;
    memory::fail_allocation(k);
    const UpdateResult result = step(work.batch);
    memory::fail_allocation(0);
    num_failed += memory::statistics().num_refusals - refusals;
    ASSERT_EQ(result.retries, memory::statistics().num_refusals - refusals) << "k " << k;
    ASSERT_EQ(differing, -1) << "after the failure of allocation " << k << " of " << num_allocations;
    const auto place = test::first_difference(trained.everything(), after);
    ASSERT_FALSE(place.has_value()) << "tensor " << *place << " after allocation " << k << " of "
                                    << num_allocations;
    ASSERT_EQ(result.loss, expected.loss);
    const std::multiset<int64_t> used(seen.ids.begin(), seen.ids.end());
    ASSERT_EQ(used, std::multiset<int64_t>(work.batch.ids().begin(), work.batch.ids().end()));
  }
  EXPECT_GE(num_failed, num_tried - 1);
  std::printf("%s: %lld of %lld allocations of an update failed\n", work.name.c_str(),
              static_cast<long long>(num_failed), static_cast<long long>(num_allocations));
}

}  // namespace accrue::test
