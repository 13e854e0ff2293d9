// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace accrue {

/// Pixels of one byte, [channels, height, width]; channels 1 (gray) or 3 (red, green, blue).
struct Image {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels = {};
};

struct ImageLimits {
  int64_t max_side = 16384;
  int64_t max_pixels = int64_t{1} << 26;  ///< height * width, looked at before anything is decoded
};

/// Whether the bytes begin as a PNG or JPEG file does.
bool is_image(std::span<const std::byte> bytes) noexcept;

/// Decodes PNG or JPEG, told by content. 16-bit samples are rounded to 8, palettes laid out, transparency put
/// on black (v * alpha / 255, rounded to the nearest), EXIF rotation applied. DataError with `path` for
/// another kind, damage, a cut file, CMYK and YCCK JPEGs, and sizes beyond `limits`.
Image decode_image(std::span<const std::byte> bytes, const std::string& path, const ImageLimits& limits = {});

/// The same picture with 1 or 3 channels: gray is repeated; colour becomes (299 r + 587 g + 114 b) / 1000,
/// rounded to the nearest. ArgumentError for other channels.
Image with_channels(const Image& image, int64_t channels);

/// The same picture in another size: each new pixel is the mean of the area it covers (enlarged: bilinear
/// between pixel centres), each axis for itself. Computed in whole numbers and rounded once, half up; the
/// same size gives the same picture. ArgumentError for a side below 1 or above 2^24.
Image resized(const Image& image, int64_t height, int64_t width);

}  // namespace accrue
