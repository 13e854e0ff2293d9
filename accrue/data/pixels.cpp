// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/pixels.h"

#include "accrue/base/error.h"
#include "accrue/base/messages/data.h"
#include "accrue/base/random.h"

namespace accrue {
namespace {

constexpr uint32_t kAugmentStream = 0x61756721;

double of_channel(const std::vector<double>& values, size_t channel, double fallback) {
  if (values.empty()) return fallback;
  return values.size() == 1 ? values[0] : values[channel];
}

void check_length(const char* key, const std::vector<double>& values, int64_t channels) {
  const auto got = static_cast<int64_t>(values.size());
  if (got > 1 && got != channels)
    fail(message::pixels_channel_values, {{"key", key}, {"got", got}, {"channels", channels}});
}

/// A number in [0, range) from 32 random bits; its bias is below range / 2^32.
int64_t below(uint32_t word, int64_t range) noexcept {
  return static_cast<int64_t>((static_cast<uint64_t>(word) * static_cast<uint64_t>(range)) >> 32);
}

}  // namespace

PixelTransform::PixelTransform(const DataOptions& options, const std::vector<int64_t>& shape, uint64_t seed)
    : shape_(shape),
      values_(static_cast<size_t>(shape[0])),
      flip_(options.flip),
      crop_(options.crop),
      seed_(seed) {
  check_length("data.mean", options.mean, shape[0]);
  check_length("data.std", options.deviation, shape[0]);
  if (crop_ > std::min(shape[1], shape[2]))
    fail(message::pixels_crop, {{"got", crop_}, {"height", shape[1]}, {"width", shape[2]}});
  for (size_t channel = 0; channel < values_.size(); ++channel) {
    const double mean = of_channel(options.mean, channel, 0);
    const double deviation = of_channel(options.deviation, channel, 1);
    for (size_t byte = 0; byte < 256; ++byte)
      values_[channel][byte] = static_cast<float>((static_cast<double>(byte) / 255 - mean) / deviation);
  }
}

void PixelTransform::apply(const uint8_t* bytes, float* out) const noexcept {
  const int64_t pixels = shape_[1] * shape_[2];
  for (const std::array<float, 256>& values : values_) {
    for (int64_t i = 0; i < pixels; ++i) out[i] = values[bytes[i]];
    bytes += pixels;
    out += pixels;
  }
}

void PixelTransform::apply_for_training(const uint8_t* bytes, int64_t id, int64_t epoch,
                                        float* out) const noexcept {
  if (!augments()) return apply(bytes, out);
  const auto number = static_cast<uint64_t>(id);
  const auto words = philox({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32),
                             static_cast<uint32_t>(epoch), kAugmentStream},
                            {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  const int64_t range = 2 * crop_ + 1;
  place(bytes, flip_ && (words[0] & 1U) != 0, below(words[1], range) - crop_, below(words[2], range) - crop_,
        out);
}

void PixelTransform::place(const uint8_t* bytes, bool mirrored, int64_t down, int64_t right,
                           float* out) const noexcept {
  const int64_t height = shape_[1];
  const int64_t width = shape_[2];
  for (const std::array<float, 256>& values : values_) {
    for (int64_t row = 0; row < height; ++row) {
      const int64_t from_row = row + down;
      const bool row_inside = from_row >= 0 && from_row < height;
      for (int64_t column = 0; column < width; ++column) {
        const int64_t shifted = column + right;
        const bool inside = row_inside && shifted >= 0 && shifted < width;
        const int64_t from_column = mirrored ? width - 1 - shifted : shifted;
        out[row * width + column] = values[inside ? bytes[from_row * width + from_column] : 0];
      }
    }
    bytes += height * width;
    out += height * width;
  }
}

}  // namespace accrue
