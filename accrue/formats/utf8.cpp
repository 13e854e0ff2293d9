// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/utf8.h"

#include <algorithm>

namespace accrue {
namespace {

bool begins_character(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

// Bytes of the character that begins at `text[0]`, or 0 if none does.
size_t length_of(std::string_view text) noexcept {
  const auto byte = [&](size_t place) { return static_cast<unsigned char>(text[place]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t place = 1; place < length; ++place)
    if ((byte(place) & 0xC0) != 0x80) return 0;
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) >= 0xA0;
  const bool beyond = first == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

}  // namespace

size_t find_broken_utf8(std::string_view text) noexcept {
  size_t place = 0;
  while (place < text.size()) {
    const size_t length = length_of(text.substr(place));
    if (length == 0) return place;
    place += length;
  }
  return std::string_view::npos;
}

size_t count_characters(std::string_view text) noexcept {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string shortened_text(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  while (limit > 0 && !begins_character(text[limit])) --limit;
  return std::string(text.substr(0, limit)) + "...";
}

}  // namespace accrue
