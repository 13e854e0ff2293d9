// SPDX-License-Identifier: Apache-2.0
#include "accrue/batch/batcher.h"

#include <ATen/Parallel.h>

#include <condition_variable>
#include <csignal>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "accrue/base/error.h"
#include "accrue/base/limits.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/batch.h"
#include "accrue/base/units.h"
#include "accrue/memory/allocator.h"
#include "accrue/memory/refusal.h"

namespace accrue {
namespace {

/// Keeps SIGINT and SIGTERM from this thread, and from those that it starts, for a scope.
class SignalsElsewhere {
 public:
  SignalsElsewhere() {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~SignalsElsewhere() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsElsewhere(const SignalsElsewhere&) = delete;
  SignalsElsewhere& operator=(const SignalsElsewhere&) = delete;

 private:
  sigset_t before_{};
};

/// The number of threads is OpenMP's, one setting a thread. LibTorch sets it when a thread first asks, in its
/// own code and once more in code that inlines its headers: both happen before it is set here for good.
void use_one_intra_op_thread() {
  static_cast<void>(at::get_num_threads());
  at::internal::lazy_init_num_threads();
#ifdef _OPENMP
  omp_set_num_threads(1);
#endif
}

}  // namespace

/// What one `next` gives, and where the sampler stands after it.
struct Batcher::Reading {
  std::optional<Batch> batch;
  Sampler sampler;
};

/// The thread and the batches that it has ready, at most `capacity` with the one that it is gathering.
class Batcher::Reader {
 public:
  static Reading read(const Data& data, Sampler sampler) {
    const memory::PhaseScope phase(memory::Phase::data);
    std::optional<std::vector<int64_t>> ids = sampler.next();
    if (!ids) return {std::nullopt, std::move(sampler)};
    NamedTensors fields = data.gather_for_training(*ids, sampler.epochs());
    return {Batch(std::move(fields), std::move(*ids)), std::move(sampler)};
  }

  Reader(std::shared_ptr<const Data> data, Sampler sampler, size_t capacity)
      : data_(std::move(data)), sampler_(std::move(sampler)), capacity_(capacity) {
    const SignalsElsewhere inherited;
    try {
      thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    } catch (const std::system_error& error) {
      if (!has_room_for_thread()) {
        fail(message::batcher_no_room, {{"stack", format_bytes(static_cast<uint64_t>(thread_stack()))}});
      }
      fail(message::batcher_no_thread, {{"reason", error.what()}});
    }
  }

  Reading take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty() || error_; });
    if (ready_.empty()) std::rethrow_exception(error_);
    if (!ready_.front().batch) return ready_.front();
    Reading reading = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    changed_.notify_one();
    return reading;
  }

 private:
  void run(const std::stop_token& stop) {
    use_one_intra_op_thread();
    try {
      while (wait_for_room(stop)) {
        Reading reading = read(*data_, sampler_);
        sampler_ = reading.sampler;
        const bool last = !reading.batch;
        add(std::move(reading));
        if (last) return;
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      changed_.notify_one();
    }
  }

  /// False when the reader is to end.
  bool wait_for_room(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    return changed_.wait(lock, stop, [this] { return ready_.size() < capacity_; }) && !stop.stop_requested();
  }

  void add(Reading reading) {
    const std::lock_guard lock(mutex_);
    ready_.push_back(std::move(reading));
    changed_.notify_one();
  }

  const std::shared_ptr<const Data> data_;
  Sampler sampler_;  // the thread's own
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Reading> ready_;  // guarded by mutex_, as error_; the end of the data stays in it
  std::exception_ptr error_;
  std::jthread thread_;  // last, so that it has ended before the rest goes
};

Batcher::Batcher(std::shared_ptr<const Data> data, Sampler sampler, int64_t read_ahead)
    : data_(std::move(data)), sampler_(std::move(sampler)) {
  if (data_->size() != sampler_.num_samples())
    fail(message::batcher_wrong_size, {{"sampler", sampler_.num_samples()}, {"data", data_->size()}});
  if (read_ahead < 0) fail(message::batcher_read_ahead, {{"got", read_ahead}});
  if (read_ahead > 0) reader_ = std::make_unique<Reader>(data_, sampler_, static_cast<size_t>(read_ahead));
}

Batcher::~Batcher() = default;
Batcher::Batcher(Batcher&&) noexcept = default;
Batcher& Batcher::operator=(Batcher&&) noexcept = default;

Batcher::Reading Batcher::read() {
  const int64_t refusals_before = memory::statistics().num_refusals;
  try {
    return reader_ ? reader_->take() : Reader::read(*data_, sampler_);
  } catch (...) {
    if (!memory::is_refusal(std::current_exception(), refusals_before)) throw;
  }
  if (reader_) warn(message::batcher_refused);
  reader_.reset();
  memory::empty_cache();
  return Reader::read(*data_, sampler_);
}

std::optional<Batch> Batcher::next() {
  Reading reading = read();
  sampler_ = std::move(reading.sampler);
  return std::move(reading.batch);
}

const Sampler& Batcher::sampler() const noexcept {
  return sampler_;
}

}  // namespace accrue
