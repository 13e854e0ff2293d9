// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/formats/image_files.h"

namespace accrue::test {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

Image decoded(const std::string& file) {
  return decode_image(as_bytes(file), "a.png");
}

void expect_size(const Image& image, int64_t channels, int64_t height, int64_t width) {
  EXPECT_EQ(image.channels, channels);
  EXPECT_EQ(image.height, height);
  EXPECT_EQ(image.width, width);
  EXPECT_EQ(image.pixels.size(), static_cast<size_t>(channels * height * width));
}

TEST(Png, GrayOfEveryDepth) {
  Image image =
      decoded(PngFile{.width = 3, .height = 2, .depth = 1, .rows = {0b10100000, 0b01000000}}.bytes());
  expect_size(image, 1, 2, 3);
  EXPECT_THAT(image.pixels, ElementsAre(255, 0, 255, 0, 255, 0));
  image = decoded(PngFile{.width = 4, .height = 1, .depth = 2, .rows = {0b00011011}}.bytes());
  EXPECT_THAT(image.pixels, ElementsAre(0, 85, 170, 255));
  image = decoded(PngFile{.width = 3, .height = 1, .depth = 4, .rows = {0x07, 0xF0}}.bytes());
  EXPECT_THAT(image.pixels, ElementsAre(0, 119, 255));
  image = decoded(PngFile{.width = 3, .height = 1, .rows = {0, 100, 255}}.bytes());
  EXPECT_THAT(image.pixels, ElementsAre(0, 100, 255));
  // 255 / 65535 is 1 / 257: 128 is just below a half, 129 just above.
  image = decoded(
      PngFile{.width = 4, .height = 1, .depth = 16, .rows = {0, 128, 0, 129, 0x12, 0x34, 255, 255}}.bytes());
  EXPECT_THAT(image.pixels, ElementsAre(0, 1, 0x12, 255));
}

TEST(Png, ColourChannelsLieApart) {
  Image image = decoded(
      PngFile{.width = 2, .height = 1, .type = PNG_COLOR_TYPE_RGB, .rows = {1, 2, 3, 4, 5, 6}}.bytes());
  expect_size(image, 3, 1, 2);
  EXPECT_THAT(image.pixels, ElementsAre(1, 4, 2, 5, 3, 6));
  image = decoded(PngFile{
      .width = 1,
      .height = 1,
      .depth = 16,
      .type = PNG_COLOR_TYPE_RGB,
      .rows = {0x01, 0x01, 0x80, 0x80, 0xFF,
               0x00}}.bytes());
  EXPECT_THAT(image.pixels, ElementsAre(1, 128, 254));  // 0xFF00 / 257 = 254.0
}

TEST(Png, PalettesAreLaidOut) {
  const std::vector<png_color> palette{{10, 20, 30}, {40, 50, 60}, {70, 80, 90}, {100, 110, 120}};
  for (const int depth : {1, 2, 4, 8}) {
    const Bytes row = depth == 1   ? Bytes{0b01000000}
                      : depth == 2 ? Bytes{0b00010000}
                      : depth == 4 ? Bytes{0x01, 0x00}
                                   : Bytes{0, 1, 0};
    const std::vector<png_color> colours(palette.begin(), palette.begin() + (depth == 1 ? 2 : 4));
    const Image image = decoded(PngFile{.width = 3,
                                        .height = 1,
                                        .depth = depth,
                                        .type = PNG_COLOR_TYPE_PALETTE,
                                        .rows = row,
                                        .palette = colours}
                                    .bytes());
    expect_size(image, 3, 1, 3);
    EXPECT_THAT(image.pixels, ElementsAre(10, 40, 10, 20, 50, 20, 30, 60, 30)) << depth;
  }
}

TEST(Png, TransparencyIsPutOnBlack) {
  Image image = decoded(PngFile{
      .width = 3, .height = 1, .type = PNG_COLOR_TYPE_GRAY_ALPHA, .rows = {200, 255, 200, 0, 200, 128}}
                            .bytes());
  expect_size(image, 1, 1, 3);
  EXPECT_THAT(image.pixels, ElementsAre(200, 0, 100));  // 200 * 128 / 255 = 100.4
  image = decoded(PngFile{
      .width = 2, .height = 1, .type = PNG_COLOR_TYPE_RGB_ALPHA, .rows = {10, 20, 30, 255, 250, 100, 8, 51}}
                      .bytes());
  expect_size(image, 3, 1, 2);
  EXPECT_THAT(image.pixels, ElementsAre(10, 50, 20, 20, 30, 2));  // a fifth; 8 / 5 = 1.6
  image = decoded(PngFile{
      .width = 1,
      .height = 1,
      .depth = 16,
      .type = PNG_COLOR_TYPE_RGB_ALPHA,
      .rows = {0xFF, 0xFF, 0x80, 0x80, 0, 0, 0x80,
               0x80}}.bytes());
  EXPECT_THAT(image.pixels, ElementsAre(128, 64, 0));  // 128 * 128 / 255 = 64.25
}

TEST(Png, ATransparentColourIsBlack) {
  Image image = decoded(PngFile{
      .width = 3,
      .height = 1,
      .type = PNG_COLOR_TYPE_PALETTE,
      .rows = {0, 1, 2},
      .palette = {{200, 100, 50}, {200, 100, 50}, {1, 2, 3}},
      .palette_alpha = {255,
                        51}}.bytes());
  EXPECT_THAT(image.pixels, ElementsAre(200, 40, 1, 100, 20, 2, 50, 10, 3));
  image = decoded(PngFile{.width = 2, .height = 1, .rows = {77, 78}, .clear = {{0, 0, 0, 0, 77}}}.bytes());
  EXPECT_THAT(image.pixels, ElementsAre(0, 78));
  image = decoded(PngFile{
      .width = 2,
      .height = 1,
      .type = PNG_COLOR_TYPE_RGB,
      .rows = {1, 2, 3, 1, 2, 4},
      .clear = {{0, 1, 2, 3,
                 0}}}.bytes());
  EXPECT_THAT(image.pixels, ElementsAre(0, 1, 0, 2, 0, 4));
  // The two are told apart by 16 bits, before they become 8.
  image = decoded(PngFile{
      .width = 2, .height = 1, .depth = 16, .rows = {0x40, 0, 0x40, 1}, .clear = {{0, 0, 0, 0, 0x4000}}}
                      .bytes());
  EXPECT_THAT(image.pixels, ElementsAre(0, 64));
}

TEST(Png, InterlacedIsTheSamePicture) {
  PngFile file{.width = 13, .height = 11, .type = PNG_COLOR_TYPE_RGB, .rows = gradient(11, 13, 3)};
  const Image image = decoded(file.bytes());
  EXPECT_EQ(image.pixels[0], 40);
  EXPECT_EQ(image.pixels[static_cast<size_t>(2 * 11 * 13 + 10 * 13 + 12)], 40 + 50 + 36 + 40);
  file.interlaced = true;
  EXPECT_THAT(decoded(file.bytes()).pixels, ElementsAreArray(image.pixels));
}

// Within a few levels: at quality 95 without subsampling a slow gradient has coefficients in the lowest
// frequencies only, whose quantizers are 1 to 3, and colour conversion rounds twice.
TEST(Jpeg, ColourAndGrayAreCloseToTheOriginal) {
  for (const bool progressive : {false, true}) {
    for (const size_t channels : {1, 3}) {
      const Bytes pixels = gradient(21, 19, channels);
      const std::string file = JpegFile{.width = 19,
                                        .height = 21,
                                        .given = channels == 1 ? JCS_GRAYSCALE : JCS_RGB,
                                        .stored = channels == 1 ? JCS_GRAYSCALE : JCS_YCbCr,
                                        .pixels = pixels,
                                        .quality = 95,
                                        .progressive = progressive}
                                   .bytes();
      const Image image = decoded(file);
      expect_size(image, static_cast<int64_t>(channels), 21, 19);
      int worst = 0;
      for (size_t place = 0; place < size_t{21 * 19}; ++place)
        for (size_t channel = 0; channel < channels; ++channel)
          worst = std::max(
              worst, std::abs(image.pixels[channel * 21 * 19 + place] - pixels[place * channels + channel]));
      EXPECT_LE(worst, 4) << channels << " " << progressive;
    }
  }
}

TEST(Jpeg, RgbIsNotTakenForYCbCr) {
  Bytes red;
  for (int pixel = 0; pixel < 64; ++pixel) red.insert(red.end(), {200, 8, 16});
  const Image image = decoded(JpegFile{.width = 8, .height = 8, .stored = JCS_RGB, .pixels = red}.bytes());
  // An even block has one coefficient, eight times a whole number: at quality 100 nothing is rounded.
  EXPECT_EQ(image.pixels[0], 200);
  EXPECT_EQ(image.pixels[64], 8);
  EXPECT_EQ(image.pixels[128], 16);
}

// Six even blocks (exact at quality 100), which are A B C above D E F in the file.
struct Orientation : testing::Test {
  static std::string file(const std::string& app1) {
    Bytes pixels;
    for (int y = 0; y < 16; ++y)
      for (int x = 0; x < 24; ++x) pixels.push_back(static_cast<uint8_t>('A' + y / 8 * 3 + x / 8));
    return JpegFile{.width = 24,
                    .height = 16,
                    .given = JCS_GRAYSCALE,
                    .stored = JCS_GRAYSCALE,
                    .pixels = pixels,
                    .app1 = app1}
        .bytes();
  }
  // The blocks of a picture, its rows joined by "/"; "?" where a block is not even.
  static std::string blocks(const Image& image) {
    std::string text;
    for (int64_t y = 0; y < image.height; ++y) {
      if (y % 8 == 0 && y > 0) text += '/';
      for (int64_t x = 0; x < image.width; ++x) {
        const uint8_t value = image.pixels[static_cast<size_t>(y * image.width + x)];
        if (y % 8 == 0 && x % 8 == 0)
          text += static_cast<char>(value);
        else if (value != image.pixels[static_cast<size_t>(y / 8 * 8 * image.width + x / 8 * 8)])
          text += '?';
      }
    }
    return text;
  }
};

TEST_F(Orientation, EveryOneIsApplied) {
  const std::string upright[] = {"ABC/DEF",  "CBA/FED",  "FED/CBA",  "DEF/ABC",
                                 "AD/BE/CF", "DA/EB/FC", "FC/EB/DA", "CF/BE/AD"};
  for (uint32_t orientation = 1; orientation <= 8; ++orientation)
    for (const bool little : {false, true})
      EXPECT_EQ(blocks(decoded(file(std::string("Exif\0\0", 6) + exif(orientation, little)))),
                upright[orientation - 1])
          << orientation;
  EXPECT_EQ(blocks(decoded(file(""))), "ABC/DEF");
}

TEST_F(Orientation, NonsenseIsHarmless) {
  const std::string start("Exif\0\0", 6);
  for (const uint32_t orientation : {0u, 9u, 255u, 65535u})
    EXPECT_EQ(blocks(decoded(file(start + exif(orientation)))), "ABC/DEF");
  const std::string good = exif(6);
  for (size_t length = 0; length < 20; ++length)
    EXPECT_EQ(blocks(decoded(file(start + good.substr(0, length)))), "ABC/DEF") << length;
  std::string far = good;
  far.replace(4, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_EQ(blocks(decoded(file(start + far))), "ABC/DEF");
  std::string text = good;
  text[13] = 2;
  EXPECT_EQ(blocks(decoded(file(start + text))), "ABC/DEF");
  EXPECT_EQ(blocks(decoded(file("http://ns.adobe.com/xap/1.0/"))), "ABC/DEF");
}

TEST_F(Orientation, OfAPngIsApplied) {
  const PngFile file{.width = 3,
                     .height = 2,
                     .type = PNG_COLOR_TYPE_GRAY_ALPHA,
                     .rows = {1, 255, 2, 255, 3, 255, 4, 255, 5, 255, 6, 0},
                     .orientation = exif(6)};
  const Image image = decoded(file.bytes());
  expect_size(image, 1, 3, 2);
  EXPECT_THAT(image.pixels, ElementsAre(4, 1, 5, 2, 0, 3));
}

TEST(Channels, GrayIsRepeatedAndColourWeighed) {
  const Image gray{.channels = 1, .height = 1, .width = 2, .pixels = {7, 9}};
  EXPECT_THAT(with_channels(gray, 3).pixels, ElementsAre(7, 9, 7, 9, 7, 9));
  EXPECT_EQ(with_channels(gray, 3).channels, 3);
  EXPECT_EQ(with_channels(gray, 1).pixels, gray.pixels);
  const Image colour{
      .channels = 3, .height = 1, .width = 4, .pixels = {255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255}};
  EXPECT_THAT(with_channels(colour, 1).pixels, ElementsAre(76, 150, 29, 255));  // 76.245, 149.685, 29.07
  EXPECT_EQ(with_channels(colour, 3).pixels, colour.pixels);
}

}  // namespace
}  // namespace accrue::test
