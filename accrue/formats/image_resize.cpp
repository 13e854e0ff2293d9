// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "accrue/base/error.h"
#include "accrue/base/messages/formats.h"
#include "accrue/formats/image.h"

namespace accrue {
namespace {

constexpr int64_t kMostSide = int64_t{1} << 24;  // 255 times the weights of both axes stays below 2^63

// One axis: new pixel i is the sum of `weights[ends[i - 1], ends[i])` times the old pixels from `begins[i]`
// on, divided by `divisor`. Whole numbers, so nothing is rounded before the one division at the end.
struct Axis {
  int64_t divisor = 1;
  std::vector<int64_t> begins = {};
  std::vector<size_t> ends = {};
  std::vector<int64_t> weights = {};

  size_t start(size_t place) const { return place == 0 ? 0 : ends[place - 1]; }
};

// In units of 1 / new_size of an old pixel, new pixel i covers [i * old_size, (i + 1) * old_size).
void add_mean(Axis& axis, int64_t place, int64_t old_size, int64_t new_size) {
  const int64_t from = place * old_size, to = from + old_size;
  axis.begins.push_back(from / new_size);
  for (int64_t pixel = from / new_size; pixel * new_size < to; ++pixel)
    axis.weights.push_back(std::min(to, (pixel + 1) * new_size) - std::max(from, pixel * new_size));
}

// The centre of new pixel i is (i + 1/2) * old_size / new_size - 1/2 from the centre of the first old one.
void add_line(Axis& axis, int64_t place, int64_t old_size, int64_t new_size) {
  const int64_t centre =
      std::clamp<int64_t>((2 * place + 1) * old_size - new_size, 0, (old_size - 1) * axis.divisor);
  const int64_t pixel = centre / axis.divisor, share = centre % axis.divisor;
  axis.begins.push_back(pixel);
  axis.weights.push_back(axis.divisor - share);
  if (share > 0) axis.weights.push_back(share);
}

Axis make_axis(int64_t old_size, int64_t new_size) {
  Axis axis{.divisor = new_size > old_size ? 2 * new_size : old_size};
  for (int64_t place = 0; place < new_size; ++place) {
    if (new_size > old_size)
      add_line(axis, place, old_size, new_size);
    else
      add_mean(axis, place, old_size, new_size);
    axis.ends.push_back(axis.weights.size());
  }
  return axis;
}

}  // namespace

Image resized(const Image& image, int64_t height, int64_t width) {
  for (const int64_t side : {image.height, image.width, height, width})
    if (side < 1 || side > kMostSide)
      fail(message::image_resize,
           {{"got", std::to_string(image.height) + " x " + std::to_string(image.width)},
            {"needed", std::to_string(height) + " x " + std::to_string(width)},
            {"most", kMostSide}});
  if (height == image.height && width == image.width) return image;
  const Axis rows = make_axis(image.height, height), columns = make_axis(image.width, width);
  const int64_t divisor = rows.divisor * columns.divisor;
  Image result{.channels = image.channels, .height = height, .width = width};
  result.pixels.reserve(static_cast<size_t>(image.channels * height * width));
  std::vector<int64_t> sums(static_cast<size_t>(image.width));
  for (int64_t channel = 0; channel < image.channels; ++channel) {
    for (size_t y = 0; y < rows.ends.size(); ++y) {
      std::fill(sums.begin(), sums.end(), 0);
      const uint8_t* pixel = image.pixels.data() + (channel * image.height + rows.begins[y]) * image.width;
      for (size_t tap = rows.start(y); tap < rows.ends[y]; ++tap)
        for (int64_t& sum : sums) sum += rows.weights[tap] * *pixel++;
      for (size_t x = 0; x < columns.ends.size(); ++x) {
        int64_t total = divisor / 2;
        const int64_t* sum = sums.data() + columns.begins[x];
        for (size_t tap = columns.start(x); tap < columns.ends[x]; ++tap)
          total += columns.weights[tap] * *sum++;
        result.pixels.push_back(static_cast<uint8_t>(total / divisor));
      }
    }
  }
  return result;
}

}  // namespace accrue
