// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "accrue/base/messages/formats.h"
#include "accrue/formats/foreign.h"
#include "accrue/formats/strict_json.h"

namespace accrue {
namespace {

static_assert(std::endian::native == std::endian::little, "the bytes of safetensors files are little-endian");

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMostHeaderBytes = 100'000'000;

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  int64_t bytes;
};

constexpr DtypeRow kDtypes[] = {
    {Dtype::boolean, "BOOL", 1},
    {Dtype::u8, "U8", 1},
    {Dtype::i8, "I8", 1},
    {Dtype::i16, "I16", 2},
    {Dtype::u16, "U16", 2},
    {Dtype::i32, "I32", 4},
    {Dtype::u32, "U32", 4},
    {Dtype::i64, "I64", 8},
    {Dtype::u64, "U64", 8},
    {Dtype::f16, "F16", 2},
    {Dtype::bf16, "BF16", 2},
    {Dtype::f32, "F32", 4},
    {Dtype::f64, "F64", 8},
    {Dtype::c64, "C64", 8},
    {Dtype::f8_e4m3, "F8_E4M3", 1},
    {Dtype::f8_e5m2, "F8_E5M2", 1},
    {Dtype::f8_e8m0, "F8_E8M0", 1},
    {Dtype::f8_e4m3fnuz, "F8_E4M3FNUZ", 1},
    {Dtype::f8_e5m2fnuz, "F8_E5M2FNUZ", 1},
};

const DtypeRow& row_of(Dtype dtype) noexcept {
  return kDtypes[static_cast<size_t>(dtype)];
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

using Json = nlohmann::ordered_json;

class Reader {
 public:
  Reader(std::span<const std::byte> file, const std::string& path, Purpose purpose)
      : file_(file), path_(path), purpose_(purpose) {}

  Safetensors read() {
    check_start();
    const Json header = parse_json(header_text(), path_ + ": header", purpose_);
    Safetensors content;
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        read_metadata(entry, content.metadata);
      } else {
        content.tensors.push_back(read_tensor(name, entry));
      }
    }
    check_coverage(content.tensors);
    return content;
  }

 private:
  [[noreturn]] void refuse(const Message& message, const std::string& name = "", const std::string& got = "",
                           const std::string& needed = "") const {
    fail(for_purpose(message, purpose_), {{"path", path_}, {"name", name}, {"got", got}, {"needed", needed}});
  }

  void check_start() const {
    const std::string_view text = as_text(file_);
    if (text.empty()) refuse(message::safetensors_empty);
    refuse_foreign(text, path_, purpose_);
    if (text.size() < kLengthBytes)
      refuse(message::safetensors_too_short, "", std::to_string(text.size()), std::to_string(kLengthBytes));
  }

  std::string_view header_text() {
    uint64_t length = 0;
    std::memcpy(&length, file_.data(), kLengthBytes);
    const uint64_t present = file_.size() - kLengthBytes;
    const std::string got = std::to_string(length);
    if (length > kMostHeaderBytes)
      refuse(message::safetensors_header_limit, "", got, std::to_string(kMostHeaderBytes));
    if (length > present) refuse(message::safetensors_header_cut, "", std::to_string(present), got);
    const std::string_view text = as_text(file_.subspan(kLengthBytes, length));
    if (!text.starts_with('{')) refuse(message::safetensors_header_start);
    buffer_ = file_.subspan(kLengthBytes + length);
    return text;
  }

  void read_metadata(const Json& entry, std::map<std::string, std::string>& metadata) const {
    if (!entry.is_object()) refuse(message::safetensors_metadata, "__metadata__");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) refuse(message::safetensors_metadata, key);
      metadata[key] = value.get<std::string>();
    }
  }

  // A number of the header, or nothing if it is no whole number in [0, 2^63).
  static std::optional<int64_t> whole(const Json& value) {
    if (!value.is_number_unsigned()) return std::nullopt;
    const auto number = value.get<uint64_t>();
    if (!std::in_range<int64_t>(number)) return std::nullopt;
    return static_cast<int64_t>(number);
  }

  TensorView read_tensor(const std::string& name, const Json& entry) const {
    if (!entry.is_object()) refuse(message::safetensors_entry, name);
    for (const char* key : {"dtype", "shape", "data_offsets"})
      if (!entry.contains(key)) refuse(message::safetensors_key_missing, name, "", key);
    for (const auto& [key, value] : entry.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        refuse(message::safetensors_key_unknown, name, key);
    TensorView tensor;
    tensor.name = name;
    tensor.dtype = read_dtype(name, entry["dtype"]);
    tensor.shape = read_shape(name, entry["shape"]);
    tensor.data = read_data(name, entry["data_offsets"]);
    const std::optional<int64_t> needed = bytes_of(tensor);
    if (!needed) refuse(message::safetensors_shape_overflow, name, entry["shape"].dump());
    if (static_cast<uint64_t>(*needed) != tensor.data.size())
      refuse(message::safetensors_size, name, std::to_string(tensor.data.size()),
             std::to_string(*needed) + " for " + entry["dtype"].get<std::string>() + " " +
                 entry["shape"].dump());
    return tensor;
  }

  Dtype read_dtype(const std::string& name, const Json& value) const {
    if (!value.is_string()) refuse(message::safetensors_dtype, name, value.dump());
    const std::optional<Dtype> dtype = dtype_from_name(value.get<std::string>());
    if (!dtype) refuse(message::safetensors_dtype, name, value.get<std::string>());
    return *dtype;
  }

  std::vector<int64_t> read_shape(const std::string& name, const Json& value) const {
    if (!value.is_array()) refuse(message::safetensors_shape, name, shortened(value));
    std::vector<int64_t> shape;
    for (const Json& size : value) {
      const std::optional<int64_t> number = whole(size);
      if (!number) refuse(message::safetensors_shape, name, shortened(value));
      shape.push_back(*number);
    }
    return shape;
  }

  std::span<const std::byte> read_data(const std::string& name, const Json& value) const {
    if (!value.is_array() || value.size() != 2) refuse(message::safetensors_offsets, name, shortened(value));
    const std::optional<int64_t> begin = whole(value[0]);
    const std::optional<int64_t> end = whole(value[1]);
    if (!begin || !end || *begin > *end) refuse(message::safetensors_offsets, name, shortened(value));
    if (static_cast<uint64_t>(*end) > buffer_.size())
      refuse(message::safetensors_cut, name, std::to_string(buffer_.size()), std::to_string(*end));
    return buffer_.subspan(static_cast<size_t>(*begin), static_cast<size_t>(*end - *begin));
  }

  static std::string shortened(const Json& value) {
    const std::string text = value.dump();
    return text.size() <= 80 ? text : text.substr(0, 80) + "...";
  }

  static std::optional<int64_t> bytes_of(const TensorView& tensor) {
    int64_t product = dtype_bytes(tensor.dtype);
    for (const int64_t size : tensor.shape)
      if (__builtin_mul_overflow(product, size, &product)) return std::nullopt;
    return product;
  }

  // Sorted by place, the tensors cover the buffer without a gap and without an overlap.
  void check_coverage(const std::vector<TensorView>& tensors) const {
    std::vector<const TensorView*> sorted;
    for (const TensorView& tensor : tensors) sorted.push_back(&tensor);
    std::stable_sort(sorted.begin(), sorted.end(), [](const TensorView* left, const TensorView* right) {
      return std::pair(left->data.data(), left->data.size()) <
             std::pair(right->data.data(), right->data.size());
    });
    size_t end = 0;
    for (const TensorView* tensor : sorted) {
      const auto begin = static_cast<size_t>(tensor->data.data() - buffer_.data());
      if (begin != end)
        refuse(begin < end ? message::safetensors_overlap : message::safetensors_hole, tensor->name,
               std::to_string(begin), std::to_string(end));
      end += tensor->data.size();
    }
    if (end != buffer_.size())
      refuse(message::safetensors_rest, "", std::to_string(buffer_.size()), std::to_string(end));
  }

  std::span<const std::byte> file_;
  std::span<const std::byte> buffer_;
  const std::string& path_;
  Purpose purpose_;
};

}  // namespace

std::string_view dtype_name(Dtype dtype) noexcept {
  return row_of(dtype).name;
}

int64_t dtype_bytes(Dtype dtype) noexcept {
  return row_of(dtype).bytes;
}

std::optional<Dtype> dtype_from_name(std::string_view name) noexcept {
  for (const DtypeRow& row : kDtypes)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

Safetensors parse_safetensors(std::span<const std::byte> file, const std::string& path, Purpose purpose) {
  return Reader(file, path, purpose).read();
}

SafetensorsFile::SafetensorsFile(const std::string& path, Purpose purpose)
    : file_(path, purpose), content_(parse_safetensors(file_.bytes(), path, purpose)) {}

const TensorView* SafetensorsFile::find(std::string_view name) const noexcept {
  for (const TensorView& tensor : content_.tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

}  // namespace accrue
