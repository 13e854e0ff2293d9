// SPDX-License-Identifier: Apache-2.0
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs FILE

#include <jpeglib.h>

#include <jerror.h>

#include <algorithm>
#include <new>
#include <string_view>

#include "accrue/base/error.h"
#include "accrue/base/messages/formats.h"
#include "accrue/formats/image_decode.h"

namespace accrue {
namespace {

constexpr int kMostScans = 500;  // a progressive file decodes the whole picture once a scan

// libjpeg's error functions may not return; ours leave by longjmp, so what runs inside `attempt` owns
// nothing: this object does.
class JpegReader {
 public:
  JpegReader() {
    info.err = jpeg_std_error(&errors_);
    info.client_data = this;
    errors_.error_exit = on_error;
    errors_.emit_message = on_message;
    progress_.progress_monitor = on_progress;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  /// Runs `call`; false if libjpeg gave up.
  template <typename Call>
  bool attempt(const Call& call) {
    if (setjmp(back_) != 0) return false;
    call();
    return true;
  }

  void open(std::span<const std::byte> bytes) {
    jpeg_create_decompress(&info);
    info.progress = &progress_;
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()),
                 static_cast<unsigned long>(bytes.size()));
  }

  int code() const { return errors_.msg_code; }

  [[noreturn]] void refuse(const std::string& path, size_t num_bytes) const {
    if (code() == JERR_OUT_OF_MEMORY) throw std::bad_alloc();
    if (code() == JWRN_JPEG_EOF)
      fail(message::image_cut, {{"path", path}, {"format", "JPEG"}, {"got", num_bytes}});
    fail(message::image_damaged, {{"path", path}, {"format", "JPEG"}, {"reason", reason_}});
  }

  jpeg_decompress_struct info = {};

 private:
  [[noreturn]] void leave() {
    if (reason_[0] == '\0') errors_.format_message(reinterpret_cast<j_common_ptr>(&info), reason_);
    longjmp(back_, 1);
  }
  static void on_error(j_common_ptr common) { static_cast<JpegReader*>(common->client_data)->leave(); }
  // Where data are missing or make no sense, libjpeg only warns and goes on with gray.
  static void on_message(j_common_ptr common, int level) {
    if (level >= 0) return;
    JpegReader& reader = *static_cast<JpegReader*>(common->client_data);
    for (const int damage :
         {JWRN_JPEG_EOF, JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE, JWRN_MUST_RESYNC, JWRN_BOGUS_PROGRESSION})
      if (reader.code() == damage) reader.leave();
  }
  static void on_progress(j_common_ptr common) {
    JpegReader& reader = *static_cast<JpegReader*>(common->client_data);
    if (reader.info.input_scan_number <= kMostScans) return;
    std::snprintf(reader.reason_, sizeof reader.reason_, "more than %d scans", kMostScans);
    reader.leave();
  }

  jpeg_error_mgr errors_ = {};
  jpeg_progress_mgr progress_ = {};
  jmp_buf back_ = {};
  char reason_[JMSG_LENGTH_MAX] = {};
};

void read_header(JpegReader& reader, std::span<const std::byte> bytes) {
  reader.open(bytes);
  jpeg_save_markers(&reader.info, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(&reader.info, TRUE);
}

// Which kinds are read: gray and colour, Huffman-coded. CMYK is inverted or not by a marker that writers
// disagree about.
void check_kind(const jpeg_decompress_struct& info, const std::string& path) {
  const auto refuse = [&](const char* kind) {
    fail(message::image_jpeg_kind, {{"path", path}, {"got", kind}});
  };
  if (info.jpeg_color_space == JCS_CMYK) refuse("CMYK");
  if (info.jpeg_color_space == JCS_YCCK) refuse("YCCK");
  if (info.num_components != 1 && info.num_components != 3) refuse("unknown colours");
  if (info.arith_code) refuse("arithmetic-coded");
}

// A block of 8 x 8 values takes at least one bit, the Huffman code of its first value.
int64_t fewest_bits(const jpeg_decompress_struct& info) {
  int64_t num_blocks = 0;
  for (int index = 0; index < info.num_components; ++index) {
    const jpeg_component_info& component = info.comp_info[index];
    num_blocks += int64_t{component.width_in_blocks} * component.height_in_blocks;
  }
  return num_blocks;
}

int stored_orientation(const jpeg_decompress_struct& info) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  for (jpeg_saved_marker_ptr marker = info.marker_list; marker != nullptr; marker = marker->next) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (data.starts_with(kExif)) return exif_orientation(std::as_bytes(std::span(data.substr(kExif.size()))));
  }
  return 1;
}

}  // namespace

Raster decode_jpeg(std::span<const std::byte> bytes, const std::string& path, const ImageLimits& limits) {
  JpegReader reader;
  jpeg_decompress_struct& info = reader.info;
  if (!reader.attempt([&] { read_header(reader, bytes); })) {
    if (reader.code() == JERR_IMAGE_TOO_BIG)
      check_image_size(info.image_height, info.image_width, path,
                       {.max_side = std::min<int64_t>(limits.max_side, JPEG_MAX_DIMENSION),
                        .max_pixels = limits.max_pixels});
    reader.refuse(path, bytes.size());
  }
  Raster raster{.height = info.image_height, .width = info.image_width};
  check_image_size(raster.height, raster.width, path, limits);
  check_kind(info, path);
  check_image_bytes(raster.height, raster.width, fewest_bits(info), bytes.size(), path);
  raster.orientation = stored_orientation(info);

  raster.channels = info.num_components;
  info.out_color_space = raster.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  info.dct_method = JDCT_ISLOW;  // the one that gives the same values on every machine
  const size_t row_values = static_cast<size_t>(raster.width * raster.channels);
  raster.values.resize(row_values * static_cast<size_t>(raster.height));
  const auto read_pixels = [&] {
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = raster.values.data() + info.output_scanline * row_values;
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
  };
  if (!reader.attempt(read_pixels)) reader.refuse(path, bytes.size());
  return raster;
}

}  // namespace accrue
