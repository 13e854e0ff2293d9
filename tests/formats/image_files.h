// SPDX-License-Identifier: Apache-2.0
// PNG and JPEG files made on the spot by libpng and libjpeg.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <jpeglib.h>
#include <png.h>

#include "accrue/base/checksum.h"

namespace accrue::test {

using Bytes = std::vector<uint8_t>;

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// `number` in `length` bytes, the highest first.
inline std::string big_endian(uint64_t number, int length) {
  std::string bytes;
  while (length-- > 0) bytes += static_cast<char>(number >> (8 * length));
  return bytes;
}

/// EXIF data with one entry.
inline std::string exif(uint32_t orientation, bool little = false) {
  if (little)
    return std::string("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18) + static_cast<char>(orientation) +
           std::string(7, '\0');
  return std::string("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01", 18) + big_endian(orientation, 2) +
         std::string(6, '\0');
}

struct PngFile {
  uint32_t width = 0, height = 0;
  int depth = 8;
  int type = PNG_COLOR_TYPE_GRAY;
  Bytes rows = {};  ///< the rows as they are stored, one after the other
  std::vector<png_color> palette = {};
  Bytes palette_alpha = {};
  std::vector<png_color_16> clear = {};  ///< what is transparent: {index, red, green, blue, gray}
  bool interlaced = false;
  std::string orientation = {};

  std::string bytes() const {
    std::string file;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
    png_infop info = png_create_info_struct(png);
    const auto write = [](png_structp at, png_bytep data, size_t length) {
      static_cast<std::string*>(png_get_io_ptr(at))->append(reinterpret_cast<const char*>(data), length);
    };
    png_set_write_fn(png, &file, write, nullptr);
    png_set_IHDR(png, info, width, height, depth, type, interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (!palette.empty()) png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
    if (!palette_alpha.empty())
      png_set_tRNS(png, info, palette_alpha.data(), static_cast<int>(palette_alpha.size()), nullptr);
    if (!clear.empty()) png_set_tRNS(png, info, nullptr, 1, clear.data());
    std::string data = orientation;
    if (!data.empty())
      png_set_eXIf_1(png, info, static_cast<png_uint_32>(data.size()),
                     reinterpret_cast<png_bytep>(data.data()));
    png_write_info(png, info);
    std::vector<png_bytep> pointers(height);
    Bytes copy = rows;
    for (size_t row = 0; row < height; ++row) pointers[row] = copy.data() + row * png_get_rowbytes(png, info);
    png_write_image(png, pointers.data());
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return file;
  }
};

/// The file with the checksum of every chunk put right, as far as the chunks' lengths make sense.
inline std::string with_checksums(std::string png) {
  for (size_t place = 8; place + 12 <= png.size();) {
    size_t length = 0;
    for (size_t index = 0; index < 4; ++index)
      length = length << 8 | static_cast<uint8_t>(png[place + index]);
    if (length > png.size() - place - 12) break;
    png.replace(place + 8 + length, 4, big_endian(crc32(as_bytes(png).subspan(place + 4, length + 4)), 4));
    place += length + 12;
  }
  return png;
}

/// The file with another size in its header.
inline std::string png_claiming(std::string png, uint64_t width, uint64_t height) {
  return with_checksums(png.replace(16, 8, big_endian(width, 4) + big_endian(height, 4)));
}

struct JpegFile {
  uint32_t width = 0, height = 0;
  J_COLOR_SPACE given = JCS_RGB;
  J_COLOR_SPACE stored = JCS_YCbCr;
  Bytes pixels = {};  ///< [height, width, channels]
  int quality = 100;
  bool progressive = false, arithmetic = false, adobe = true;
  bool separate = false;  ///< a scan for each of three channels
  std::string app1 = {};

  std::string bytes() const {
    jpeg_compress_struct info;
    jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    unsigned char* target = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&info, &target, &size);
    info.image_width = width;
    info.image_height = height;
    info.in_color_space = given;
    info.input_components = given == JCS_GRAYSCALE ? 1 : given == JCS_CMYK ? 4 : 3;
    jpeg_set_defaults(&info);
    jpeg_set_colorspace(&info, stored);
    jpeg_set_quality(&info, quality, TRUE);
    for (int index = 0; index < info.num_components; ++index)
      info.comp_info[index].h_samp_factor = info.comp_info[index].v_samp_factor = 1;
    info.arith_code = arithmetic ? TRUE : FALSE;
    if (!adobe) info.write_Adobe_marker = FALSE;
    if (progressive) jpeg_simple_progression(&info);
    const jpeg_scan_info scans[3] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    if (separate) {
      info.scan_info = scans;
      info.num_scans = 3;
    }
    jpeg_start_compress(&info, TRUE);
    if (!app1.empty())
      jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(app1.data()),
                        static_cast<unsigned>(app1.size()));
    Bytes copy = pixels;
    while (info.next_scanline < height) {
      JSAMPROW row =
          copy.data() + size_t{info.next_scanline} * width * static_cast<size_t>(info.input_components);
      jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    std::string file(reinterpret_cast<const char*>(target), size);
    jpeg_destroy_compress(&info);
    std::free(target);
    return file;
  }
};

/// Where the marker FF `code` stands.
inline size_t marker_place(const std::string& jpeg, int code) {
  return jpeg.find(std::string("\xFF") + static_cast<char>(code));
}

/// The file with another size in its frame header (baseline).
inline std::string jpeg_claiming(std::string jpeg, uint64_t width, uint64_t height) {
  return jpeg.replace(marker_place(jpeg, 0xC0) + 5, 4, big_endian(height, 2) + big_endian(width, 2));
}

/// Colours that change slowly over [height, width, channels].
inline Bytes gradient(size_t height, size_t width, size_t channels) {
  Bytes pixels;
  for (size_t y = 0; y < height; ++y)
    for (size_t x = 0; x < width; ++x)
      for (size_t channel = 0; channel < channels; ++channel)
        pixels.push_back(static_cast<uint8_t>(40 + 5 * y + 3 * x + 20 * channel));
  return pixels;
}

}  // namespace accrue::test
