// SPDX-License-Identifier: Apache-2.0
#include "tests/nn_kernels/compilations.h"

namespace accrue::nn {
namespace {

/// Samples, inputs, outputs: tiles, blocks, panels and depths that are whole and that are not.
struct PanelCase {
  int64_t samples, in, out;
};
constexpr PanelCase kPanelCases[] = {{1, 1, 1},   {3, 5, 7},   {16, 48, 48},  {64, 64, 24}, {17, 49, 10},
                                     {33, 1, 13}, {40, 20, 1}, {530, 19, 50}, {9, 2100, 8}, {9, 8, 1100}};

int64_t panels_of(int64_t samples, int64_t lanes) {
  return (samples + lanes - 1) / lanes;
}

/// Every number of panels; sample s of feature f is number(s, f).
template <class Real, class Number>
Values<Real> in_panels(int64_t samples, int64_t width, int64_t lanes, Real fill, const Number& number) {
  Values<Real> panels(static_cast<size_t>(panels_of(samples, lanes) * width * lanes), fill);
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t f = 0; f < width; ++f)
      panels[static_cast<size_t>((s / lanes * width + f) * lanes + s % lanes)] = number(s, f);
  }
  return panels;
}

/// As rows of float64.
template <class Real>
Values<double> rows_of(const Values<Real>& panels, int64_t samples, int64_t width, int64_t lanes) {
  Values<double> rows;
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t f = 0; f < width; ++f)
      rows.push_back(panels[static_cast<size_t>((s / lanes * width + f) * lanes + s % lanes)]);
  }
  return rows;
}

/// run(begin, end) for blocks, the last one first.
template <class Run>
void for_blocks(int64_t features, const Run& run) {
  for (int64_t begin = (features - 1) / kPanelBlock * kPanelBlock; begin >= 0; begin -= kPanelBlock)
    run(begin, std::min(features, begin + kPanelBlock));
}

/// Rounding errors of sums go with the square root of their length; random ones stay far below.
double allowed(int64_t summands) {
  return 8 + std::sqrt(static_cast<double>(summands));
}

TEST(LayerPanels, ForwardIsThatOfPlainLoops) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    const PanelKernels<Real>& panels = kernels.panels;
    for (const auto& [samples, in, out] : kPanelCases) {
      SCOPED_TRACE(testing::Message() << samples << " " << in << " " << out);
      const auto x = normal_values<Real>(samples * in, 1), weight = normal_values<Real>(out * in, 2);
      const auto bias = normal_values<Real>(out, 3);
      const auto in_x = in_panels<Real>(samples, in, panels.lanes, 0, [&, in = in](int64_t s, int64_t f) {
        return x[static_cast<size_t>(s * in + f)];
      });
      Values<Real> value(panels_of(samples, panels.lanes) * out * panels.lanes), slope = value;
      Values<Real> scratch(panels.scratch(out));
      PanelForward<Real> layer{.panels = panels_of(samples, panels.lanes), .in = in, .out = out};
      layer.weight = weight.data();
      layer.x = in_x.data();
      layer.value = value.data();
      for_blocks(out, [&](int64_t begin, int64_t end) { panels.forward(layer, begin, end, scratch.data()); });
      Values<double> expected;
      for (int64_t s = 0; s < samples; ++s) {
        for (int64_t o = 0; o < out; ++o) {
          double sum = 0;
          for (int64_t i = 0; i < in; ++i) sum += double{x[s * in + i]} * weight[o * in + i];
          expected.push_back(sum);
        }
      }
      const Values<double> product = rows_of(value, samples, out, panels.lanes);
      EXPECT_LE(roundings(Values<Real>(product.begin(), product.end()), expected), allowed(in));

      // With bias and activation: the bits of the other kernels.
      for (const Activation activation : kActivations) {
        Values<Real> rows(product.begin(), product.end()), slopes(rows.size());
        kernels.activate(activation, samples, out, rows.data(), bias.data(), rows.data(), slopes.data());
        layer.bias = bias.data();
        layer.activation = &activation;
        layer.slope = slope.data();
        for_blocks(out,
                   [&](int64_t begin, int64_t end) { panels.forward(layer, begin, end, scratch.data()); });
        EXPECT_EQ(rows_of(value, samples, out, panels.lanes), wide(rows));
        EXPECT_EQ(rows_of(slope, samples, out, panels.lanes), wide(slopes));
      }
    }
  });
}

TEST(LayerPanels, GradientsAreThoseOfPlainLoops) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    const PanelKernels<Real>& panels = kernels.panels;
    for (const auto& [samples, in, out] : kPanelCases) {
      SCOPED_TRACE(testing::Message() << samples << " " << in << " " << out);
      const int64_t count = panels_of(samples, panels.lanes);
      const auto x = normal_values<Real>(samples * in, 1), weight = normal_values<Real>(out * in, 2);
      const auto gradient = normal_values<Real>(samples * out, 3);
      const auto at = [](const Values<Real>& values, int64_t width) {
        return [&values, width](int64_t s, int64_t f) { return values[static_cast<size_t>(s * width + f)]; };
      };
      // What stands behind the last sample is zero in gradients, any number elsewhere.
      const auto in_x = in_panels<Real>(samples, in, panels.lanes, 7, at(x, in));
      const auto in_gradient = in_panels<Real>(samples, out, panels.lanes, 0, at(gradient, out));
      Values<Real> scratch(panels.scratch(out)), of_x = in_x, sums(in, 1), weight_sum(out * in, 1);
      const PanelBackward<Real> backward{
          count, in, out, weight.data(), in_gradient.data(), of_x.data(), of_x.data(), sums.data()};
      for_blocks(in,
                 [&](int64_t begin, int64_t end) { panels.backward(backward, begin, end, scratch.data()); });
      const PanelWeightGradient<Real> of_weight{
          count, in, out, in_gradient.data(), in_x.data(), weight_sum.data()};
      for (int64_t column = 0; column < in; column += panels.lanes) {
        for_blocks(out, [&](int64_t begin, int64_t end) {
          panels.add_weight_gradient(of_weight, begin, end, column, scratch.data());
        });
      }
      Values<double> expected, expected_sums(in, 1), expected_weight(out * in, 1);
      for (int64_t s = 0; s < samples; ++s) {
        for (int64_t i = 0; i < in; ++i) {
          double sum = 0;
          for (int64_t o = 0; o < out; ++o) {
            sum += double{gradient[s * out + o]} * weight[o * in + i];
            expected_weight[o * in + i] += double{gradient[s * out + o]} * x[s * in + i];
          }
          expected.push_back(sum * x[s * in + i]);
          expected_sums[i] += expected.back();
        }
      }
      const Values<double> rows = rows_of(of_x, samples, in, panels.lanes);
      EXPECT_LE(roundings(Values<Real>(rows.begin(), rows.end()), expected), allowed(out));
      EXPECT_LE(roundings(sums, expected_sums), allowed(out + samples));
      EXPECT_LE(roundings(weight_sum, expected_weight), allowed(samples));
    }
  });
}

TEST(LayerPanels, RowsGoInAndOut) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    const PanelKernels<Real>& panels = kernels.panels;
    for (const int64_t samples : {1, 7, 8, 16, 37}) {
      for (const int64_t width : {1, 8, 13, 48, 99}) {
        const auto rows = normal_values<Real>(samples * width, 1);
        const auto size = static_cast<size_t>(panels_of(samples, panels.lanes) * width * panels.lanes);
        Values<Real> to(size, 5), slope(size, 2), sums(width, 1), back(rows.size());
        PanelsOfRows<Real> given{.samples = samples, .width = width, .rows = rows.data(), .to = to.data()};
        for_blocks(width, [&](int64_t begin, int64_t end) { panels.of_rows(given, begin, end); });
        const auto number = [&](int64_t s, int64_t f) { return rows[static_cast<size_t>(s * width + f)]; };
        EXPECT_EQ(to, in_panels<Real>(samples, width, panels.lanes, 0, number));
        for_blocks(width, [&](int64_t begin, int64_t end) {
          panels.to_rows(samples, width, to.data(), begin, end, back.data());
        });
        EXPECT_EQ(back, rows);

        given.slope = slope.data();
        given.sums = sums.data();
        for_blocks(width, [&](int64_t begin, int64_t end) { panels.of_rows(given, begin, end); });
        const auto twice = [&](int64_t s, int64_t f) { return 2 * number(s, f); };
        EXPECT_EQ(to, in_panels<Real>(samples, width, panels.lanes, 0, twice));
        Values<double> expected(width, 1);
        for (int64_t s = 0; s < samples; ++s) {
          for (int64_t f = 0; f < width; ++f) expected[f] += twice(s, f);
        }
        EXPECT_LE(roundings(sums, expected), allowed(samples));
      }
    }
  });
}

}  // namespace
}  // namespace accrue::nn
