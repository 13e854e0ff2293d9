// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "accrue/formats/image.h"
#include "tests/formats/image_files.h"
#include "tests/support/errors.h"

namespace accrue::test {
namespace {

std::string good_png() {
  return PngFile{.width = 13, .height = 11, .type = PNG_COLOR_TYPE_RGB, .rows = gradient(11, 13, 3)}.bytes();
}

std::string good_jpeg(bool progressive = false) {
  return JpegFile{
      .width = 40, .height = 20, .pixels = gradient(20, 40, 3), .quality = 90, .progressive = progressive}
      .bytes();
}

// The whole text of the DataError; libpng and libjpeg have written nothing to the terminal.
std::string refusal(const std::string& file, const ImageLimits& limits = {}) {
  std::string text = "nothing was thrown";
  testing::internal::CaptureStderr();
  try {
    decode_image(as_bytes(file), "d/a.png", limits);
  } catch (const DataError& error) {
    text = error.what();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  return text;
}

TEST(BadImage, OfAnotherKindIsNamed) {
  const auto other = [](const std::string& kind) {
    return "d/a.png: is " + kind + ", whatever its name says; a PNG or JPEG picture is needed: convert it";
  };
  EXPECT_EQ(refusal(""), "d/a.png: the file is empty; a PNG or JPEG picture is needed: fetch it again");
  EXPECT_EQ(refusal("GIF89a\1\0\1"), other("a GIF picture"));
  EXPECT_EQ(refusal(std::string("RIFF\x10\0\0\0WEBPVP8 ", 16)), other("a WebP picture"));
  EXPECT_EQ(refusal(std::string("BM\x46\0\0\0\0\0", 8)), other("a BMP picture"));
  EXPECT_EQ(refusal(std::string("II*\0\x08\0\0\0", 8)), other("a TIFF picture"));
  EXPECT_EQ(refusal(std::string("MM\0*\0\0\0\x08", 8)), other("a TIFF picture"));
  EXPECT_EQ(refusal(std::string("\0\0\0\x1C"
                                "ftypavif",
                                12)),
            other("an AVIF, HEIC or video file"));
  EXPECT_EQ(refusal("id,label\n1,2\n"), other("a file of another kind"));
  EXPECT_EQ(refusal("\xFF"), other("a file of another kind"));
  EXPECT_EQ(refusal("<!DOCTYPE html><html>"),
            "d/a.png: is a web page, not the file itself; the download went wrong: fetch the file itself");
  EXPECT_EQ(refusal("version https://git-lfs.github.com/spec/v1\n"),
            "d/a.png: is a Git LFS pointer, not the file itself; run \"git lfs pull\" in its repository or "
            "download the file");
  EXPECT_EQ(refusal("\x1F\x8B\x08"), "d/a.png: is packed by gzip; unpack it first (gunzip)");
}

std::string cut_text(size_t length, const std::string& format) {
  return "d/a.png: ends after " + std::to_string(length) + " bytes, inside its " + format +
         " picture; the file is cut: fetch it again";
}

std::string damage_text(const std::string& reason, const std::string& format) {
  return "d/a.png: its " + format + " data are damaged (" + reason + "); fetch the file or save it again";
}

TEST(BadImage, CutAnywhereIsRefused) {
  const std::string png = good_png();
  for (size_t length = 4; length < png.size(); ++length)
    EXPECT_EQ(refusal(png.substr(0, length)), cut_text(length, "PNG"));
  for (const bool progressive : {false, true}) {
    const std::string jpeg = good_jpeg(progressive);
    for (size_t length = 2; length < jpeg.size(); ++length)
      EXPECT_EQ(refusal(jpeg.substr(0, length)), cut_text(length, "JPEG"));
    // With an end marker put behind the cut.
    const std::string ended = jpeg.substr(0, jpeg.size() - 40) + "\xFF\xD9";
    EXPECT_EQ(refusal(ended), damage_text("Corrupt JPEG data: premature end of data segment", "JPEG"));
  }
}

TEST(BadImage, DamagedPng) {
  const std::string png = good_png();
  const size_t data = png.find("IDAT");
  std::string bad = png;
  bad[20] = 1;  // a byte of the width
  EXPECT_EQ(refusal(bad), damage_text("IHDR: CRC error", "PNG"));
  bad = png;
  bad[data + 10] = static_cast<char>(bad[data + 10] ^ 1);
  EXPECT_EQ(refusal(bad), damage_text("IDAT: incorrect data check", "PNG"));
  EXPECT_EQ(refusal(with_checksums(bad)), damage_text("IDAT: incorrect data check", "PNG"));
  bad = png;
  bad[png.size() - 13] = static_cast<char>(bad[png.size() - 13] ^ 1);  // before the 12 bytes of IEND
  EXPECT_EQ(refusal(bad), damage_text("IDAT: CRC error", "PNG"));
  bad = png;
  bad.replace(0, 8, "\x89PNG\n\x1A\n\n");  // what a transfer as text makes of the first bytes
  EXPECT_EQ(refusal(bad), damage_text("PNG file corrupted by ASCII conversion", "PNG"));
  bad = png;
  bad[24] = 7;
  EXPECT_EQ(refusal(with_checksums(bad)), damage_text("Invalid IHDR data", "PNG"));
  EXPECT_EQ(refusal(png_claiming(png, 0, 11)), damage_text("Invalid IHDR data", "PNG"));
  EXPECT_EQ(refusal(png_claiming(png, 13, 12)), damage_text("Not enough image data", "PNG"));
  bad = png;
  bad.replace(data - 4, 4, "\x7F\xFF\xFF\xFF");  // a length beyond the file
  EXPECT_EQ(refusal(bad), cut_text(bad.size(), "PNG"));
  bad = png;
  bad.replace(data, 4, "IEND");
  EXPECT_NE(refusal(with_checksums(bad)), "nothing was thrown");
  bad = PngFile{.width = 1, .height = 1, .type = PNG_COLOR_TYPE_PALETTE, .rows = {0}, .palette = {{1, 2, 3}}}
            .bytes();
  bad.erase(bad.find("PLTE") - 4, 15);
  EXPECT_EQ(refusal(bad), damage_text("IDAT: Missing PLTE before IDAT", "PNG"));
}

TEST(BadImage, DamagedJpeg) {
  const std::string jpeg = good_jpeg();
  EXPECT_EQ(refusal("\xFF\xD8\xFF\xD9"), damage_text("JPEG datastream contains no image", "JPEG"));
  std::string bad = jpeg;
  bad.erase(marker_place(bad, 0xDB), 2 + 67);  // the first quantization table
  EXPECT_EQ(refusal(bad), damage_text("Quantization table 0x00 was not defined", "JPEG"));
  bad = jpeg;
  bad[marker_place(bad, 0xC0) + 4] = 12;
  EXPECT_EQ(refusal(bad), damage_text("Unsupported JPEG data precision 12", "JPEG"));
  bad = jpeg;
  bad[marker_place(bad, 0xC0) + 1] = '\xC3';
  EXPECT_EQ(refusal(bad), damage_text("Unsupported JPEG process: SOF type 0xc3", "JPEG"));
  bad = jpeg;
  bad.replace(marker_place(bad, 0xC4) + 2, 2, "\xFF\xFF");  // a length beyond the file
  EXPECT_NE(refusal(bad), "nothing was thrown");
  bad = jpeg;
  bad.erase(marker_place(bad, 0xC0), 19);
  EXPECT_NE(refusal(bad), "nothing was thrown");
  EXPECT_EQ(refusal(jpeg_claiming(jpeg, 0, 20)), damage_text("Empty JPEG image (DNL not supported)", "JPEG"));
  EXPECT_EQ(refusal(jpeg_claiming(jpeg, 40, 200)),
            damage_text("Corrupt JPEG data: premature end of data segment", "JPEG"));
}

// A file that gives one channel over and over, each time with all its data.
TEST(BadImage, EndlessScansAreRefused) {
  const std::string jpeg =
      JpegFile{.width = 40, .height = 20, .pixels = gradient(20, 40, 3), .separate = true}.bytes();
  EXPECT_EQ(refusal(jpeg), "nothing was thrown");
  const size_t first = marker_place(jpeg, 0xDA);
  const std::string scan = jpeg.substr(first, marker_place(jpeg.substr(first + 2), 0xDA) + 2);
  std::string bad = jpeg.substr(0, jpeg.size() - 2);
  for (int copy = 0; copy < 497; ++copy) bad += scan;
  EXPECT_EQ(refusal(bad + "\xFF\xD9"), "nothing was thrown");
  EXPECT_EQ(refusal(bad + scan + "\xFF\xD9"), damage_text("more than 500 scans", "JPEG"));
}

TEST(BadImage, SizesAreLookedAtBeforeAnythingIsAllocated) {
  const auto large = [](const std::string& size) {
    return "d/a.png: has " + size +
           " pixels; at most 16384 on a side and 67108864 in all are read: make the picture smaller";
  };
  EXPECT_EQ(refusal(png_claiming(good_png(), 60000, 60000)), large("60000 x 60000"));
  EXPECT_EQ(refusal(png_claiming(good_png(), 2147483647, 2147483647)), large("2147483647 x 2147483647"));
  EXPECT_EQ(refusal(png_claiming(good_png(), 16385, 1)), large("16385 x 1"));
  EXPECT_EQ(refusal(png_claiming(good_png(), 16384, 4097)), large("16384 x 4097"));
  EXPECT_EQ(refusal(jpeg_claiming(good_jpeg(), 60000, 60000)), large("60000 x 60000"));
  EXPECT_EQ(refusal(jpeg_claiming(good_jpeg(), 65535, 65535)), large("65535 x 65535"));
  EXPECT_EQ(
      refusal(good_png(), {.max_side = 12}),
      "d/a.png: has 13 x 11 pixels; at most 12 on a side and 67108864 in all are read: make the picture "
      "smaller");
  EXPECT_EQ(refusal(good_jpeg(), {.max_pixels = 799}),
            "d/a.png: has 40 x 20 pixels; at most 16384 on a side and 799 in all are read: make the picture "
            "smaller");
  EXPECT_EQ(refusal(good_jpeg(), {.max_side = 40, .max_pixels = 800}), "nothing was thrown");
}

TEST(BadImage, ASizeThatTheFileCannotHoldIsRefused) {
  const std::string png = good_png(), jpeg = good_jpeg();
  const auto lie = [](const std::string& claim, const std::string& needed, const std::string& file) {
    return "d/a.png: claims " + claim + " pixels, which take at least " + needed + " bytes, and has " +
           std::to_string(file.size()) + "; the file is cut or damaged: fetch it again";
  };
  // 64 million pixels of 3 bytes, at most 1032 of them from one byte of the file.
  EXPECT_EQ(refusal(png_claiming(png, 8000, 8000)), lie("8000 x 8000", "186045", png));
  // Three planes of 1000 x 1000 blocks, a bit each.
  EXPECT_EQ(refusal(jpeg_claiming(jpeg, 8000, 8000)), lie("8000 x 8000", "375000", jpeg));
  // A picture of one colour comes closest to the bound and is read.
  const PngFile even{.width = 3000, .height = 3000, .depth = 1, .rows = Bytes(375 * 3000)};
  EXPECT_EQ(refusal(even.bytes()), "nothing was thrown");
}

TEST(BadImage, PrintColoursAreRefusedByName) {
  const auto kind = [](const std::string& name) {
    return "d/a.png: is a JPEG of the kind " + name +
           "; gray and RGB or YCbCr with Huffman codes are read: save it as one of these, or as PNG";
  };
  JpegFile file{.width = 8, .height = 8, .given = JCS_CMYK, .stored = JCS_CMYK, .pixels = gradient(8, 8, 4)};
  EXPECT_EQ(refusal(file.bytes()), kind("CMYK"));
  file.adobe = false;
  EXPECT_EQ(refusal(file.bytes()), kind("CMYK"));
  file.adobe = true;
  file.stored = JCS_YCCK;
  EXPECT_EQ(refusal(file.bytes()), kind("YCCK"));
  const JpegFile arithmetic{.width = 8, .height = 8, .pixels = gradient(8, 8, 3), .arithmetic = true};
  EXPECT_EQ(refusal(arithmetic.bytes()), kind("arithmetic-coded"));
}

TEST(BadImage, ExtraBytesBehindThePictureAreHarmless) {
  EXPECT_EQ(refusal(good_png() + "more"), "nothing was thrown");
  EXPECT_EQ(refusal(good_jpeg() + "more"), "nothing was thrown");
  EXPECT_TRUE(is_image(as_bytes(good_png())));
  EXPECT_TRUE(is_image(as_bytes(good_jpeg())));
  EXPECT_FALSE(is_image(as_bytes("\x89PNG\n\x1A\n\n")));
  EXPECT_FALSE(is_image({}));
}

// Either a picture whose numbers agree, or a DataError with the path; under sanitizers also no bad access.
TEST(BadImage, RandomChangesNeverCrash) {
  std::mt19937 random(7);
  const std::vector<std::string> files{good_png(), good_jpeg(), good_jpeg(true),
                                       PngFile{.width = 9,
                                               .height = 9,
                                               .depth = 16,
                                               .type = PNG_COLOR_TYPE_RGB_ALPHA,
                                               .rows = gradient(9, 9, 8),
                                               .interlaced = true,
                                               .orientation = exif(7)}
                                           .bytes(),
                                       PngFile{.width = 4,
                                               .height = 1,
                                               .depth = 2,
                                               .type = PNG_COLOR_TYPE_PALETTE,
                                               .rows = {27},
                                               .palette = {{1, 2, 3}, {4, 5, 6}},
                                               .palette_alpha = {9}}
                                           .bytes()};
  int num_refused = 0, num_read = 0;
  testing::internal::CaptureStderr();
  for (const std::string& file : files) {
    for (int round = 0; round < 400; ++round) {
      std::string bad = file;
      for (size_t change = 0; change <= random() % 4; ++change)
        bad[random() % bad.size()] = static_cast<char>(random());
      if (round % 2 == 0 && bad.starts_with("\x89PNG")) bad = with_checksums(bad);
      try {
        const Image image = decode_image(as_bytes(bad), "d/a.png", {.max_side = 4096, .max_pixels = 1 << 20});
        EXPECT_EQ(image.pixels.size(), static_cast<size_t>(image.channels * image.height * image.width));
        ++num_read;
      } catch (const DataError& error) {
        EXPECT_TRUE(std::string_view(error.what()).starts_with("d/a.png: "));
        ++num_refused;
      }
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_GT(num_refused, 100);
  EXPECT_GT(num_read, 100);
}

}  // namespace
}  // namespace accrue::test
