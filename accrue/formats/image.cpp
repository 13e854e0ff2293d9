// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/image.h"

#include <algorithm>
#include <string_view>

#include "accrue/base/error.h"
#include "accrue/base/messages/formats.h"
#include "accrue/formats/foreign.h"
#include "accrue/formats/image_decode.h"

namespace accrue {
namespace {

constexpr std::string_view kPng("\x89PNG\r\n\x1A\n", 8);
constexpr std::string_view kJpeg("\xFF\xD8\xFF", 3);

std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What a file that is no PNG and no JPEG seems to be.
std::string_view kind_of(std::string_view text) noexcept {
  const std::string_view brand = text.size() < 12 ? "" : text.substr(8, 4);
  if (text.starts_with("GIF8")) return "a GIF picture";
  if (text.starts_with("RIFF") && brand == "WEBP") return "a WebP picture";
  if (text.starts_with("BM")) return "a BMP picture";
  if (text.starts_with("II*") || text.starts_with("MM\0*")) return "a TIFF picture";
  if (text.size() >= 12 && text.substr(4, 4) == "ftyp") return "an AVIF, HEIC or video file";
  return "a file of another kind";
}

[[noreturn]] void refuse_kind(std::string_view text, const std::string& path) {
  if (text.empty()) fail(message::image_empty, {{"path", path}});
  refuse_foreign(text, path, Purpose::data);
  fail(message::image_kind, {{"path", path}, {"got", kind_of(text)}});
}

// Where the pixel of row y and column x of the upright picture lies in the stored one: first + y * row + x *
// column, for the eight orientations of EXIF.
struct Walk {
  int64_t height, width;
  int64_t first, row, column;
};

Walk upright(int64_t height, int64_t width, int orientation) {
  const int64_t right = width - 1, bottom = (height - 1) * width;
  switch (orientation) {
    case 2:
      return {height, width, right, width, -1};
    case 3:
      return {height, width, bottom + right, -width, -1};
    case 4:
      return {height, width, bottom, -width, 1};
    case 5:
      return {width, height, 0, 1, width};
    case 6:
      return {width, height, bottom, 1, -width};
    case 7:
      return {width, height, bottom + right, -1, -width};
    case 8:
      return {width, height, right, -1, width};
    default:
      return {height, width, 0, width, 1};
  }
}

// Channels apart, upright, on black.
Image lay_out(const Raster& raster) {
  const Walk walk = upright(raster.height, raster.width, raster.orientation);
  const bool has_alpha = raster.channels % 2 == 0;
  Image image{.channels = raster.channels - (has_alpha ? 1 : 0), .height = walk.height, .width = walk.width};
  image.pixels.resize(static_cast<size_t>(image.channels * image.height * image.width));
  uint8_t* target = image.pixels.data();
  for (int64_t channel = 0; channel < image.channels; ++channel) {
    for (int64_t y = 0; y < walk.height; ++y) {
      for (int64_t x = 0; x < walk.width; ++x) {
        const uint8_t* pixel = &raster.values[static_cast<size_t>(
            (walk.first + y * walk.row + x * walk.column) * raster.channels)];
        const int value = pixel[channel];
        *target++ = static_cast<uint8_t>(has_alpha ? (value * pixel[image.channels] + 127) / 255 : value);
      }
    }
  }
  return image;
}

}  // namespace

void check_image_size(int64_t height, int64_t width, const std::string& path, const ImageLimits& limits) {
  if (height > limits.max_side || width > limits.max_side || height * width > limits.max_pixels)
    fail(message::image_size, {{"path", path},
                               {"width", width},
                               {"height", height},
                               {"side", limits.max_side},
                               {"number", limits.max_pixels}});
}

void check_image_bytes(int64_t height, int64_t width, int64_t fewest_bits, size_t num_bytes,
                       const std::string& path) {
  if (static_cast<uint64_t>(fewest_bits) / 8 > num_bytes)
    fail(message::image_bytes, {{"path", path},
                                {"width", width},
                                {"height", height},
                                {"needed", fewest_bits / 8},
                                {"got", num_bytes}});
}

bool is_image(std::span<const std::byte> bytes) noexcept {
  const std::string_view text = text_of(bytes);
  return text.starts_with(kPng) || text.starts_with(kJpeg);
}

Image decode_image(std::span<const std::byte> bytes, const std::string& path, const ImageLimits& limits) {
  const std::string_view text = text_of(bytes);
  if (text.starts_with(kPng.substr(0, 4))) return lay_out(decode_png(bytes, path, limits));
  if (text.starts_with(kJpeg.substr(0, 2))) return lay_out(decode_jpeg(bytes, path, limits));
  refuse_kind(text, path);
}

Image with_channels(const Image& image, int64_t channels) {
  if ((image.channels != 1 && image.channels != 3) || (channels != 1 && channels != 3))
    fail(message::image_channels, {{"got", image.channels}, {"needed", channels}});
  if (image.channels == channels) return image;
  const size_t area = static_cast<size_t>(image.height * image.width);
  Image result{.channels = channels, .height = image.height, .width = image.width};
  result.pixels.reserve(area * static_cast<size_t>(channels));
  if (channels == 3) {
    for (int copy = 0; copy < 3; ++copy)
      result.pixels.insert(result.pixels.end(), image.pixels.begin(), image.pixels.end());
    return result;
  }
  const uint8_t *red = image.pixels.data(), *green = red + area, *blue = green + area;
  for (size_t place = 0; place < area; ++place)
    result.pixels.push_back(
        static_cast<uint8_t>((299 * red[place] + 587 * green[place] + 114 * blue[place] + 500) / 1000));
  return result;
}

}  // namespace accrue
