// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "accrue/formats/image.h"

// What the decoders of image.cpp share.
namespace accrue {

/// Pixels as libpng and libjpeg write them: [height, width, channels], the last channel of 2 and 4 is alpha.
struct Raster {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int orientation = 1;  ///< EXIF, 1 to 8
  std::vector<uint8_t> values = {};
};

Raster decode_png(std::span<const std::byte> bytes, const std::string& path, const ImageLimits& limits);
Raster decode_jpeg(std::span<const std::byte> bytes, const std::string& path, const ImageLimits& limits);

/// DataError for a size beyond `limits`, and for one that needs more than the `num_bytes` that the file has:
/// `fewest_bits` is what the smallest file of this size takes.
void check_image_size(int64_t height, int64_t width, const std::string& path, const ImageLimits& limits);
void check_image_bytes(int64_t height, int64_t width, int64_t fewest_bits, size_t num_bytes,
                       const std::string& path);

/// The orientation that EXIF data (a TIFF header and its first directory) give; 1 where they give none, are
/// broken, or say something that is not 1 to 8.
int exif_orientation(std::span<const std::byte> tiff) noexcept;

}  // namespace accrue
