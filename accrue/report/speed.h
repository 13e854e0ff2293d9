// SPDX-License-Identifier: Apache-2.0
// What a machine does in the parts that training is made of, and what of it is slower than it should be.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace accrue {

/// Rates, each the best of several short bursts; empty: not measured. GFLOP are 1e9 operations, two a
/// multiply-add; GB are 1e9 bytes.
struct Speed {
  std::optional<double> fma_gflops;             ///< fp32 multiply-adds in registers, all threads
  std::optional<double> fma_gflops_one_thread;  ///< the same on one
  std::optional<double> sgemm_gflops;           ///< [512 x 512] x [512 x 512], fp32
  std::optional<double> wide_sgemm_gflops;      ///< [256 x 256] x [256 x 8192], fp32
  std::optional<double> small_sgemm_gflops;     ///< [256 x 256] x [256 x 256], fp32
  std::optional<double> bf16_gemm_gflops;       ///< the same in bf16
  /// Over memory far larger than the cache, on huge pages where there are some; read and written bytes added.
  std::optional<double> stream_gbytes_per_second;
  std::optional<double> fresh_gbytes_per_second;  ///< memory that the process has not had, ordinary pages
  std::optional<double> fresh_huge_gbytes_per_second;  ///< the same where huge pages are asked for
  std::optional<double> page_faults_per_second;        ///< of the ordinary pages, all threads together
};

/// The settings that speed depends on.
struct SpeedSettings {
  int threads = 1;
  int thread_limit = 1;      ///< more are of no use
  std::string limit_origin;  ///< "physical cores", "cgroup quota", ...
  int parallel_threads = 1;  ///< those that at::parallel_for makes use of
  std::string huge_pages;    ///< "always", "madvise", "never"; empty: unknown
};

struct SpeedWarning {
  std::string code;  ///< of the catalogue: "report.speed_sgemm"
  std::string text;  ///< what was found, what was expected, what to do
};

/// What is slower than this machine could be; what was not measured is not judged.
std::vector<SpeedWarning> speed_warnings(const Speed& speed, const SpeedSettings& settings);

/// The JSON object of a speed, with a null for what was not measured.
std::string speed_json(const Speed& speed);

/// One line a kind of work; what was not measured is left out.
std::string speed_text(const Speed& speed);

/// How the system gives transparent huge pages: "always", "madvise", "never"; empty where it does not tell.
/// `root` stands for "/".
std::string huge_page_setting(const std::filesystem::path& root = "/");

}  // namespace accrue
