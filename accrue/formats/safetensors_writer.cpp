// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "accrue/base/messages/formats.h"
#include "accrue/formats/atomic_file.h"
#include "accrue/formats/safetensors.h"
#include "accrue/formats/strict_json.h"

namespace accrue {
namespace {

void check(std::span<const TensorView> tensors) {
  std::set<std::string_view> names;
  for (const TensorView& tensor : tensors) {
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second)
      fail(message::safetensors_write_name, {{"name", tensor.name}});
    int64_t needed = dtype_bytes(tensor.dtype);
    bool counted = true;
    for (const int64_t size : tensor.shape)
      counted = counted && size >= 0 && !__builtin_mul_overflow(needed, size, &needed);
    if (!counted || static_cast<uint64_t>(needed) != tensor.data.size())
      fail(message::safetensors_write_size,
           {{"name", tensor.name}, {"got", tensor.data.size()}, {"needed", counted ? needed : -1}});
  }
}

std::string dumped(const nlohmann::ordered_json& header) {
  try {
    return header.dump();
  } catch (const nlohmann::json::exception&) {
    fail(message::safetensors_write_text);
  }
}

}  // namespace

SafetensorsLayout layout_safetensors(std::span<const TensorView> tensors,
                                     const std::map<std::string, std::string>& metadata) {
  check(tensors);
  SafetensorsLayout layout;
  layout.order.resize(tensors.size());
  std::iota(layout.order.begin(), layout.order.end(), size_t{0});
  std::sort(layout.order.begin(), layout.order.end(), [&](size_t left, size_t right) {
    const int64_t left_bytes = dtype_bytes(tensors[left].dtype);
    const int64_t right_bytes = dtype_bytes(tensors[right].dtype);
    return left_bytes != right_bytes ? left_bytes > right_bytes : tensors[left].name < tensors[right].name;
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::map<std::string, std::string> texts = metadata;
  texts["format"] = "pt";  // readers of other projects refuse a file without it
  header["__metadata__"] = texts;
  size_t end = 0;
  for (const size_t index : layout.order) {
    const TensorView& tensor = tensors[index];
    const size_t begin = end;
    end += tensor.data.size();
    header[tensor.name] = {
        {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = dumped(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  layout.header.resize(sizeof(length));
  std::memcpy(layout.header.data(), &length, sizeof(length));
  layout.header += text;
  return layout;
}

void write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const SafetensorsLayout layout = layout_safetensors(tensors, metadata);
  AtomicFile file(path);
  file.write(layout.header);
  for (const size_t index : layout.order) file.write(tensors[index].data);
  file.commit();
}

}  // namespace accrue
