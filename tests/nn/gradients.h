// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <vector>

#include "accrue/nn/plain.h"
#include "tests/support/tensors.h"
#include "tests/support/threads.h"

namespace accrue::test {

using Call = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// Fixed numbers in [-1, 1] without a pattern that a symmetric mistake could hide in.
inline at::Tensor numbers(at::IntArrayRef shape, double phase = 0, at::ScalarType type = at::kDouble) {
  const int64_t count = c10::multiply_integers(shape);
  return at::arange(count, at::kDouble).mul(1.7).add(phase).sin().reshape(shape).to(type);
}

/// Copies that require gradients.
inline std::vector<at::Tensor> leaves(const std::vector<at::Tensor>& values, at::ScalarType type) {
  std::vector<at::Tensor> list;
  for (const at::Tensor& value : values) list.push_back(parameter(value.to(type)));
  return list;
}

/// The output times fixed numbers, added up: every element of the output has a part of its own in it.
inline at::Tensor weighed(const at::Tensor& output) {
  return output.mul(numbers(output.sizes(), 0.3, output.scalar_type())).sum();
}

inline std::vector<at::Tensor> gradients_of(const Call& call, const std::vector<at::Tensor>& inputs) {
  const std::vector<at::Tensor> at = leaves(inputs, inputs[0].scalar_type());
  return torch::autograd::grad({weighed(call(at))}, at);
}

/// Autograd's gradients against central differences in float64. The error of a difference is of order
/// d^2 times a third derivative (of order 1 here) plus 1e-16 / d: at a distance d of 1e-5 about 1e-10
/// plus 1e-11, times the number of terms.
inline void expect_gradients(const Call& call, const std::vector<at::Tensor>& inputs) {
  constexpr double kDistance = 1e-5;
  const Threads one(1);  // thousands of tiny operations, in which a second thread would only wait
  const std::vector<at::Tensor> got = gradients_of(call, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    at::Tensor expected = at::zeros_like(inputs[i]);
    for (int64_t place = 0; place < inputs[i].numel(); ++place) {
      double sides[2];
      for (const int side : {0, 1}) {
        std::vector<at::Tensor> moved = inputs;
        moved[i] = inputs[i].clone();
        moved[i].view({-1})[place] += side == 0 ? -kDistance : kDistance;
        sides[side] = weighed(call(moved)).item<double>();
      }
      expected.view({-1})[place] = (sides[1] - sides[0]) / (2 * kDistance);
    }
    EXPECT_TRUE(close(got[i], expected, 1e-8)) << "input " << i;
  }
}

/// The call against a formula in float64: values and gradients, for inputs in float64, fp32 and bf16. A bf16
/// input is rounded first and then computed on in fp32, so its output obeys the bound of fp32.
inline void expect_equals(const Call& call, const Call& formula, const std::vector<at::Tensor>& inputs) {
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    // Sums of at most some hundred products of numbers below 1, a rounding each.
    const double tolerance = type == at::kDouble ? 1e-13 : 1e-5;
    const std::vector<at::Tensor> given = leaves(inputs, type);
    const std::vector<at::Tensor> exact = leaves(given, at::kDouble);
    const at::Tensor got = call(given);
    const at::Tensor expected = formula(exact);
    EXPECT_EQ(got.scalar_type(), type == at::kDouble ? at::kDouble : at::kFloat);
    EXPECT_TRUE(close(got, expected, tolerance)) << toString(type);
    const auto got_gradients = torch::autograd::grad({weighed(got)}, given);
    const auto expected_gradients = torch::autograd::grad({weighed(expected)}, exact);
    for (size_t i = 0; i < given.size(); ++i) {
      EXPECT_EQ(got_gradients[i].scalar_type(), type);
      // A gradient for a bf16 tensor is itself rounded to bf16, 8 bits.
      const double scale = expected_gradients[i].abs().max().item<double>() + 1e-3;
      const double rounding = type == at::kBFloat16 ? scale * 0x1p-8 : 0;
      EXPECT_TRUE(close(got_gradients[i], expected_gradients[i], tolerance * (1 + scale) + rounding))
          << toString(type) << " input " << i;
    }
  }
}

/// The call against itself with ACCRUE_NN=plain: the reference is the plain one in float64.
inline void expect_plain(const Call& call, const std::vector<at::Tensor>& inputs) {
  expect_equals(
      call,
      [&](const std::vector<at::Tensor>& in) {
        const nn::PlainScope plain;
        return call(in);
      },
      inputs);
}

/// A backward that is kept gives the same bits when it runs again.
inline void expect_kept_backward(const at::Tensor& sum, const std::vector<at::Tensor>& inputs) {
  const auto once = torch::autograd::grad({sum}, inputs, {}, /*retain_graph=*/true);
  const auto twice = torch::autograd::grad({sum}, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(at::equal(once[i], twice[i])) << i;
}

}  // namespace accrue::test
