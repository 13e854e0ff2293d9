// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/tensor_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "accrue/base/error.h"
#include "accrue/base/messages/data.h"
#include "accrue/base/messages/formats.h"
#include "accrue/memory/allocator.h"

namespace accrue {
namespace {

struct TypePair {
  Dtype file;
  at::ScalarType tensor;
};

constexpr TypePair kTypes[] = {
    {Dtype::boolean, at::kBool},
    {Dtype::u8, at::kByte},
    {Dtype::i8, at::kChar},
    {Dtype::i16, at::kShort},
    {Dtype::u16, at::ScalarType::UInt16},
    {Dtype::i32, at::kInt},
    {Dtype::u32, at::ScalarType::UInt32},
    {Dtype::i64, at::kLong},
    {Dtype::u64, at::ScalarType::UInt64},
    {Dtype::f16, at::kHalf},
    {Dtype::bf16, at::kBFloat16},
    {Dtype::f32, at::kFloat},
    {Dtype::f64, at::kDouble},
    {Dtype::c64, at::kComplexFloat},
    {Dtype::f8_e4m3, at::ScalarType::Float8_e4m3fn},
    {Dtype::f8_e5m2, at::ScalarType::Float8_e5m2},
    {Dtype::f8_e4m3fnuz, at::ScalarType::Float8_e4m3fnuz},
    {Dtype::f8_e5m2fnuz, at::ScalarType::Float8_e5m2fnuz},
};

at::ScalarType scalar_type(const TensorView& view, const std::string& path, Purpose purpose) {
  for (const TypePair& pair : kTypes)
    if (pair.file == view.dtype) return pair.tensor;
  fail(for_purpose(message::safetensors_dtype, purpose),
       {{"path", path}, {"name", view.name}, {"got", dtype_name(view.dtype)}});
}

/// In pieces, so that file and copy are never both whole in the process.
at::Tensor copied(const SafetensorsFile& file, const TensorView& view, at::ScalarType type) {
  at::Tensor tensor = at::empty(view.shape, type);
  auto* to = static_cast<std::byte*>(tensor.mutable_data_ptr());
  for (std::span<const std::byte> rest = view.data; !rest.empty();) {
    const std::span<const std::byte> piece = rest.first(std::min(kPieceBytes, rest.size()));
    std::memcpy(to, piece.data(), piece.size());
    file.forget(piece);
    to += piece.size();
    rest = rest.subspan(piece.size());
  }
  return tensor;
}

Dtype file_type(const std::string& name, at::ScalarType type) {
  for (const TypePair& pair : kTypes)
    if (pair.tensor == type) return pair.file;
  fail(message::tensor_file_type, {{"name", name}, {"type", at::toString(type)}});
}

}  // namespace

NamedTensors map_tensors(const std::string& path, Purpose purpose) {
  const auto file = std::make_shared<const SafetensorsFile>(path, purpose);
  NamedTensors tensors;
  for (const TensorView& view : file->tensors()) {
    const at::ScalarType type = scalar_type(view, path, purpose);
    const auto place = reinterpret_cast<uintptr_t>(view.data.data());
    if (view.data.empty() || place % c10::elementSize(type) != 0) {
      tensors.add(view.name, copied(*file, view, type));
      continue;
    }
    // Nobody writes to it: the const is given back to whoever reads.
    void* const data = const_cast<std::byte*>(view.data.data());
    tensors.add(view.name, at::from_blob(
                               data, view.shape, [file](void*) {}, at::TensorOptions(type)));
  }
  return tensors;
}

NamedTensors load_tensors(const std::string& path, Purpose purpose) {
  const SafetensorsFile file(path, purpose);
  NamedTensors tensors;
  for (const TensorView& view : file.tensors()) {
    tensors.add(view.name, copied(file, view, scalar_type(view, path, purpose)));
    memory::keep_within_budget();  // what was read of the file may go
  }
  return tensors;
}

void save_tensors(const std::string& path, const NamedTensors& tensors,
                  const std::map<std::string, std::string>& metadata) {
  std::vector<at::Tensor> kept;
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    const Dtype dtype = file_type(name, tensor.scalar_type());
    const at::Tensor& plain = kept.emplace_back(tensor.detach().cpu().resolve_conj().contiguous());
    views.push_back({name,
                     dtype,
                     plain.sizes().vec(),
                     {static_cast<const std::byte*>(plain.const_data_ptr()), plain.nbytes()}});
  }
  write_safetensors(path, views, metadata);
}

}  // namespace accrue
