// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <new>

#include "accrue/base/error.h"
#include "accrue/base/messages/formats.h"
#include "accrue/formats/image_decode.h"

namespace accrue {
namespace {

// libpng leaves on an error by longjmp, so what runs inside `attempt` owns nothing: this object does.
class PngReader {
 public:
  explicit PngReader(std::span<const std::byte> bytes) : rest_(bytes) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) {
      png_destroy_read_struct(&png, nullptr, nullptr);
      throw std::bad_alloc();
    }
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  /// Runs `call`; false if libpng gave up.
  template <typename Call>
  bool attempt(const Call& call) {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    call();
    return true;
  }

  [[noreturn]] void refuse(const std::string& path, size_t num_bytes) const {
    if (cut_) fail(message::image_cut, {{"path", path}, {"format", "PNG"}, {"got", num_bytes}});
    fail(message::image_damaged, {{"path", path}, {"format", "PNG"}, {"reason", reason_}});
  }

  static void read(png_structp png, png_bytep target, size_t length) {
    PngReader& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
    if (length > reader.rest_.size()) {
      reader.cut_ = true;
      png_error(png, "cut");
    }
    std::memcpy(target, reader.rest_.data(), length);
    reader.rest_ = reader.rest_.subspan(length);
  }

  png_structp png = nullptr;
  png_infop info = nullptr;

 private:
  static void on_error(png_structp png, png_const_charp text) {
    PngReader& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(reader.reason_, text, sizeof reader.reason_ - 1);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}

  std::span<const std::byte> rest_;
  bool cut_ = false;
  char reason_[200] = {};
};

void read_header(PngReader& reader) {
  png_structp png = reader.png;
  png_set_read_fn(png, &reader, PngReader::read);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // ours are looked at before pixels are
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  // Texts and profiles change no pixel and may unpack to many megabytes.
  static constexpr png_byte kExif[] = "eXIf";
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_AS_DEFAULT, kExif, 1);
  png_read_info(png, reader.info);
}

// 8 bits a sample; gray or colour, with alpha where the file has transparency of any kind.
void choose_form(PngReader& reader) {
  png_set_expand(reader.png);
  png_set_scale_16(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
}

}  // namespace

Raster decode_png(std::span<const std::byte> bytes, const std::string& path, const ImageLimits& limits) {
  PngReader reader(bytes);
  if (!reader.attempt([&] { read_header(reader); })) reader.refuse(path, bytes.size());
  Raster raster{.height = png_get_image_height(reader.png, reader.info),
                .width = png_get_image_width(reader.png, reader.info)};
  check_image_size(raster.height, raster.width, path, limits);
  // Deflate copies at most 258 bytes with two bits, so a byte of the file gives at most 1032.
  const int64_t pixel_bits =
      int64_t{png_get_bit_depth(reader.png, reader.info)} * png_get_channels(reader.png, reader.info);
  check_image_bytes(raster.height, raster.width, raster.height * raster.width / 1032 * pixel_bits,
                    bytes.size(), path);

  if (!reader.attempt([&] { choose_form(reader); })) reader.refuse(path, bytes.size());
  raster.channels = png_get_channels(reader.png, reader.info);
  const size_t row_bytes = static_cast<size_t>(raster.width * raster.channels);
  raster.values.resize(row_bytes * static_cast<size_t>(raster.height));
  std::vector<png_bytep> rows(static_cast<size_t>(raster.height));
  for (size_t row = 0; row < rows.size(); ++row) rows[row] = raster.values.data() + row * row_bytes;
  const auto read_pixels = [&] {
    png_read_image(reader.png, rows.data());
    png_read_end(reader.png, reader.info);
  };
  if (!reader.attempt(read_pixels)) reader.refuse(path, bytes.size());

  png_uint_32 exif_bytes = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(reader.png, reader.info, &exif_bytes, &exif) != 0)
    raster.orientation = exif_orientation(std::as_bytes(std::span(exif, exif_bytes)));
  return raster;
}

}  // namespace accrue
