// SPDX-License-Identifier: Apache-2.0
// Memory that is refused to a stream: what was lost is said, nothing of it stays, and the stream goes on.
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <numeric>
#include <set>
#include <utility>

#include "accrue/batch/pad.h"
#include "accrue/memory/allocator.h"
#include "accrue/train/stream_step.h"
#include "tests/budget/fail_each.h"
#include "tests/budget/workloads.h"
#include "tests/support/micro_batch.h"
#include "tests/support/models.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

using test::Trained;
using test::Workload;

using Ids = std::vector<int64_t>;
using Tensors = std::vector<at::Tensor>;

Ids ids_of(const std::vector<MicroBatch>& micro_batches) {
  Ids ids;
  for (const MicroBatch& micro : micro_batches) ids.insert(ids.end(), micro.ids().begin(), micro.ids().end());
  return ids;
}

void expect_same(const Tensors& got, const Tensors& expected, const char* what) {
  const std::optional<size_t> place = test::first_difference(got, expected);
  EXPECT_FALSE(place.has_value()) << what << ": tensor " << place.value_or(0);
}

/// Has the k-th allocation of the calls that it makes fail; what is asked for between them does not count.
class KthFails {
 public:
  explicit KthFails(int64_t k) : left_(k) {}

  template <class Call>
  auto operator()(const Call& call) {
    struct Disarm {
      ~Disarm() { memory::fail_allocation(0); }
    };
    const int64_t before = memory::statistics().num_allocations;
    const int64_t armed = std::exchange(left_, 0);
    const Disarm disarm{};
    memory::fail_allocation(armed);
    auto result = call();
    const int64_t made = memory::statistics().num_allocations - before;
    num_allocations_ += made;
    left_ = std::max<int64_t>(armed - made, 0);
    return result;
  }

  int64_t num_allocations() const { return num_allocations_; }  ///< of the calls that did not throw

 private:
  int64_t left_;
  int64_t num_allocations_ = 0;
};

/// A caller of a stream who keeps account of every micro-batch.
class Caller {
 public:
  Caller(Trained& trained, const Workload& work, bool snapshot, int64_t k = 0)
      : trained_(trained),
        snapshot_(snapshot),
        calls_(k),
        stream_(work.model, work.loss, trained.updater,
                {.num_micro_steps = 3, .snapshot = snapshot, .seed = 5}) {}

  /// Pushes them, again where one was taken back, and ends the run.
  void run(const std::vector<MicroBatch>& micro_batches) {
    at_update_ = trained_.everything();
    for (const MicroBatch& micro : micro_batches) push(micro);
    if (!goes_well([this] { return stream_.finish(); })) lose();
    EXPECT_TRUE(open_.empty());
  }

  const std::vector<MicroBatch>& closed() const { return closed_; }  ///< in updates
  const Ids& lost() const { return lost_; }
  int64_t num_refused() const { return num_refused_; }
  int64_t num_allocations() const { return calls_.num_allocations(); }

 private:
  void push(const MicroBatch& micro) {
    const Tensors before = trained_.everything();
    const int64_t pending = stream_.pending();
    const auto call = [&] { return stream_.push(micro); };
    open_.push_back(micro);
    if (goes_well(call)) return;
    if (!snapshot_) return lose();
    EXPECT_EQ(stream_.pending(), pending);
    EXPECT_TRUE(stream_.lost_ids().empty());
    expect_same(trained_.everything(), before, "after a micro-step that was taken back");
    EXPECT_TRUE(goes_well(call));
  }

  /// False where the call was refused memory.
  template <class Call>
  bool goes_well(const Call& call) {
    try {
      if (const std::optional<UpdateResult> result = calls_(call)) close(*result);
      return true;
    } catch (const c10::OutOfMemoryError&) {
      ++num_refused_;
      return false;
    }
  }

  void close(const UpdateResult& result) {
    std::vector<int64_t> sizes;
    for (const MicroBatch& micro : open_) sizes.push_back(micro.size());
    EXPECT_TRUE(result.applied);
    EXPECT_EQ(result.micro_sizes, sizes);
    EXPECT_EQ(result.weight, static_cast<double>(ids_of(open_).size()));
    closed_.insert(closed_.end(), open_.begin(), open_.end());
    open_.clear();
    at_update_ = trained_.everything();
  }

  /// The window is gone.
  void lose() {
    EXPECT_EQ(stream_.pending(), 0);
    EXPECT_EQ(stream_.lost_ids(), ids_of(open_));
    expect_same(trained_.everything(), at_update_, "after a window that was lost");
    lost_.insert(lost_.end(), stream_.lost_ids().begin(), stream_.lost_ids().end());
    open_.clear();
  }

  Trained& trained_;
  bool snapshot_;
  KthFails calls_;
  StreamStep stream_;
  Tensors at_update_;             // as the last update left it
  std::vector<MicroBatch> open_;  // in the window
  std::vector<MicroBatch> closed_;
  Ids lost_;
  int64_t num_refused_ = 0;
};

/// Fails the allocations of a stream in turn: those of two updates, the second one short.
void fail_each_of_a_stream(const Workload& work, bool snapshot, NonFinite policy = NonFinite::stop) {
  ASSERT_TRUE(test::installed);
  SCOPED_TRACE(work.name + (snapshot ? " with a snapshot" : ""));
  Trained trained(work, {.clip_norm = 1.0, .non_finite = policy});
  Ids ids(static_cast<size_t>(work.batch.size()));
  std::iota(ids.begin(), ids.end(), int64_t{100});
  const std::vector<MicroBatch> all =
      test::parts(Batch(work.batch.fields(), ids), test::sizes_of(work.batch.size(), work.micro_batch));
  ASSERT_EQ(all.size(), 4U);
  const Tensors start = trained.everything();
  const OptimizerState state = trained.updater.state();
  const test::Warnings warnings;  // of windows that were lost
  int64_t num_allocations = 0;
  const auto undisturbed = [&](const std::vector<MicroBatch>& micro_batches) {
    trained.restore(start, state);
    Caller caller(trained, work, snapshot);
    caller.run(micro_batches);
    num_allocations = caller.num_allocations();
    return trained.everything();
  };
  undisturbed(all);  // makes what is made once
  const Tensors expected = undisturbed(all);
  const int64_t num_tried = num_allocations;
  ASSERT_GT(num_tried, 8);

  int64_t num_refused = 0;
  for (int64_t k = 1; k <= num_tried; ++k) {
    SCOPED_TRACE("allocation " + std::to_string(k) + " of " + std::to_string(num_tried));
    try {
      trained.restore(start, state);
      Caller caller(trained, work, snapshot, k);
      caller.run(all);
      num_refused += caller.num_refused();
      std::multiset<int64_t> told(caller.lost().begin(), caller.lost().end());
      const Ids closed = ids_of(caller.closed());
      told.insert(closed.begin(), closed.end());
      EXPECT_EQ(told, std::multiset<int64_t>(ids.begin(), ids.end()));
      const Tensors after = trained.everything();
      expect_same(after, undisturbed(caller.closed()), "beside a stream of what was not lost");

      trained.restore(start, state);
      caller.run(all);
      expect_same(trained.everything(), expected, "of the next epoch of the same stream");
    } catch (const std::exception& error) {
      FAIL() << error.what();
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(num_refused, num_tried - 1);
  std::printf("%s: %lld of %lld allocations of a stream failed\n", work.name.c_str(),
              static_cast<long long>(num_refused), static_cast<long long>(num_tried));
}

TEST(StreamRefusal, EveryAllocationMayFailLinear) {
  fail_each_of_a_stream(test::linear_workload(), /*snapshot=*/false);
}
TEST(StreamRefusal, EveryAllocationMayFailMlp) {
  fail_each_of_a_stream(test::mlp_workload(), /*snapshot=*/false);
}
TEST(StreamRefusal, EveryAllocationMayFailLinearWithASnapshot) {
  fail_each_of_a_stream(test::linear_workload(), /*snapshot=*/true);
}
TEST(StreamRefusal, EveryAllocationMayFailMlpWithASnapshot) {
  fail_each_of_a_stream(test::mlp_workload(), /*snapshot=*/true);
}

TEST(StreamRefusal, EveryAllocationMayFailWhereMicroBatchesMayBeLeftOut) {
  fail_each_of_a_stream(test::mlp_workload(), /*snapshot=*/false, NonFinite::skip_micro_batch);
}
TEST(StreamRefusal, EveryAllocationMayFailWhereMicroBatchesMayBeLeftOutWithASnapshot) {
  fail_each_of_a_stream(test::mlp_workload(), /*snapshot=*/true, NonFinite::skip_micro_batch);
}

/// Each row is one token by its mask, so that tokens are counted.
Workload masked_workload() {
  Workload work = test::mlp_workload();
  NamedTensors fields = work.batch.fields();
  fields.add(kAttentionMask, at::ones({work.batch.size(), 1}, at::kLong));
  work.batch = Batch(fields);
  return work;
}

TEST(StreamRefusal, EveryAllocationMayFailWhereTokensAreCounted) {
  fail_each_of_a_stream(masked_workload(), /*snapshot=*/false);
}
TEST(StreamRefusal, EveryAllocationMayFailWhereTokensAreCountedWithASnapshot) {
  fail_each_of_a_stream(masked_workload(), /*snapshot=*/true);
}

}  // namespace
}  // namespace accrue
