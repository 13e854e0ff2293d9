// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "accrue/formats/image_decode.h"

namespace accrue {
namespace {

// TIFF 6.0: two letters for the byte order, 42, the place of the first directory; a directory is a count and
// entries of 12 bytes: tag, type, number of values, value.
struct Tiff {
  std::span<const std::byte> bytes;
  bool little = false;

  std::optional<uint32_t> number(size_t place, size_t length) const noexcept {
    if (place > bytes.size() || length > bytes.size() - place) return std::nullopt;
    uint32_t value = 0;
    for (size_t index = 0; index < length; ++index)
      value = value << 8 | std::to_integer<uint32_t>(bytes[place + (little ? length - 1 - index : index)]);
    return value;
  }
};

}  // namespace

int exif_orientation(std::span<const std::byte> tiff) noexcept {
  constexpr uint32_t kOrientation = 0x0112, kShort = 3, kLong = 4;
  const uint32_t order = Tiff{tiff}.number(0, 2).value_or(0);
  if (order != 0x4949 && order != 0x4D4D) return 1;
  const Tiff data{tiff, order == 0x4949};
  if (data.number(2, 2) != 42u) return 1;
  const std::optional<uint32_t> directory = data.number(4, 4);
  const uint32_t num_entries = directory ? data.number(*directory, 2).value_or(0) : 0;
  for (size_t entry = 0; entry < num_entries; ++entry) {
    const size_t place = size_t{*directory} + 2 + 12 * entry;
    const std::optional<uint32_t> tag = data.number(place, 2);
    if (!tag) return 1;
    if (*tag != kOrientation) continue;
    const uint32_t type = data.number(place + 2, 2).value_or(0);
    const bool is_short = type == kShort;
    if (!is_short && type != kLong) return 1;
    const uint32_t value = data.number(place + 8, is_short ? 2 : 4).value_or(1);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace accrue
