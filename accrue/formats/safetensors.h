// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/formats/mapped_file.h"
#include "accrue/formats/purpose.h"

namespace accrue {

/// The element types of safetensors files that fill whole bytes.
enum class Dtype {
  boolean,
  u8,
  i8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f16,
  bf16,
  f32,
  f64,
  c64,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
};

/// The name in the file: "F32", "BOOL".
std::string_view dtype_name(Dtype dtype) noexcept;
/// Bytes of one element.
int64_t dtype_bytes(Dtype dtype) noexcept;
std::optional<Dtype> dtype_from_name(std::string_view name) noexcept;

/// One tensor: row-major bytes that somebody else keeps alive. `data` need not be aligned.
struct TensorView {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

/// What a file holds: tensors in the order of its header, and the texts of `__metadata__`.
struct Safetensors {
  std::vector<TensorView> tensors;
  std::map<std::string, std::string> metadata;
};

/// Checks and reads the bytes of a whole file; the tensors point into `file`. Every claim of the header is
/// compared with the bytes there are before it is used. Throws an error of the purpose's kind that names file
/// and tensor.
Safetensors parse_safetensors(std::span<const std::byte> file, const std::string& path, Purpose purpose);

/// A file on disk, mapped; its tensors live as long as it does.
class SafetensorsFile {
 public:
  SafetensorsFile(const std::string& path, Purpose purpose);

  const std::vector<TensorView>& tensors() const noexcept { return content_.tensors; }
  /// The tensor called `name`, or null.
  const TensorView* find(std::string_view name) const noexcept;
  const std::map<std::string, std::string>& metadata() const noexcept { return content_.metadata; }
  /// As MappedFile::forget.
  void forget(std::span<const std::byte> part) const noexcept { file_.forget(part); }

 private:
  MappedFile file_;
  Safetensors content_;
};

/// The header with its eight length bytes, and the order in which the tensors' bytes follow it: by descending
/// element size, then by name. Throws ArgumentError for a name given twice or bytes that do not fit the
/// shape.
struct SafetensorsLayout {
  std::string header;
  std::vector<size_t> order;
};
SafetensorsLayout layout_safetensors(std::span<const TensorView> tensors,
                                     const std::map<std::string, std::string>& metadata = {});

/// Writes a file atomically; `format` = `pt` is added to the metadata. The same tensors give the same bytes.
void write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace accrue
