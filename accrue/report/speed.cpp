// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/speed.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "accrue/base/messages/report.h"

namespace accrue {
namespace {

/// Of the rate that is compared with; measured here, ordinary products reach 0.88 to 0.94 of it.
constexpr double kLeastShare = 0.6;

/// Three digits are more than bursts of some milliseconds tell.
std::string rate_text(double rate) {
  char text[32];
  std::snprintf(text, sizeof text, rate < 10 ? "%.2f" : rate < 100 ? "%.1f" : "%.0f", rate);
  return text;
}

std::string percent_text(double share) {
  return std::to_string(std::llround(100 * share)) + " %";
}

class Judge {
 public:
  std::vector<SpeedWarning> take() { return std::move(warnings_); }

  void say(const Message& message, std::initializer_list<MessageArgument> arguments) {
    warnings_.push_back({std::string(message.code), format(message, arguments)});
  }

  /// Says whether a rate is below the least share of another one.
  bool say_if_low(const Message& message, std::optional<double> got, std::optional<double> beside) {
    if (!got || !beside || *got >= kLeastShare * *beside) return false;
    say(message, {{"got", rate_text(*got)},
                  {"beside", rate_text(*beside)},
                  {"share", percent_text(*got / *beside)},
                  {"needed", percent_text(kLeastShare)}});
    return true;
  }

 private:
  std::vector<SpeedWarning> warnings_;
};

}  // namespace

std::vector<SpeedWarning> speed_warnings(const Speed& speed, const SpeedSettings& settings) {
  Judge judge;
  if (settings.threads > settings.thread_limit) {
    judge.say(
        message::speed_threads,
        {{"threads", settings.threads}, {"limit", settings.thread_limit}, {"origin", settings.limit_origin}});
  }
  if (settings.parallel_threads < settings.threads) {
    judge.say(message::speed_openmp, {{"got", settings.parallel_threads}, {"threads", settings.threads}});
  }
  if (settings.huge_pages == "never") {
    const auto& fresh = speed.fresh_gbytes_per_second;
    judge.say(message::speed_huge_pages, {{"fresh", fresh ? " at " + rate_text(*fresh) + " GB/s" : ""}});
  }
  // Where products are slow altogether, on a busy machine most of all, their ratios tell nothing of the BLAS.
  if (!judge.say_if_low(message::speed_sgemm, speed.sgemm_gflops, speed.fma_gflops)) {
    judge.say_if_low(message::speed_wide, speed.wide_sgemm_gflops, speed.sgemm_gflops);
  }
  const auto& bf16 = speed.bf16_gemm_gflops;
  const auto& fp32 = speed.small_sgemm_gflops;
  if (bf16 && fp32 && *bf16 < *fp32) {
    judge.say(message::speed_bf16,
              {{"got", rate_text(*bf16)}, {"fp32", rate_text(*fp32)}, {"factor", rate_text(*fp32 / *bf16)}});
  }
  return judge.take();
}

std::string speed_json(const Speed& speed) {
  const auto known = [](const std::optional<double>& rate) {
    return rate ? nlohmann::ordered_json(*rate) : nlohmann::ordered_json();
  };
  const nlohmann::ordered_json object = {
      {"fma_gflops", known(speed.fma_gflops)},
      {"fma_gflops_one_thread", known(speed.fma_gflops_one_thread)},
      {"sgemm_gflops", known(speed.sgemm_gflops)},
      {"wide_sgemm_gflops", known(speed.wide_sgemm_gflops)},
      {"small_sgemm_gflops", known(speed.small_sgemm_gflops)},
      {"bf16_gemm_gflops", known(speed.bf16_gemm_gflops)},
      {"stream_gbytes_per_second", known(speed.stream_gbytes_per_second)},
      {"fresh_gbytes_per_second", known(speed.fresh_gbytes_per_second)},
      {"fresh_huge_gbytes_per_second", known(speed.fresh_huge_gbytes_per_second)},
      {"page_faults_per_second", known(speed.page_faults_per_second)},
  };
  return object.dump();
}

std::string speed_text(const Speed& speed) {
  std::string text;
  const auto line = [&text](const char* name, std::optional<double> rate, const char* unit,
                            const std::string& more) {
    if (rate) text += name + rate_text(*rate) + unit + more + '\n';
  };
  const auto and_then = [](std::optional<double> rate, const char* unit, const char* what) {
    return rate ? ", " + rate_text(*rate) + unit + what : std::string();
  };
  constexpr const char* kGflops = " GFLOP/s";
  constexpr const char* kGbytes = " GB/s";
  line("fp32        ", speed.fma_gflops, kGflops,
       " of multiply-adds" + and_then(speed.fma_gflops_one_thread, kGflops, " on one thread"));
  line("products    ", speed.sgemm_gflops, kGflops,
       " square" + and_then(speed.wide_sgemm_gflops, kGflops, " wide") +
           and_then(speed.bf16_gemm_gflops, kGflops, " in bf16"));
  line("stream      ", speed.stream_gbytes_per_second, kGbytes, " read and written");
  line("fresh       ", speed.fresh_gbytes_per_second, kGbytes,
       " of new memory" + and_then(speed.fresh_huge_gbytes_per_second, kGbytes, " on huge pages"));
  return text;
}

std::string huge_page_setting(const std::filesystem::path& root) {
  std::ifstream file(root / "sys/kernel/mm/transparent_hugepage/enabled");
  for (std::string word; file >> word;) {
    if (word.size() > 2 && word.front() == '[' && word.back() == ']') return word.substr(1, word.size() - 2);
  }
  return "";
}

}  // namespace accrue
