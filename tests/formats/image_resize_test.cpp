// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "accrue/formats/image.h"
#include "tests/support/errors.h"

namespace accrue::test {
namespace {

using testing::ElementsAre;

Image row(std::vector<uint8_t> pixels) {
  return {
      .channels = 1, .height = 1, .width = static_cast<int64_t>(pixels.size()), .pixels = std::move(pixels)};
}

TEST(Resize, ShrinkingTakesTheMeanOfTheArea) {
  EXPECT_THAT(resized(row({10, 20, 30, 41}), 1, 2).pixels, ElementsAre(15, 36));  // 35.5 is rounded up
  // 3 to 2: (2 a + b) / 3 and (b + 2 c) / 3.
  EXPECT_THAT(resized(row({0, 30, 90}), 1, 2).pixels, ElementsAre(10, 70));
  // 5 to 3: (3 a + 2 b) / 5, (b + 3 c + d) / 5, (2 d + 3 e) / 5.
  EXPECT_THAT(resized(row({10, 20, 30, 40, 50}), 1, 3).pixels, ElementsAre(14, 30, 46));
  EXPECT_THAT(resized(row({0, 255, 255}), 1, 1).pixels, ElementsAre(170));
}

TEST(Resize, EnlargingIsBilinearBetweenCentres) {
  // 2 to 4: centres at -1/4, 1/4, 3/4, 5/4 of the old ones.
  EXPECT_THAT(resized(row({0, 100}), 1, 4).pixels, ElementsAre(0, 25, 75, 100));
  // 2 to 3: centres at -1/6, 1/2, 7/6.
  EXPECT_THAT(resized(row({10, 21}), 1, 3).pixels, ElementsAre(10, 16, 21));  // 15.5 is rounded up
  EXPECT_THAT(resized(row({7}), 2, 3).pixels, ElementsAre(7, 7, 7, 7, 7, 7));
}

TEST(Resize, AxesAndChannelsAreTakenEachForItself) {
  const Image image{.channels = 2, .height = 2, .width = 1, .pixels = {0, 100, 40, 60}};
  const Image result = resized(image, 1, 3);  // fewer rows, more columns
  EXPECT_EQ(result.channels, 2);
  EXPECT_EQ(result.height, 1);
  EXPECT_EQ(result.width, 3);
  EXPECT_THAT(result.pixels, ElementsAre(50, 50, 50, 50, 50, 50));
  const Image square{.channels = 1, .height = 2, .width = 2, .pixels = {0, 100, 200, 40}};
  EXPECT_THAT(resized(square, 1, 1).pixels, ElementsAre(85));
  EXPECT_THAT(resized(square, 2, 4).pixels, ElementsAre(0, 25, 75, 100, 200, 160, 80, 40));
  EXPECT_THAT(resized(square, 4, 1).pixels, ElementsAre(50, 68, 103, 120));  // 67.5, 102.5
}

// The rows of a picture one after the other, in double precision, against the whole numbers; rounding half up
// may go either way where the double lies a hair beside the half.
TEST(Resize, AgreesWithTheFormulaInDoubles) {
  Image image = row({});
  for (int place = 0; place < 37; ++place)
    image.pixels.push_back(static_cast<uint8_t>(place * place * 7 % 256));
  image.width = 37;
  for (const int64_t width : {1, 2, 5, 17, 36, 38, 64, 111}) {
    const Image result = resized(image, 1, width);
    const double scale = 37.0 / static_cast<double>(width);
    for (int64_t x = 0; x < width; ++x) {
      double wanted = 0;
      for (int64_t old = 0; old < 37; ++old) {
        const double centre = std::clamp((static_cast<double>(x) + 0.5) * scale - 0.5, 0.0, 36.0);
        const double overlap = std::min(static_cast<double>(x + 1) * scale, static_cast<double>(old + 1)) -
                               std::max(static_cast<double>(x) * scale, static_cast<double>(old));
        const double share = width < 37 ? std::max(overlap, 0.0) / scale
                                        : std::max(0.0, 1 - std::abs(static_cast<double>(old) - centre));
        wanted += share * image.pixels[static_cast<size_t>(old)];
      }
      EXPECT_NEAR(result.pixels[static_cast<size_t>(x)], wanted, 0.5 + 1e-9) << width << " " << x;
    }
  }
}

TEST(Resize, TheSameSizeIsTheSamePicture) {
  const Image image{.channels = 1, .height = 2, .width = 3, .pixels = {1, 2, 3, 250, 251, 252}};
  EXPECT_EQ(resized(image, 2, 3).pixels, image.pixels);
  EXPECT_THAT(resized(image, 1, 3).pixels, ElementsAre(126, 127, 128));  // 125.5 and so on; columns untouched
}

TEST(Resize, ImpossibleCallsAreRefused) {
  EXPECT_ERROR(resized(row({1, 2}), 0, 5), ArgumentError,
               "a picture of 1 x 2 pixels cannot be made 0 x 5; sides from 1 to 16777216 are possible");
  EXPECT_ERROR(resized(row({}), 1, 1), ArgumentError,
               "a picture of 1 x 0 pixels cannot be made 1 x 1; sides from 1 to 16777216 are possible");
  EXPECT_ERROR(
      resized(row({1}), 1, 16777217), ArgumentError,
      "a picture of 1 x 1 pixels cannot be made 1 x 16777217; sides from 1 to 16777216 are possible");
  EXPECT_ERROR(with_channels(row({1}), 4), ArgumentError,
               "a picture of 1 channels cannot be given 4; 1 (gray) and 3 (red, green, blue) are possible on "
               "both sides");
}

}  // namespace
}  // namespace accrue::test
