// SPDX-License-Identifier: Apache-2.0
#include "tests/nn_kernels/compilations.h"

namespace accrue::nn {
namespace {

/// Drops every seventh pair of tokens.
double factor_of(int64_t query, int64_t key) {
  return (5 * query + 3 * key) % 7 == 0 ? 0 : 1.25;
}
template <class Real>
void fill(const void*, int64_t query, int64_t keys, Real* factors) {
  for (int64_t key = 0; key < keys; ++key) factors[key] = static_cast<Real>(factor_of(query, key));
}

/// One head whose query, key and value stand beside each other and beside numbers that are not theirs, with
/// room for what the kernels write.
template <class Real>
struct Memory {
  Memory(int64_t of_length, int64_t of_width, bool biased, bool dropout, double deviation = 1)
      : length(of_length),
        width(of_width),
        stride(3 * of_width + 2),
        input(normal_values<Real>(length * stride, 1, deviation)),
        biases(normal_values<Real>(3 * width, 2)),
        output(length * (width + 1), 7),
        log_sums(3 * length, 7) {
    head = {.length = length, .width = width, .scale = 0.6};
    head.query_stride = head.key_stride = head.value_stride = stride;
    if (biased) {
      head.query_bias = biases.data();
      head.key_bias = biases.data() + width;
      head.value_bias = biases.data() + 2 * width;
    }
    head.output_stride = width + 1;
    head.log_sums_stride = 3;
    if (dropout) head.fill_factors = fill<Real>;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// With pointers to what the vectors hold now.
  const AttentionHead<Real>& whole() {
    head.query = input.data() + 1;
    head.key = head.query + width;
    head.value = head.key + width;
    head.output = output.data();
    head.log_sums = log_sums.data() + 1;
    return head;
  }
  double number(int64_t token, int64_t part, int64_t k) const {
    const double bias = head.query_bias == nullptr ? 0 : static_cast<double>(biases[part * width + k]);
    return static_cast<double>(input[token * stride + 1 + part * width + k]) + bias;
  }
  double factor(int64_t query, int64_t key) const {
    return head.fill_factors == nullptr ? 1 : factor_of(query, key);
  }
  void forward(const LayerKernels<Real>& kernels) {
    const int64_t size = kernels.attention_scratch(length, width);
    Values<Real> scratch(size + 17, 7);
    kernels.attend(whole(), scratch.data() + 1);
    for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(scratch[size + 1 + i], 7) << "behind the scratch";
    EXPECT_EQ(scratch[0], 7);
  }

  int64_t length, width, stride;
  Values<Real> input, biases, output, log_sums;
  AttentionHead<Real> head;
};

/// Attention and its gradients by plain loops; gradients are [token][query, key, value][width].
struct Reference {
  template <class Real>
  Reference(const Memory<Real>& m, const Values<Real>& of_output)
      : output(m.length * m.width), log_sums(m.length), gradients(m.length * 3 * m.width) {
    const int64_t width = m.width;
    const auto gradient = [&](int64_t token, int64_t part, int64_t k) -> double& {
      return gradients[(token * 3 + part) * width + k];
    };
    for (int64_t i = 0; i < m.length; ++i) {
      Values<double> logits(i + 1, 0), weights(i + 1), slopes(i + 1, 0);
      double largest = -INFINITY, sum = 0, product = 0;
      for (int64_t j = 0; j <= i; ++j) {
        for (int64_t k = 0; k < width; ++k) logits[j] += m.number(i, 0, k) * m.number(j, 1, k) * m.head.scale;
        largest = std::max(largest, logits[j]);
      }
      for (double logit : logits) sum += std::exp(logit - largest);
      log_sums[i] = largest + std::log(sum);
      for (int64_t j = 0; j <= i; ++j) {
        weights[j] = std::exp(logits[j] - largest) / sum;
        for (int64_t k = 0; k < width; ++k) {
          const double given = of_output[i * width + k];
          output[i * width + k] += m.factor(i, j) * weights[j] * m.number(j, 2, k);
          slopes[j] += m.factor(i, j) * given * m.number(j, 2, k);
          gradient(j, 2, k) += m.factor(i, j) * weights[j] * given;
        }
        product += weights[j] * slopes[j];
      }
      for (int64_t j = 0; j <= i; ++j) {
        const double slope = weights[j] * (slopes[j] - product) * m.head.scale;
        for (int64_t k = 0; k < width; ++k) {
          gradient(i, 0, k) += slope * m.number(j, 1, k);
          gradient(j, 1, k) += slope * m.number(i, 0, k);
        }
      }
    }
  }
  Values<double> output, log_sums, gradients;
};

/// The kernels' gradients in the reference's order; `before` is added to those of key and value where it is
/// not 0.
template <class Real>
Values<Real> gradients_of(const LayerKernels<Real>& kernels, Memory<Real>& m, Values<Real> of_output,
                          Real before = 0) {
  const int64_t size = kernels.attention_scratch(m.length, m.width);
  Values<Real> scratch(size + 17, 7), gradients(m.length * 3 * m.width, before);
  AttentionGradients<Real> to;
  to.output = of_output.data();
  to.output_stride = m.width;
  to.query = gradients.data();
  to.key = gradients.data() + m.width;
  to.value = gradients.data() + 2 * m.width;
  to.query_stride = to.key_stride = to.value_stride = 3 * m.width;
  to.add_to_key_and_value = before != 0;
  kernels.attend_backward(m.whole(), to, scratch.data() + 1);
  for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(scratch[size + 1 + i], 7) << "behind the scratch";
  EXPECT_EQ(scratch[0], 7);
  return gradients;
}

template <class Real>
void compare(const LayerKernels<Real>& kernels, Memory<Real>& m, double allowed) {
  const auto of_output = normal_values<Real>(m.length * m.width, 3);
  const Reference reference(m, of_output);
  m.forward(kernels);
  Values<Real> output, log_sums;
  for (int64_t i = 0; i < m.length; ++i) {
    const auto row = m.output.begin() + i * m.head.output_stride;
    output.insert(output.end(), row, row + m.width);
    EXPECT_EQ(row[m.width], 7) << "beside the output";
    log_sums.push_back(m.log_sums[3 * i + 1]);
    EXPECT_TRUE(m.log_sums[3 * i] == 7 && m.log_sums[3 * i + 2] == 7);
  }
  EXPECT_LE(roundings(output, reference.output), allowed);
  EXPECT_LE(roundings(log_sums, reference.log_sums), allowed);
  EXPECT_LE(roundings(gradients_of(kernels, m, of_output), reference.gradients), allowed);
  Values<double> added = reference.gradients;
  for (int64_t i = 0; i < m.length * 3 * m.width; ++i) added[i] += i / m.width % 3 == 0 ? 0 : 3;
  EXPECT_LE(roundings(gradients_of(kernels, m, of_output, Real{3}), added), allowed);
}

// A logit of size 10 that is rounded moves its weight by 10 roundings, and sums over a hundred tokens add
// some more.
constexpr double kAllowed = 100;

TEST(LayerAttention, IsThatOfPlainLoopsForwardAndBackward) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    for (int64_t length : {1, 2, 5, 6, 7, 16, 17, 47, 50, 113}) {
      for (int64_t width : {1, 3, 8, 16, 20, 33}) {
        SCOPED_TRACE(testing::Message() << "length " << length << ", width " << width);
        Memory<Real> plain(length, width, false, false), biased(length, width, true, false);
        compare(kernels, plain, kAllowed);
        compare(kernels, biased, kAllowed);
      }
    }
  });
}

TEST(LayerAttention, FactorsDropWeightsAlikeForwardAndBackward) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    for (int64_t length : {1, 9, 60}) {
      Memory<Real> memory(length, 12, true, true);
      compare(kernels, memory, kAllowed);
    }
  });
}

TEST(LayerAttention, ExtremeLogitsStayRight) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    Memory<Real> memory(40, 8, false, false,
                        40);  // logits of some thousands, where a rounding is 1e-4 in fp32
    compare(kernels, memory, 2e5);
    for (Real& value : memory.input) value = std::abs(value);
    memory.head.scale = -1e4;  // every logit far below zero
    memory.forward(kernels);
    for (int64_t i = 0; i < memory.length; ++i) {
      EXPECT_TRUE(std::isfinite(memory.output[i * memory.head.output_stride]));
    }
  });
}

TEST(LayerAttention, GradientsAreNumericalDifferences) {
  const auto& kernels = layer_kernels<double>();
  constexpr double kStep = 1e-6;
  for (bool dropout : {false, true}) {
    Memory<double> memory(8, 3, true, dropout);
    const auto of_output = normal_values<double>(8 * 3, 3);
    const auto loss = [&] {
      memory.forward(kernels);
      double sum = 0;
      for (int64_t i = 0; i < 8 * 3; ++i) sum += of_output[i] * memory.output[i / 3 * 4 + i % 3];
      return sum;
    };
    loss();
    const Values<double> gradients = gradients_of(kernels, memory, of_output);
    for (int64_t i = 0; i < 8 * 9; ++i) {
      double& at = memory.input[i / 9 * memory.stride + 1 + i % 9];
      const double before = at;
      at = before + kStep;
      const double up = loss();
      at = before - kStep;
      const double down = loss();
      at = before;
      EXPECT_NEAR(gradients[i], (up - down) / (2 * kStep), 1e-8);  // roundings of 1e-15 by the step
    }
  }
}

TEST(LayerAttention, AHeadGivesTheSameBitsWhereverItStands) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    constexpr int64_t kLength = 55, kWidth = 10;
    Memory<Real> one(kLength, kWidth, false, false), other(kLength, kWidth, false, false);
    other.stride = 3 * kWidth;
    other.head.query_stride = other.head.key_stride = other.head.value_stride = other.stride;
    for (int64_t i = 0; i < kLength; ++i) {
      std::copy_n(one.input.begin() + i * one.stride + 1, 3 * kWidth,
                  other.input.begin() + i * other.stride + 1);
    }
    one.forward(kernels);
    other.forward(kernels);
    EXPECT_EQ(one.output, other.output);
    EXPECT_EQ(one.log_sums, other.log_sums);
    const auto of_output = normal_values<Real>(kLength * kWidth, 3);
    EXPECT_EQ(gradients_of(kernels, one, of_output), gradients_of(kernels, other, of_output));
  });
}

TEST(LayerAttention, WhatIsNotFiniteComesThrough) {
  for_each_compilation([](const auto& kernels) {
    using Real = RealOf<decltype(kernels)>;
    constexpr int64_t kLength = 14, kWidth = 5, kToken = 7;
    for (Real odd : {std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::infinity(),
                     -std::numeric_limits<Real>::infinity()}) {
      for (int64_t part : {0, 1, 2}) {
        Memory<Real> memory(kLength, kWidth, false, false);
        memory.input[kToken * memory.stride + 1 + part * kWidth + 2] = odd;
        memory.forward(kernels);
        for (int64_t k = 0; k < kWidth; ++k) {  // an infinite logit may be of weight 0: then the value counts
          const Real value = memory.output[kToken * memory.head.output_stride + k];
          EXPECT_TRUE(std::isnan(value) || !std::isnan(odd) || part == 2);
          EXPECT_TRUE(!std::isfinite(value) || part < 2 || k != 2);
          EXPECT_TRUE(std::isfinite(memory.output[k])) << "an earlier token";
        }
      }
      Memory<Real> memory(kLength, kWidth, false, false);
      memory.forward(kernels);
      Values<Real> of_output(kLength * kWidth, 1);
      of_output[kToken * kWidth + 2] = odd;
      const Values<Real> gradients = gradients_of(kernels, memory, of_output);
      for (int64_t k = 0; k < 2 * kWidth; ++k) {
        EXPECT_FALSE(std::isfinite(gradients[kToken * 3 * kWidth + k])) << k;
      }
      EXPECT_FALSE(std::isfinite(gradients[kToken * 3 * kWidth + 2 * kWidth + 2]));
    }
  });
}

}  // namespace
}  // namespace accrue::nn
