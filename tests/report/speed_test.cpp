// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/files.h"

namespace accrue {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A machine on which nothing is slow.
Speed good_speed() {
  return {.fma_gflops = 200,
          .fma_gflops_one_thread = 101.5,
          .sgemm_gflops = 180,
          .wide_sgemm_gflops = 150,
          .small_sgemm_gflops = 160,
          .bf16_gemm_gflops = 320,
          .stream_gbytes_per_second = 45,
          .fresh_gbytes_per_second = 2.4,
          .fresh_huge_gbytes_per_second = 10,
          .page_faults_per_second = 6e5};
}
SpeedSettings good_settings() {
  return {.threads = 2,
          .thread_limit = 2,
          .limit_origin = "physical cores",
          .parallel_threads = 2,
          .huge_pages = "madvise"};
}

/// "code: text" of each warning.
std::vector<std::string> warned(const Speed& speed, const SpeedSettings& settings = good_settings()) {
  std::vector<std::string> texts;
  for (const SpeedWarning& warning : speed_warnings(speed, settings)) {
    texts.push_back(warning.code + ": " + warning.text);
  }
  return texts;
}

TEST(SpeedWarnings, AreNoneOnAGoodMachine) {
  EXPECT_THAT(warned(good_speed()), IsEmpty());
  SpeedSettings fewer = good_settings();
  fewer.threads = fewer.parallel_threads = 1;
  EXPECT_THAT(warned(good_speed(), fewer), IsEmpty());
}

TEST(SpeedWarnings, AreNoneOfWhatWasNotMeasured) {
  EXPECT_THAT(warned({}), IsEmpty());
  Speed half = good_speed();
  half.sgemm_gflops.reset();
  half.small_sgemm_gflops.reset();
  EXPECT_THAT(warned(half), IsEmpty());
}

TEST(SpeedWarnings, NameProductsFarBelowTheMultiplyAdds) {
  Speed speed = good_speed();
  speed.sgemm_gflops = 120;  // 60 % to the digit is enough
  EXPECT_THAT(warned(speed), IsEmpty());
  speed.sgemm_gflops = 84;
  speed.wide_sgemm_gflops = 30;  // not blamed on the BLAS
  EXPECT_THAT(warned(speed), ElementsAre(AllOf(HasSubstr("report.speed_sgemm"),
                                               HasSubstr("84.0 GFLOP/s, 42 % of the 200 GFLOP/s"),
                                               HasSubstr("at least 60 %"), HasSubstr("lower threads"))));
}

TEST(SpeedWarnings, NameSlowWideProducts) {
  Speed speed = good_speed();
  speed.wide_sgemm_gflops = 90;
  EXPECT_THAT(warned(speed), ElementsAre(AllOf(HasSubstr("report.speed_wide"),
                                               HasSubstr("90.0 GFLOP/s, 50 % of the 180 GFLOP/s"))));
}

TEST(SpeedWarnings, NameBf16SlowerThanFp32WithTheFactor) {
  Speed speed = good_speed();
  speed.bf16_gemm_gflops = 16;
  EXPECT_THAT(warned(speed), ElementsAre(AllOf(HasSubstr("report.speed_bf16"), HasSubstr("10.0 times slower"),
                                               HasSubstr("16.0 against 160 GFLOP/s"))));
}

TEST(SpeedWarnings, NameParallelForThatIsSerial) {
  SpeedSettings settings = good_settings();
  settings.parallel_threads = 1;
  EXPECT_THAT(warned(good_speed(), settings),
              ElementsAre(AllOf(HasSubstr("report.speed_openmp"), HasSubstr("runs on 1 of 2 threads"),
                                HasSubstr("-DACCRUE_OPENMP=ON"))));
}

TEST(SpeedWarnings, NameParallelForThatHasFewerThreadsThanWereSet) {
  SpeedSettings settings = good_settings();
  settings.threads = settings.thread_limit = 8;
  settings.parallel_threads = 4;
  EXPECT_THAT(warned(good_speed(), settings), ElementsAre(HasSubstr("runs on 4 of 8 threads")));
}

TEST(SpeedWarnings, NameHugePagesThatAreOff) {
  SpeedSettings settings = good_settings();
  settings.huge_pages = "never";
  EXPECT_THAT(warned(good_speed(), settings),
              ElementsAre(AllOf(HasSubstr("report.speed_huge_pages"), HasSubstr("at 2.40 GB/s"))));
  EXPECT_THAT(warned({}, settings), ElementsAre(Not(HasSubstr("GB/s"))));
  for (const char* const setting : {"always", "madvise", ""}) {
    settings.huge_pages = setting;
    EXPECT_THAT(warned(good_speed(), settings), IsEmpty()) << setting;
  }
}

TEST(SpeedWarnings, NameMoreThreadsThanAreOfUse) {
  SpeedSettings settings = good_settings();
  settings.threads = settings.parallel_threads = 8;
  settings.limit_origin = "cgroup quota";
  EXPECT_THAT(warned(good_speed(), settings),
              ElementsAre(AllOf(HasSubstr("report.speed_threads"),
                                HasSubstr("threads is 8, and 2 is the most"), HasSubstr("cgroup quota"))));
}

TEST(SpeedJson, HasANumberOrANullForEveryRate) {
  const auto full = nlohmann::json::parse(speed_json(good_speed()));
  const auto empty = nlohmann::json::parse(speed_json({}));
  for (const char* const name :
       {"fma_gflops", "fma_gflops_one_thread", "sgemm_gflops", "wide_sgemm_gflops", "small_sgemm_gflops",
        "bf16_gemm_gflops", "stream_gbytes_per_second", "fresh_gbytes_per_second",
        "fresh_huge_gbytes_per_second", "page_faults_per_second"}) {
    EXPECT_GT(full.at(name).get<double>(), 0) << name;
    EXPECT_TRUE(empty.at(name).is_null()) << name;
  }
  EXPECT_EQ(full.at("fma_gflops"), 200);
  EXPECT_EQ(full.at("stream_gbytes_per_second"), 45);
  EXPECT_EQ(full.size(), empty.size());
}

TEST(SpeedText, HasALineAKindOfWork) {
  EXPECT_EQ(speed_text(good_speed()),
            "fp32        200 GFLOP/s of multiply-adds, 102 GFLOP/s on one thread\n"
            "products    180 GFLOP/s square, 150 GFLOP/s wide, 320 GFLOP/s in bf16\n"
            "stream      45.0 GB/s read and written\n"
            "fresh       2.40 GB/s of new memory, 10.0 GB/s on huge pages\n");
  EXPECT_EQ(speed_text({}), "");
}

TEST(HugePageSetting, IsTheWordInBrackets) {
  const std::string root = test::fresh_folder();
  const std::string folder = root + "/sys/kernel/mm/transparent_hugepage";
  std::filesystem::create_directories(folder);
  for (const auto& [text, word] :
       {std::pair("always [madvise] never\n", "madvise"), std::pair("always madvise [never]\n", "never"),
        std::pair("[always] madvise never\n", "always"), std::pair("[]\n", "")}) {
    test::write_file(folder + "/enabled", text);
    EXPECT_EQ(huge_page_setting(root), word);
  }
  EXPECT_EQ(huge_page_setting("/nonexistent"), "");
}

}  // namespace
}  // namespace accrue
