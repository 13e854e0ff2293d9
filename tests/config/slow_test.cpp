// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/slow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/warnings.h"

namespace accrue::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> warned(const std::string& more, bool bf16_units) {
  const std::string text = "task: classification\ndata: {train: a.csv}\n" + more;
  test::Warnings warnings;
  warn_of_slow(load_text(text, "run.yaml"), bf16_units);
  return warnings.texts;
}

TEST(WarnOfSlow, NamesAModelThatComputesInBf16WithoutUnits) {
  EXPECT_THAT(
      warned("model: {kind: mlp}\nprecision: {parameters: bf16}\n", false),
      ElementsAre(HasSubstr("run.yaml:4:25: precision.parameters is bf16, in which mlp also computes")));
  EXPECT_THAT(warned("model: {kind: linear}\nprecision: {parameters: bf16}\n", false),
              ElementsAre(HasSubstr("in which linear also computes")));
}

TEST(WarnOfSlow, IsSilentWhereNothingIsSlow) {
  EXPECT_THAT(warned("model: {kind: mlp}\nprecision: {parameters: bf16}\n", true), IsEmpty());
  EXPECT_THAT(warned("model: {kind: mlp}\n", false), IsEmpty());
  const std::string pictures = "task: image-classification\ndata: {train: a.csv}\n";
  test::Warnings warnings;
  warn_of_slow(load_text(pictures + "model: {kind: cnn}\nprecision: {parameters: bf16}\n", "run.yaml"),
               false);
  EXPECT_THAT(warnings.texts, IsEmpty());
}

}  // namespace
}  // namespace accrue::config
