// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/strict_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace accrue {
namespace {

using Json = nlohmann::ordered_json;

TEST(StrictText, NumbersThatAreNotFiniteAreNullAndNamedByTheirPlace) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Json json = Json::parse(strict_text(
      {{"loss", std::numeric_limits<double>::quiet_NaN()},
       {"rows", Json::array({Json{{"value", 1.5}}, Json{{"value", -infinity}, {"limit", infinity}}})}}));
  EXPECT_EQ(json,
            (Json{{"loss", nullptr},
                  {"rows", Json::array({Json{{"value", 1.5}}, Json{{"value", nullptr}, {"limit", nullptr}}})},
                  {"non_finite", {{"loss", "nan"}, {"rows.1.value", "-inf"}, {"rows.1.limit", "inf"}}}}));
}

TEST(StrictText, NothingToNameIsNull) {
  EXPECT_EQ(strict_text({{"a", 1}}), "{\n  \"a\": 1,\n  \"non_finite\": null\n}");
}

TEST(StrictText, BrokenUtf8CostsACharacterAlone) {
  EXPECT_EQ(Json::parse(strict_text({{"a", "x\xff"}}))["a"], "x\xEF\xBF\xBD");
}

}  // namespace
}  // namespace accrue
