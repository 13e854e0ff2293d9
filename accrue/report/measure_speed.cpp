// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/measure_speed.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "accrue/base/clock.h"
#include "accrue/memory/machine.h"
#include "accrue/report/speed_loops.h"

namespace accrue {
namespace {

constexpr double kGiga = 1e9;

/// [rows x inner] x [inner x columns] over and over.
class Product {
 public:
  Product(const MeasureSpeedOptions& options, int64_t rows, int64_t inner, int64_t columns,
          at::ScalarType type)
      : multiply_(options.product),
        left_(filled(rows, inner, type)),
        right_(filled(inner, columns, type)),
        out_(at::empty({rows, columns}, at::TensorOptions(type))),
        operations_(2.0 * static_cast<double>(rows) * static_cast<double>(inner) *
                    static_cast<double>(columns)) {
    run();  // what is set up at the first call, pages among it
  }

  double burst(double seconds) {
    const Stopwatch watch;
    int64_t count = 0;
    do {
      run();
      ++count;
    } while (watch.seconds() < seconds);
    return static_cast<double>(count) * operations_ / watch.seconds();
  }

 private:
  static at::Tensor filled(int64_t rows, int64_t columns, at::ScalarType type) {
    return at::linspace(-1, 1, rows * columns, at::TensorOptions(at::kFloat)).view({rows, columns}).to(type);
  }
  void run() { multiply_ ? multiply_(out_, left_, right_) : void(at::mm_out(out_, left_, right_)); }

  std::function<void(const at::Tensor&, const at::Tensor&, const at::Tensor&)> multiply_;
  at::Tensor left_, right_, out_;
  double operations_;
};

void raise(std::optional<double>& best, double rate) {
  if (rate > 0) best = std::max(best.value_or(0), rate / kGiga);
}

/// Far larger than the cache, and at most a quarter of what this process may have.
size_t stream_bytes() {
  constexpr size_t kLeast = size_t{256} << 20;
  constexpr size_t kMost = size_t{1} << 30;
  const size_t wanted = std::clamp(4 * cache_size(), kLeast, kMost);
  const std::optional<memory::Offered> offered = memory::offered_memory();
  return offered ? std::min(wanted, static_cast<size_t>(std::max<int64_t>(offered->bytes, 0)) / 4) : wanted;
}

}  // namespace

Speed measure_speed(const MeasureSpeedOptions& options) {
  const int threads = at::get_num_threads();
  const FreshMemory memory(stream_bytes(), Pages::huge);
  const size_t fresh_bytes = std::min(memory.size(), size_t{32} << 20);
  stream_burst(memory, threads);  // its pages come with the first pass
  Product square(options, 512, 512, 512, at::kFloat);
  Product wide(options, 256, 256, 8192, at::kFloat);
  Product small(options, 256, 256, 256, at::kFloat);
  Product small_bf16(options, 256, 256, 256, at::kBFloat16);
  Speed best;
  const Stopwatch watch;
  for (int round = 0; round < options.rounds || watch.seconds() < options.seconds; ++round) {
    // Threads of LibTorch's may spin for some milliseconds after a product, so its bursts come after the
    // loops.
    raise(best.fresh_gbytes_per_second, fresh_burst(fresh_bytes, Pages::small, threads));
    raise(best.fresh_huge_gbytes_per_second, fresh_burst(fresh_bytes, Pages::huge, threads));
    raise(best.stream_gbytes_per_second, stream_burst(memory, threads));
    raise(best.fma_gflops_one_thread, multiply_add_burst(1, 0.01));
    raise(best.fma_gflops, multiply_add_burst(threads, 0.015));
    raise(best.sgemm_gflops, square.burst(0.015));
    raise(best.wide_sgemm_gflops, wide.burst(0.015));
    raise(best.small_sgemm_gflops, small.burst(0.005));
    raise(best.bf16_gemm_gflops, small_bf16.burst(0.005));
  }
  if (best.fresh_gbytes_per_second) {
    best.page_faults_per_second = *best.fresh_gbytes_per_second * kGiga / static_cast<double>(page_size());
  }
  return best;
}

int count_parallel_threads() {
  const int threads = at::get_num_threads();
  std::set<std::thread::id> met;
  std::mutex mutex;
  std::atomic<int> begun{0};
  const Stopwatch watch;
  at::parallel_for(0, threads, 1, [&](int64_t, int64_t) {
    {
      const std::lock_guard lock(mutex);
      met.insert(std::this_thread::get_id());
    }
    // So that no thread takes a second part while another is still asleep.
    ++begun;
    while (begun.load() < threads && watch.seconds() < 0.05) std::this_thread::yield();
  });
  return static_cast<int>(met.size());
}

}  // namespace accrue
