// SPDX-License-Identifier: Apache-2.0
#include "tests/nn_kernels/compilations.h"

namespace accrue::nn {
namespace {

/// Images of odd and even sides, with every padding; channels of one panel and of several, more than a
/// product adds up at once (272) and outputs of more than one block (112); chunks of tiles that divide them
/// and that do not.
struct WinogradCase {
  int64_t samples, height, width, in, out, padding, chunk;
};
constexpr WinogradCase kWinogradCases[] = {{2, 5, 7, 16, 16, 1, 7},   {1, 4, 4, 272, 16, 1, 4},
                                           {1, 6, 5, 16, 112, 0, 12}, {3, 3, 4, 32, 48, 2, 5},
                                           {1, 9, 8, 16, 272, 1, 19}, {2, 3, 3, 16, 32, 0, 1}};

/// With its channels filled up to whole panels.
WinogradCase in_panels(WinogradCase c, int64_t lanes) {
  c.in = (c.in + lanes - 1) / lanes * lanes;
  c.out = (c.out + lanes - 1) / lanes * lanes;
  return c;
}

/// The arrays of a convolution, and what plain loops make of them in float64.
template <class Real>
struct WinogradData {
  int64_t out_height, out_width;
  Values<Real> image, weight, bias, of_output;
  Values<double> output, of_image, weight_sum;

  explicit WinogradData(const WinogradCase& c)
      : out_height(c.height + 2 * c.padding - 2),
        out_width(c.width + 2 * c.padding - 2),
        image(normal_values<Real>(c.samples * c.height * c.width * c.in, 1)),
        weight(normal_values<Real>(c.out * c.in * 9, 2)),
        bias(normal_values<Real>(c.out, 3)),
        of_output(normal_values<Real>(c.samples * out_height * out_width * c.out, 4)),
        of_image(image.size()),
        weight_sum(weight.size(), 1) {
    for (int64_t pixel = 0; pixel < c.samples * out_height * out_width; ++pixel) {
      for (int64_t o = 0; o < c.out; ++o) output.push_back(add_pixel(c, pixel, o));
    }
  }

  double add_pixel(const WinogradCase& c, int64_t pixel, int64_t o) {
    const int64_t sample = pixel / (out_height * out_width), row = pixel / out_width % out_height;
    const double gradient = of_output[pixel * c.out + o];
    double sum = bias[o];
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t y = row + tap / 3 - c.padding, x = pixel % out_width + tap % 3 - c.padding;
      if (y < 0 || y >= c.height || x < 0 || x >= c.width) continue;
      const int64_t from = ((sample * c.height + y) * c.width + x) * c.in;
      for (int64_t k = 0; k < c.in; ++k) {
        const int64_t at = (o * c.in + k) * 9 + tap;
        sum += double{image[from + k]} * weight[at];
        of_image[from + k] += gradient * weight[at];
        weight_sum[at] += gradient * image[from + k];
      }
    }
    return sum;
  }
};

/// Rounding errors of sums go with the square root of their length. Points are sums of four pixels, and an
/// output one of nine points: four times what plain sums have is beyond them.
double allowed_of(int64_t summands) {
  return 4 * (8 + std::sqrt(static_cast<double>(summands)));
}

/// All calls for all chunks, with NaN wherever nothing has been written.
template <class Real>
void run_all(const WinogradKernels<Real>& kernels, const WinogradCase& c, WinogradConvolution<Real> of) {
  constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();
  const int64_t tiles = c.samples * ((of.out_height + 1) / 2) * ((of.out_width + 1) / 2);
  for (of.first = 0; of.first < tiles; of.first += c.chunk) {
    of.count = std::min(c.chunk, tiles - of.first);
    Values<Real> image_points(kernels.points(c.in, of.count), kNan);
    Values<Real> of_output_points(kernels.points(c.out, of.count), kNan);
    of.image_points = image_points.data();
    of.of_output_points = of_output_points.data();
    kernels.transform_image(of, 0, of.count / 2);
    kernels.transform_image(of, of.count / 2, of.count);
    kernels.transform_of_output(of, 0, of.count);
    const auto scratch = [&] { return Values<Real>(kernels.scratch(of), kNan); };
    for (int64_t panel = 0; panel < c.out / kernels.lanes; ++panel) {
      kernels.convolve(of, 0, of.count / 3, panel, scratch().data());
      kernels.convolve(of, of.count / 3, of.count, panel, scratch().data());
    }
    for (int64_t panel = 0; panel < c.in / kernels.lanes; ++panel) {
      kernels.add_image_gradient(of, panel, scratch().data());
      for (int64_t o = 0; o < c.out; o += kWinogradOutputs - 12) {
        kernels.add_weight_gradient(of, o, std::min(c.out, o + kWinogradOutputs - 12), panel,
                                    scratch().data());
      }
    }
  }
}

TEST(LayerWinograd, IsThatOfPlainLoops) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    for (const WinogradCase& any : kWinogradCases) {
      const WinogradCase c = in_panels(any, kernels.winograd.lanes);
      SCOPED_TRACE(testing::Message() << c.height << "x" << c.width << ", " << c.in << " to " << c.out);
      const WinogradData<Real> data(c);
      Values<Real> output(data.output.size(), std::numeric_limits<Real>::quiet_NaN());
      Values<Real> of_image(data.of_image.size()), weight_sum(data.weight.size(), 1);
      WinogradConvolution<Real> of{.height = c.height,
                                   .width = c.width,
                                   .out_height = data.out_height,
                                   .out_width = data.out_width,
                                   .padding = c.padding,
                                   .in = c.in,
                                   .out = c.out,
                                   .image = data.image.data(),
                                   .weight = data.weight.data(),
                                   .bias = data.bias.data(),
                                   .output = output.data(),
                                   .of_output = data.of_output.data(),
                                   .of_image = of_image.data(),
                                   .weight_sum = weight_sum.data()};
      run_all(kernels.winograd, c, of);
      EXPECT_LE(roundings(output, data.output), allowed_of(9 * c.in));
      EXPECT_LE(roundings(of_image, data.of_image), allowed_of(9 * c.out));
      EXPECT_LE(roundings(weight_sum, data.weight_sum),
                allowed_of(c.samples * data.out_height * data.out_width));
    }
  });
}

}  // namespace
}  // namespace accrue::nn
