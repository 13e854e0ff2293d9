// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a chain's micro-step.
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "accrue/base/error.h"
#include "accrue/base/messages/microstep.h"
#include "accrue/batch/pad.h"
#include "accrue/memory/allocator.h"
#include "accrue/nn/chain_step.h"
#include "accrue/nn/kernels.h"
#include "accrue/nn/products.h"
#include "accrue/nn/row_losses.h"
#include "accrue/nn/rows.h"
#include "accrue/nn/small_products.h"

namespace accrue::nn {
namespace {

using ChainClock = std::chrono::steady_clock;

constexpr int64_t kFewColumns = 8;

double seconds_between(ChainClock::time_point begin, ChainClock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// What the kernels do for rows that are not very narrow.
template <class Real>
void add_few_columns(int64_t rows, int64_t width, const Real* gradient, Real* sums) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < width; ++column) sums[column] += gradient[row * width + column];
  }
}

/// Adds the columns' sums of the gradient, after its product with the slope where there is one.
template <class Real>
void finish_gradient(int64_t rows, int64_t width, const Real* slope, Real* gradient, const at::Tensor& sums) {
  const LayerKernels<Real>& kernels = layer_kernels<Real>();
  const auto pass = [&](int64_t begin, int64_t end, Real* columns) {
    const int64_t at = begin * width;
    if (slope != nullptr) {
      kernels.multiply(end - begin, width, slope + at, gradient + at, columns);
    } else if (width < kFewColumns) {
      add_few_columns(end - begin, width, gradient + at, columns);
    } else {
      kernels.add_columns(end - begin, width, gradient + at, columns);
    }
  };
  if (num_parts(rows, width) == 1) return pass(0, rows, mutable_data<Real>(sums));
  for_rows_with_sums<Real>(
      rows, width, std::array{sums},
      [&](int64_t begin, int64_t end, const std::array<Real*, 1>& columns) { pass(begin, end, columns[0]); });
}

}  // namespace

void ChainStep::add(Window& window, const Batch& batch, int64_t start, int64_t length, Seconds& seconds) {
  const auto ids = std::span(batch.ids()).subspan(static_cast<size_t>(start), static_cast<size_t>(length));
  if (type_ == at::kDouble) {
    run<double>(window, batch, start, ids, seconds);
  } else {
    run<float>(window, batch, start, ids, seconds);
  }
}

template <class Real>
void ChainStep::run(Window& window, const Batch& batch, int64_t start, std::span<const int64_t> ids,
                    Seconds& seconds) {
  const c10::NoGradGuard no_grad;
  const auto rows = static_cast<int64_t>(ids.size());
  const auto begin = ChainClock::now();
  Inputs inputs;
  const ChainBuild* build = nullptr;
  double weight = 0;
  double sum = 0;
  {
    const memory::PhaseScope phase(memory::Phase::forward);
    find_x(inputs, batch, start, rows);
    find_targets(inputs, batch, start, rows);
    weight = weigh(inputs, rows);
    build = &build_for(rows);
    build->slots > 0 ? forward_panels<Real>(inputs, *build) : forward<Real>(inputs, *build);
    sum = loss_and_gradient<Real>(inputs, *build);
  }
  const auto between = ChainClock::now();
  {
    const memory::PhaseScope phase(memory::Phase::backward);
    window.begin_computed();
    if (weight > 0) build->slots > 0 ? backward_panels<Real>(*build) : backward<Real>(inputs, *build);
    window.end_computed(sum, weight, ids);
  }
  seconds.forward += seconds_between(begin, between);
  seconds.backward += seconds_between(between, ChainClock::now());
}

/// What the sum is to be divided by. Refuses targets that are no class.
double ChainStep::weigh(const Inputs& inputs, int64_t rows) const {
  const int64_t out = layers_.back().out;
  if (loss_.kind == KnownLoss::Kind::mse) return static_cast<double>(rows * out);
  const auto* const targets = static_cast<const int64_t*>(inputs.targets_at);
  int64_t counted = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (targets[row] == kIgnoredLabel) continue;
    if (targets[row] < 0 || targets[row] >= out) {
      fail(message::target_out_of_range, {{"row", row}, {"got", targets[row]}, {"classes", out}});
    }
    ++counted;
  }
  return static_cast<double>(counted);
}

template <class Real>
void ChainStep::forward(const Inputs& inputs, const ChainBuild& build) {
  Real* const memory = memory_.mutable_data_ptr<Real>();
  const auto* x = static_cast<const Real*>(inputs.x_at);
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    Real* const value = memory + build.values[l];
    const Real* const bias = const_data<Real>(layer.bias);
    const bool small = is_small(build.rows, layer);
    if (small) {
      multiply_rows<Real>({build.rows, layer.in, layer.out}, x, layer.weight.const_data_ptr<Real>(),
                          layer.activation ? nullptr : bias, value);
    } else {
      put_product(build.value_tensors[l], l == 0 ? inputs.x : build.value_tensors[l - 1], layer.weight.t());
    }
    if (layer.activation || (bias != nullptr && !small)) {
      Real* const slope = build.slopes[l] >= 0 ? memory + build.slopes[l] : nullptr;
      for_rows(build.rows, layer.out, [&](int64_t begin, int64_t end, int64_t) {
        const int64_t at = begin * layer.out;
        const LayerKernels<Real>& kernels = layer_kernels<Real>();
        if (!layer.activation)
          return kernels.add(end - begin, layer.out, value + at, nullptr, bias, value + at);
        kernels.activate(*layer.activation, end - begin, layer.out, value + at, bias, value + at,
                         slope != nullptr ? slope + at : nullptr);
      });
    }
    x = value;
  }
}

/// The sum, as its type rounds it; the gradient takes the output's place.
template <class Real>
double ChainStep::loss_and_gradient(const Inputs& inputs, const ChainBuild& build) {
  Real* const output = memory_.mutable_data_ptr<Real>() + build.output;
  const int64_t width = layers_.back().out;
  const bool classes = loss_.kind == KnownLoss::Kind::cross_entropy;
  const auto loss_of_rows = [&](int64_t begin, int64_t end) {
    Real* const at = output + begin * width;
    if (!classes) {
      const auto* const targets = static_cast<const Real*>(inputs.targets_at) + begin * width;
      return squared_error((end - begin) * width, targets, at);
    }
    const auto* const targets = static_cast<const int64_t*>(inputs.targets_at) + begin;
    return softmax_cross_entropy(end - begin, width, targets, kIgnoredLabel, loss_.label_smoothing, at);
  };
  double sum = 0;
  const int64_t parts = num_parts(build.rows, width);
  if (parts == 1) {
    sum = loss_of_rows(0, build.rows);
  } else {
    std::vector<double> sums(static_cast<size_t>(parts));
    for_rows(build.rows, width, [&](int64_t begin, int64_t end, int64_t part) {
      sums[static_cast<size_t>(part)] = loss_of_rows(begin, end);
    });
    for (const double part : sums) sum += part;
  }
  return static_cast<Real>(sum);
}

template <class Real>
void ChainStep::backward(const Inputs& inputs, const ChainBuild& build) {
  Real* const memory = memory_.mutable_data_ptr<Real>();
  for (size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    const ProductShape shape{build.rows, layer.in, layer.out};
    Real* const gradient = memory + build.values[l];
    const Real* const slope = layer.activation ? memory + build.slopes[l] : nullptr;
    if (slope != nullptr || layer.bias_sum.defined())
      finish_gradient<Real>(build.rows, layer.out, slope, gradient, layer.bias_sum);
    const bool small = is_small(build.rows, layer);
    if (layer.weight_sum.defined() && small) {
      const auto* const x = l == 0 ? static_cast<const Real*>(inputs.x_at) : memory + build.values[l - 1];
      add_weight_gradient<Real>(shape, gradient, x, layer.weight_sum.mutable_data_ptr<Real>());
    } else if (layer.weight_sum.defined()) {
      add_product(layer.weight_sum, build.value_tensors[l].t(),
                  l == 0 ? inputs.x : build.value_tensors[l - 1]);
    }
    if (!layer.passes_on) return;
    // The input is needed no more: its gradient takes its place.
    if (small) {
      gradient_of_rows<Real>(shape, gradient, layer.weight.const_data_ptr<Real>(),
                             memory + build.values[l - 1]);
    } else {
      put_product(build.value_tensors[l - 1], build.value_tensors[l], layer.weight);
    }
  }
}

}  // namespace accrue::nn
