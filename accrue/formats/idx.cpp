// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/idx.h"

#include <utility>

#include "accrue/base/messages/formats.h"
#include "accrue/formats/foreign.h"

namespace accrue {
namespace {

constexpr size_t kMagicBytes = 4;
constexpr size_t kSizeBytes = 4;
constexpr int64_t kMostDimensions = 8;
constexpr unsigned kUnsignedByte = 0x08;
constexpr size_t kMostHeaderBytes = kMagicBytes + kMostDimensions * kSizeBytes;

unsigned byte_at(std::span<const std::byte> bytes, size_t place) {
  return std::to_integer<unsigned>(bytes[place]);
}

const char* type_name(unsigned code) {
  switch (code) {
    case kUnsignedByte:
      return "unsigned byte";
    case 0x09:
      return "signed byte";
    case 0x0B:
      return "short";
    case 0x0C:
      return "int";
    case 0x0D:
      return "float";
    case 0x0E:
      return "double";
    default:
      return nullptr;
  }
}

bool has_magic(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagicBytes && byte_at(bytes, 0) == 0 && byte_at(bytes, 1) == 0 &&
         type_name(byte_at(bytes, 2)) != nullptr && byte_at(bytes, 3) > 0;
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  constexpr const char* digits = "0123456789ABCDEF";
  std::string text;
  for (size_t place = 0; place < bytes.size(); ++place) {
    if (place > 0) text += ' ';
    text += digits[byte_at(bytes, place) >> 4];
    text += digits[byte_at(bytes, place) & 15];
  }
  return text;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

class HeaderReader {
 public:
  HeaderReader(const FileBytes& file, const std::string& path)
      : bytes_(file.bytes()), text_(file.text()), path_(path) {}

  std::vector<int64_t> read() const {
    if (bytes_.empty()) fail(message::idx_empty, {{"path", path_}});
    refuse_foreign(text_, path_, Purpose::data);
    require_bytes(kMagicBytes);
    check_magic();
    const size_t dimensions = byte_at(bytes_, 3);
    require_bytes(kMagicBytes + dimensions * kSizeBytes);
    std::vector<int64_t> shape;
    for (size_t dimension = 0; dimension < dimensions; ++dimension) {
      shape.push_back(size_at(kMagicBytes + dimension * kSizeBytes));
      if (shape.back() == 0) fail(message::idx_zero, {{"path", path_}, {"dimension", dimension + 1}});
    }
    return shape;
  }

 private:
  void require_bytes(size_t needed) const {
    if (bytes_.size() >= needed) return;
    fail(message::idx_header_cut, {{"path", path_}, {"got", bytes_.size()}, {"needed", needed}});
  }

  void check_magic() const {
    const unsigned type = byte_at(bytes_, 2);
    const unsigned dimensions = byte_at(bytes_, 3);
    const char* const name = type_name(type);
    if (byte_at(bytes_, 0) != 0 || byte_at(bytes_, 1) != 0 || name == nullptr)
      fail(message::idx_magic, {{"path", path_}, {"got", hexadecimal(bytes_.first(kMagicBytes))}});
    if (type != kUnsignedByte)
      fail(message::idx_type,
           {{"path", path_}, {"got", "0x" + hexadecimal(bytes_.subspan(2, 1))}, {"name", name}});
    if (dimensions == 0 || dimensions > kMostDimensions)
      fail(message::idx_dimensions, {{"path", path_}, {"got", dimensions}, {"most", kMostDimensions}});
  }

  int64_t size_at(size_t place) const {
    uint32_t size = 0;
    for (size_t byte = 0; byte < kSizeBytes; ++byte) size = size << 8 | byte_at(bytes_, place + byte);
    return size;
  }

  std::span<const std::byte> bytes_;
  std::string_view text_;
  const std::string& path_;
};

/// Bytes of header and values, as the header claims them.
size_t claimed_bytes(const std::vector<int64_t>& shape, const std::string& path) {
  const auto header = static_cast<int64_t>(kMagicBytes + shape.size() * kSizeBytes);
  int64_t bytes = 1;
  bool overflow = false;
  for (const int64_t size : shape) overflow = overflow || __builtin_mul_overflow(bytes, size, &bytes);
  if (overflow || __builtin_add_overflow(bytes, header, &bytes))
    fail(message::idx_overflow, {{"path", path}, {"shape", shape_text(shape)}});
  return static_cast<size_t>(bytes);
}

}  // namespace

IdxFile::IdxFile(const std::string& path)
    : path_(path), file_(std::make_unique<FileBytes>(path, kMostHeaderBytes)) {
  shape_ = HeaderReader(*file_, path).read();
  const size_t needed = claimed_bytes(shape_, path);
  if (file_->packed()) file_ = std::make_unique<FileBytes>(path, needed + 1);
  const size_t got = file_->bytes().size();
  if (got != needed)
    fail(got < needed ? message::idx_cut : message::idx_rest,
         {{"path", path},
          {"got", (file_->packed() && got > needed ? "at least " : "") + std::to_string(got)},
          {"shape", shape_text(shape_)},
          {"needed", needed}});
  values_ = file_->bytes().subspan(kMagicBytes + shape_.size() * kSizeBytes);
}

bool IdxFile::matches(const std::string& path) {
  return has_magic(FileBytes(path, kMagicBytes).bytes());
}

}  // namespace accrue
