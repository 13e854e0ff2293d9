// SPDX-License-Identifier: Apache-2.0
#include "accrue/batch/batcher.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <thread>

#include "accrue/base/log.h"
#include "accrue/base/messages/batch.h"
#include "accrue/data/tensor_data.h"
#include "tests/support/errors.h"
#include "tests/support/warnings.h"

namespace accrue {
namespace {

std::shared_ptr<const Data> five_samples() {
  return std::make_shared<TensorData>(NamedTensors{{"y", at::arange(5, at::kLong)}});
}

/// Samples y = id and the epoch, with something to happen in each gathering; counts them.
class WatchedData : public Data {
 public:
  using During = std::function<void(int64_t gathering)>;  // from 1, in the thread that gathers

  explicit WatchedData(int64_t size, During during = {}) : size_(size), during_(std::move(during)) {}

  int64_t size() const override { return size_; }
  NamedTensors gather(std::span<const int64_t>) const override {
    ADD_FAILURE() << "a batcher gathers for training";
    return {};
  }
  NamedTensors gather_for_training(std::span<const int64_t> ids,
                                   std::span<const int64_t> epochs) const override {
    int64_t gathering = 0;
    {
      const std::lock_guard lock(mutex_);
      gathering = ++begun_;
    }
    changed_.notify_all();
    if (during_) during_(gathering);
    const auto tensor = [](std::span<const int64_t> values) {
      return at::from_blob(const_cast<int64_t*>(values.data()), static_cast<int64_t>(values.size()),
                           at::kLong)
          .clone();
    };
    return {{"y", tensor(ids)}, {"epoch", tensor(epochs)}};
  }

  int64_t begun() const {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  /// Waits until so many gatherings have begun; false if that does not happen (a minute is for ever here).
  bool wait_for(int64_t gatherings) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return begun_ >= gatherings; });
  }

 private:
  int64_t size_;
  During during_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int64_t begun_ = 0;
};

/// What one call of `next` gave, and the sampler after it.
struct Given {
  std::vector<int64_t> ids;
  std::vector<int64_t> y;
  std::vector<int64_t> epochs;
  std::vector<int64_t> epochs_of_sampler;
  SamplerPosition position;

  bool operator==(const Given&) const = default;
};

std::vector<int64_t> values(const at::Tensor& tensor) {
  const int64_t* const first = tensor.const_data_ptr<int64_t>();
  return {first, first + tensor.numel()};
}

Given give(Batcher& batcher) {
  const std::optional<Batch> batch = batcher.next();
  Given given;
  if (batch) given = {batch->ids(), values((*batch)["y"]), values((*batch)["epoch"]), {}, {}};
  given.epochs_of_sampler.assign(batcher.sampler().epochs().begin(), batcher.sampler().epochs().end());
  given.position = batcher.sampler().position();
  return given;
}

std::vector<Given> give_all(Batcher& batcher) {
  std::vector<Given> list;
  do {
    list.push_back(give(batcher));
  } while (!list.back().ids.empty());
  list.push_back(give(batcher));  // nothing comes after the end, however often it is asked for
  return list;
}

TEST(Batcher, GathersWhatTheSamplerAsksFor) {
  Batcher batcher(five_samples(), Sampler(5, {.size = 2}, 3, 1));
  std::vector<int64_t> seen;
  while (const std::optional<Batch> batch = batcher.next())
    for (int64_t row = 0; row < batch->size(); ++row) {
      const int64_t id = batch->ids()[static_cast<size_t>(row)];
      EXPECT_EQ((*batch)["y"][row].item<int64_t>(), id);
      seen.push_back(id);
    }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(batcher.sampler().position().epoch, 1);
}

TEST(Batcher, RefusesWhatDoesNotFit) {
  EXPECT_ERROR(Batcher(five_samples(), Sampler(6, {.size = 2}, 0)), ArgumentError,
               "the sampler was made for 6 samples and the data have 5; make both alike");
  EXPECT_ERROR(Batcher(five_samples(), Sampler(5, {.size = 2}, 0), -1), ArgumentError,
               "read_ahead is -1; a number of batches is needed, or 0 to read none ahead");
}

TEST(ReadAhead, GivesTheSameBatchesPositionsAndEpochs) {
  for (const LastBatch last : {LastBatch::flush, LastBatch::drop, LastBatch::carry}) {
    for (const Order order : {Order::file, Order::shuffled}) {
      const Sampler sampler(23, {.size = 5, .order = order, .last = last}, 11, 3);
      Batcher plain(std::make_shared<WatchedData>(23), sampler);
      const std::vector<Given> expected = give_all(plain);
      for (const int64_t read_ahead : {1, 2, 100}) {
        Batcher batcher(std::make_shared<WatchedData>(23), sampler, read_ahead);
        EXPECT_EQ(batcher.sampler().position(), SamplerPosition{});
        EXPECT_EQ(give_all(batcher), expected) << read_ahead;
      }
    }
  }
}

TEST(ReadAhead, APositionFromTheMiddleGoesOnExactly) {
  const Sampler sampler(23, {.size = 5, .last = LastBatch::carry}, 4, 2);
  Batcher plain(std::make_shared<WatchedData>(23), sampler);
  const std::vector<Given> expected = give_all(plain);
  for (size_t stop = 0; stop + 2 < expected.size(); ++stop) {
    Batcher batcher(std::make_shared<WatchedData>(23), sampler, 3);
    for (size_t i = 0; i < stop; ++i) give(batcher);
    Sampler resumed = sampler;
    resumed.restore(batcher.sampler().position());
    Batcher second(std::make_shared<WatchedData>(23), resumed, 2);
    EXPECT_EQ(give_all(second),
              std::vector<Given>(expected.begin() + static_cast<ptrdiff_t>(stop), expected.end()));
  }
}

TEST(ReadAhead, TheNextBatchIsGatheredBeforeItIsAskedFor) {
  for (const int64_t read_ahead : {1, 3}) {
    const auto data = std::make_shared<WatchedData>(100);
    Batcher batcher(data, Sampler(100, {.size = 2}, 0, 1), read_ahead);
    EXPECT_TRUE(data->wait_for(read_ahead));
    for (int64_t given = 1; given <= 20; ++given) {
      ASSERT_TRUE(batcher.next());
      // The consumer works on this batch and asks for no other.
      EXPECT_TRUE(data->wait_for(given + read_ahead));
    }
  }
}

TEST(ReadAhead, NoMoreBatchesAreHeldThanWereAskedFor) {
  std::atomic<int64_t> calls = 0;
  std::atomic<bool> too_many = false;
  const auto data = std::make_shared<WatchedData>(
      200, [&](int64_t gathering) { too_many = too_many || gathering > calls + 2; });
  Batcher batcher(data, Sampler(200, {.size = 1}, 0, 1), 2);
  do {
    ++calls;
  } while (batcher.next());
  EXPECT_FALSE(too_many);
  EXPECT_EQ(data->begun(), 200);
}

TEST(ReadAhead, WithoutItNothingIsGatheredAhead) {
  const auto data = std::make_shared<WatchedData>(6);
  Batcher batcher(data, Sampler(6, {.size = 2}, 0, 1));
  EXPECT_EQ(data->begun(), 0);
  batcher.next();
  EXPECT_EQ(data->begun(), 1);
}

std::shared_ptr<const Data> broken_at(int64_t broken) {
  return std::make_shared<WatchedData>(12, [broken](int64_t gathering) {
    if (gathering >= broken)
      throw DataError("test.broken", "file.csv:" + std::to_string(broken) + ": broken");
  });
}

TEST(ReadAhead, AnErrorComesFromTheNextThatWouldHaveMetItAndFromEveryLaterOne) {
  for (const int64_t read_ahead : {0, 1, 2, 100}) {
    for (const int64_t broken : {1, 3, 6}) {
      Batcher batcher(broken_at(broken), Sampler(12, {.size = 2, .order = Order::file}, 0, 1), read_ahead);
      for (int64_t given = 1; given < broken; ++given) EXPECT_TRUE(batcher.next());
      for (int again = 0; again < 3; ++again) {
        EXPECT_ERROR(batcher.next(), DataError, "file.csv:" + std::to_string(broken) + ": broken");
        EXPECT_EQ(batcher.sampler().position().offset, 2 * (broken - 1));
      }
    }
  }
}

TEST(ReadAhead, EndsInEveryState) {
  const auto sampler = [] { return Sampler(12, {.size = 2}, 0, 1); };
  for (const int64_t taken : {0, 1, 3, 6, 7}) {  // 6 batches and the end
    const std::weak_ptr<const Data> seen = [&] {
      const auto data = std::make_shared<WatchedData>(12);
      Batcher batcher(data, sampler(), 2);
      for (int64_t i = 0; i < taken; ++i) batcher.next();
      return std::weak_ptr<const Data>(data);
    }();
    EXPECT_TRUE(seen.expired()) << taken;
  }
  { const Batcher unread(broken_at(1), sampler(), 2); }
  {
    Batcher failed(broken_at(1), sampler(), 2);
    EXPECT_THROW(failed.next(), DataError);
  }
}

TEST(ReadAhead, EndsAfterTheBatchThatIsBeingGathered) {
  std::atomic<bool> go = false;
  std::atomic<bool> gathered = false;
  const auto data = std::make_shared<WatchedData>(12, [&](int64_t) {
    while (!go) std::this_thread::yield();
    gathered = true;
  });
  {
    const Batcher batcher(data, Sampler(12, {.size = 2}, 0, 1), 2);
    ASSERT_TRUE(data->wait_for(1));
    go = true;
  }
  EXPECT_TRUE(gathered);
  EXPECT_LE(data->begun(), 2);
}

TEST(ReadAhead, ABatcherCanBeMovedWhileItReads) {
  const Sampler sampler(23, {.size = 5}, 1, 1);
  Batcher plain(std::make_shared<WatchedData>(23), sampler);
  const std::vector<Given> expected = give_all(plain);
  Batcher first(std::make_shared<WatchedData>(23), sampler, 2);
  Batcher second = std::move(first);
  Batcher third(std::make_shared<WatchedData>(23), sampler, 1);
  third = std::move(second);
  EXPECT_EQ(give_all(third), expected);
}

TEST(ReadAhead, TheThreadUsesOneIntraOpThreadAndLeavesSignalsToOthers) {
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  std::atomic<int> threads = 0;
  std::atomic<bool> same_thread = true;
  std::atomic<int> blocked = 0;
  const std::thread::id here = std::this_thread::get_id();
  const auto data = std::make_shared<WatchedData>(2, [&](int64_t) {
    int most = 0;
    at::parallel_for(0, 1000, 1, [&](int64_t, int64_t) { most = std::max(most, at::get_thread_num() + 1); });
    threads = std::max(at::get_num_threads(), most);
    same_thread = here == std::this_thread::get_id();
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    blocked = sigismember(&mask, SIGINT) + sigismember(&mask, SIGTERM);
  });
  Batcher batcher(data, Sampler(2, {.size = 2}, 0, 1), 1);
  batcher.next();
  EXPECT_FALSE(same_thread);
  EXPECT_EQ(threads, 1);
  EXPECT_EQ(at::get_num_threads(), 3);
  EXPECT_EQ(blocked, 2);
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGINT) + sigismember(&mask, SIGTERM), 0);
  at::set_num_threads(before);
}

TEST(ReadAhead, WarningsOfTheThreadDoNotRace) {
  test::Warnings warnings;
  const auto say = [] { warn(message::sampler_larger_than_data, {{"samples", 1}, {"size", 2}}); };
  Batcher batcher(std::make_shared<WatchedData>(100, [&](int64_t) { say(); }),
                  Sampler(100, {.size = 1}, 0, 1), 2);
  while (batcher.next()) say();
  EXPECT_EQ(warnings.texts.size(), 200u);
}

}  // namespace
}  // namespace accrue
