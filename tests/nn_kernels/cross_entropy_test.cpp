// SPDX-License-Identifier: Apache-2.0
#include "tests/nn_kernels/compilations.h"

namespace accrue::nn {
namespace {

struct Options {
  bool weighted = false;
  double smoothing = 0;
};
constexpr Options kOptions[] = {{false, 0}, {true, 0}, {false, 0.1}, {true, 0.2}};

/// Logits of `columns` columns within rows of `stride` numbers.
template <class Real>
struct Memory {
  Memory(int64_t of_classes, int64_t of_columns, Options of_options, double deviation = 2)
      : classes(of_classes),
        columns(of_columns),
        stride(of_columns + 3),
        options(of_options),
        logits(normal_values<Real>(classes * stride, 1, deviation)),
        scales(columns + 3, 9) {
    for (int64_t j = 0; j < columns; ++j) targets.push_back((7 * j + 3) % classes);
    for (int64_t c = 0; c < classes; ++c)
      weights.push_back(static_cast<Real>(c % 5 == 0 ? 0 : 0.25 * (c % 5)));
  }
  double run(const LayerKernels<Real>& kernels, bool with_gradient = true) {
    return kernels.cross_entropy({.logits = logits.data(),
                                  .classes = classes,
                                  .stride = stride,
                                  .columns = columns,
                                  .targets = targets.data(),
                                  .class_weights = options.weighted ? weights.data() : nullptr,
                                  .label_smoothing = options.smoothing,
                                  .scales = scales.data(),
                                  .with_gradient = with_gradient});
  }
  /// [classes, columns]: scale times what stands in `logits`.
  Values<double> gradients() const {
    Values<double> result;
    for (int64_t i = 0; i < classes * columns; ++i) {
      const int64_t j = i % columns;
      result.push_back(static_cast<double>(logits[i / columns * stride + j]) *
                       static_cast<double>(scales[j]));
    }
    return result;
  }

  int64_t classes, columns, stride;
  Options options;
  Values<Real> logits, weights, scales;
  std::vector<int64_t> targets;
};

struct Reference {
  template <class Real>
  explicit Reference(const Memory<Real>& m) : gradients(m.classes * m.columns) {
    const auto weight = [&](int64_t c) { return m.options.weighted ? static_cast<double>(m.weights[c]) : 1; };
    const double share = m.options.smoothing / static_cast<double>(m.classes);
    for (int64_t j = 0; j < m.columns; ++j) {
      const auto logit = [&](int64_t c) { return static_cast<double>(m.logits[c * m.stride + j]); };
      double largest = -INFINITY;
      long double sum = 0, of_sum = 0;
      for (int64_t c = 0; c < m.classes; ++c) largest = std::max(largest, logit(c));
      for (int64_t c = 0; c < m.classes; ++c) sum += std::exp(logit(c) - static_cast<long double>(largest));
      for (int64_t c = 0; c < m.classes; ++c) {
        const double counts =
            (c == m.targets[j] ? (1 - m.options.smoothing) * weight(c) : 0) + share * weight(c);
        if (counts != 0) loss += counts * (largest + std::log(sum) - logit(c));
        gradients[c * m.columns + j] -= counts;
        of_sum += counts;
      }
      for (int64_t c = 0; c < m.classes; ++c) {
        gradients[c * m.columns + j] += static_cast<double>(of_sum * std::exp(logit(c) - largest) / sum);
      }
    }
  }
  Values<double> gradients;
  long double loss = 0;  // many small terms
};

template <class Real>
Values<Real> narrow(const Values<double>& values) {
  return Values<Real>(values.begin(), values.end());
}

TEST(LayerCrossEntropy, IsThatOfPlainLoops) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    for (int64_t classes : {1, 2, 10, 333}) {
      for (int64_t columns : {1, 3, 8, 9, 31, 32}) {
        for (const Options& options : kOptions) {
          SCOPED_TRACE(testing::Message() << classes << " classes, " << columns << " columns");
          Memory<Real> memory(classes, columns, options);
          const Reference reference(memory);
          const Memory<Real> before = memory;
          const double loss = memory.run(kernels);
          // A logit's distance to the largest, up to 10, is rounded.
          EXPECT_NEAR(loss, static_cast<double>(reference.loss),
                      32 * kRounding<Real> * static_cast<double>(columns));
          const auto gradients = narrow<Real>(memory.gradients());
          for (size_t i = 0; i < gradients.size(); ++i) {
            EXPECT_NEAR(gradients[i], reference.gradients[i], 24 * kRounding<Real>) << i;
          }
          for (int64_t i = 0; i < classes * memory.stride; ++i) {
            EXPECT_TRUE(i % memory.stride < columns || memory.logits[i] == before.logits[i]) << "behind";
          }
          for (int64_t j = columns; j < columns + 3; ++j) EXPECT_EQ(memory.scales[j], 9);

          Memory<Real> alone = before;
          EXPECT_EQ(alone.run(kernels, false), loss);
          EXPECT_EQ(alone.scales, before.scales);
        }
      }
    }
  });
}

TEST(LayerCrossEntropy, GradientsAreNumericalDifferences) {
  const auto& kernels = layer_kernels<double>();
  constexpr double kStep = 1e-6;
  for (const Options& options : kOptions) {
    const Memory<double> memory(6, 3, options);
    Memory<double> with_gradient = memory;
    with_gradient.run(kernels);
    const Values<double> gradients = with_gradient.gradients();
    for (int64_t i = 0; i < 6 * 3; ++i) {
      Memory<double> up = memory, down = memory;
      up.logits[i / 3 * memory.stride + i % 3] += kStep;
      down.logits[i / 3 * memory.stride + i % 3] -= kStep;
      // Roundings of the loss, some 1e-15, by the step.
      EXPECT_NEAR(gradients[i], (up.run(kernels, false) - down.run(kernels, false)) / (2 * kStep), 1e-8);
    }
  }
}

TEST(LayerCrossEntropy, AColumnGivesTheSameBitsWhereverItStands) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    for (const Options& options : kOptions) {
      constexpr int64_t kClasses = 70;
      Memory<Real> memory(kClasses, 31, options);
      for (int64_t i = 0; i < kClasses * memory.stride; ++i) {  // all columns alike
        memory.logits[i] = memory.logits[i - i % memory.stride];
      }
      std::fill(memory.targets.begin(), memory.targets.end(), 12);
      memory.run(kernels);
      for (int64_t j = 1; j < 31; ++j) {
        EXPECT_TRUE(same_bits(&memory.scales[0], &memory.scales[j], 1));
        for (int64_t c = 0; c < kClasses; ++c) {
          const Real* row = &memory.logits[c * memory.stride];
          EXPECT_TRUE(same_bits(row, row + j, 1)) << j;
        }
      }
    }
  });
}

TEST(LayerCrossEntropy, ManyClassesAreSummedWithoutLoss) {
  const auto& kernels = layer_kernels<float>();
  for (const Options& options : {Options{false, 0}, Options{false, 0.1}}) {
    Memory<float> memory(50000, 8, options);
    const Reference reference(memory);
    const double loss = memory.run(kernels);
    EXPECT_NEAR(loss / reference.loss, 1, 1e-6);
    // Of the 64 exponentials that are summed in fp32 each sum is rounded; the rest of the gradient that label
    // smoothing subtracts is 2e-6.
    const Values<double> gradients = memory.gradients();
    double worst = 0;
    for (size_t i = 0; i < gradients.size(); ++i) {
      const double size = std::abs(reference.gradients[i]) + 3e-6;
      worst = std::max(worst, std::abs(gradients[i] - reference.gradients[i]) / size);
    }
    EXPECT_LE(worst, 1e-6);
  }
}

TEST(LayerCrossEntropy, ExtremeLogitsAndWhatIsNotFinite) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    constexpr Real kInf = std::numeric_limits<Real>::infinity();
    Memory<Real> far(20, 9, {}, 3000);
    const Reference reference(far);
    EXPECT_NEAR(far.run(kernels) / reference.loss, 1, 4 * kRounding<Real>);
    for (size_t i = 0; i < 20 * 9; ++i) EXPECT_NEAR(far.gradients()[i], reference.gradients[i], 1e-3);

    for (Real odd : {std::numeric_limits<Real>::quiet_NaN(), kInf}) {
      for (bool with_gradient : {true, false}) {
        for (int64_t column : {0, 8, 10}) {
          Memory<Real> memory(20, 11, {});
          memory.logits[2 * memory.stride + column] = odd;
          EXPECT_FALSE(std::isfinite(memory.run(kernels, with_gradient)));
          if (!with_gradient) continue;
          const Values<double> gradients = memory.gradients();
          for (int64_t i = 0; i < 20 * 11; ++i) EXPECT_EQ(std::isfinite(gradients[i]), i % 11 != column);
        }
      }
    }
    Memory<Real> masked(20, 3, {});  // a class that cannot be: no weight, no gradient
    for (int64_t j = 0; j < 3; ++j) masked.logits[masked.stride + j] = -kInf;
    EXPECT_TRUE(std::isfinite(masked.run(kernels)));
    for (int64_t j = 0; j < 3; ++j) EXPECT_EQ(masked.gradients()[3 + j], 0);
    Memory<Real> impossible(20, 3, {});  // a target that cannot be
    impossible.logits[impossible.targets[1] * impossible.stride + 1] = -kInf;
    EXPECT_EQ(impossible.run(kernels), std::numeric_limits<double>::infinity());
  });
}

}  // namespace
}  // namespace accrue::nn
