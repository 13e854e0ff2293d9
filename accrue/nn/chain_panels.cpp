// SPDX-License-Identifier: Apache-2.0
// A chain's products by panels: each thread takes the next part of a layer, product and pointwise pass in
// one, until none is left. Which thread took it changes no bit.
#include <algorithm>
#include <optional>

#include "accrue/nn/chain_step.h"
#include "accrue/nn/kernels.h"
#include "accrue/nn/parts.h"
#include "accrue/nn/products.h"
#include "accrue/nn/rows.h"
#include "accrue/nn/small_products.h"

namespace accrue::nn {

int64_t ChainStep::samples_at_once(const Model& model, const Loss& loss) {
  const std::optional<Chain> chain = chain_of(model);
  if (!chain || known_of(loss) == nullptr || chain->layers.empty() || !chains_multiply_in_panels()) return 1;
  const at::Tensor& first = chain->layers.front().weight;
  if (!first.is_cpu() || (first.scalar_type() != at::kFloat && first.scalar_type() != at::kDouble)) return 1;
  const int64_t lanes = in_type_of(first, []<class Real>() { return layer_kernels<Real>().panels.lanes; });
  const bool small = std::all_of(chain->layers.begin(), chain->layers.end(), [&](const ChainLayer& layer) {
    return ProductShape{lanes, layer.weight.size(1), layer.weight.size(0)}.is_small();
  });
  return small ? 1 : lanes;
}

bool ChainStep::in_panels(int64_t rows) const {
  const int64_t lanes =
      type_ == at::kDouble ? layer_kernels<double>().panels.lanes : layer_kernels<float>().panels.lanes;
  return rows >= lanes && chains_multiply_in_panels() && !all_small(rows);
}

template <class Real>
void ChainStep::forward_panels(const Inputs& inputs, const ChainBuild& build) {
  const PanelKernels<Real>& kernels = layer_kernels<Real>().panels;
  Real* const memory = memory_.mutable_data_ptr<Real>();
  const int64_t rows = build.rows, panels = build.samples / kernels.lanes;
  const PanelsOfRows<Real> given{.samples = rows,
                                 .width = layers_.front().in,
                                 .rows = static_cast<const Real*>(inputs.x_at),
                                 .to = memory + build.x};
  const int64_t x_threads = threads_worth(rows * given.width * kPanelBlock / 8, build.slots);
  const PanelBlocks of_x(given.width, kPanelBlock, x_threads);
  for_parts(of_x.parts, x_threads,
            [&](int64_t part, int64_t) { kernels.of_rows(given, of_x.border(part), of_x.border(part + 1)); });
  const Real* x = memory + build.x;
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const PanelForward<Real> shape{.panels = panels,
                                   .in = layer.in,
                                   .out = layer.out,
                                   .weight = layer.weight.const_data_ptr<Real>(),
                                   .bias = const_data<Real>(layer.bias),
                                   .activation = layer.activation ? &*layer.activation : nullptr,
                                   .x = x,
                                   .value = memory + build.values[l],
                                   .slope = build.slopes[l] >= 0 ? memory + build.slopes[l] : nullptr};
    const int64_t threads = threads_worth(rows * layer.in * layer.out, build.slots);
    const PanelBlocks blocks(layer.out, kPanelBlock, threads);
    const bool last = l + 1 == layers_.size();
    for_parts(blocks.parts, threads, [&](int64_t part, int64_t slot) {
      const int64_t begin = blocks.border(part), end = blocks.border(part + 1);
      kernels.forward(shape, begin, end, memory + build.scratch + slot * build.scratch_each);
      if (last) kernels.to_rows(rows, layer.out, shape.value, begin, end, memory + build.output);
    });
    x = shape.value;
  }
}

template <class Real>
void ChainStep::backward_panels(const ChainBuild& build) {
  const PanelKernels<Real>& kernels = layer_kernels<Real>().panels;
  Real* const memory = memory_.mutable_data_ptr<Real>();
  const int64_t rows = build.rows, panels = build.samples / kernels.lanes;
  const Layer& last = layers_.back();
  const PanelsOfRows<Real> given{.samples = rows,
                                 .width = last.out,
                                 .rows = memory + build.output,
                                 .slope = last.activation ? memory + build.slopes.back() : nullptr,
                                 .to = memory + build.values.back(),
                                 .sums = mutable_data<Real>(last.bias_sum)};
  const int64_t given_threads = threads_worth(rows * last.out * kPanelBlock / 8, build.slots);
  const PanelBlocks of_given(last.out, kPanelBlock, given_threads);
  for_parts(of_given.parts, given_threads, [&](int64_t part, int64_t) {
    kernels.of_rows(given, of_given.border(part), of_given.border(part + 1));
  });
  const Real* gradient = given.to;
  for (size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    PanelBackward<Real> of_input{.panels = panels, .in = layer.in, .out = layer.out, .gradient = gradient};
    if (layer.passes_on) {
      of_input.weight = layer.weight.const_data_ptr<Real>();
      of_input.slope = layers_[l - 1].activation ? memory + build.slopes[l - 1] : nullptr;
      of_input.of_x = memory + build.gradients[l - 1];
      of_input.sums = mutable_data<Real>(layers_[l - 1].bias_sum);
    }
    backward_layer<Real>(layer, build, of_input, memory + (l == 0 ? build.x : build.values[l - 1]));
    if (!layer.passes_on) return;
    gradient = of_input.of_x;
  }
}

/// Both products of a layer's backward at once; neither reads what the other writes.
template <class Real>
void ChainStep::backward_layer(const Layer& layer, const ChainBuild& build,
                               const PanelBackward<Real>& of_input, const Real* x) {
  const PanelKernels<Real>& kernels = layer_kernels<Real>().panels;
  Real* const memory = memory_.mutable_data_ptr<Real>();
  const PanelWeightGradient<Real> of_weight{.panels = of_input.panels,
                                            .in = layer.in,
                                            .out = layer.out,
                                            .gradient = of_input.gradient,
                                            .x = x,
                                            .weight_sum = mutable_data<Real>(layer.weight_sum)};
  const int64_t products = (of_input.of_x != nullptr) + (of_weight.weight_sum != nullptr);
  const int64_t threads = threads_worth(products * build.rows * layer.in * layer.out, build.slots);
  const PanelBlocks inputs(layer.in, kPanelBlock, threads), outputs(layer.out, kPanelBlock, threads);
  const int64_t of_x_parts = of_input.of_x != nullptr ? inputs.parts : 0;
  const int64_t columns = (layer.in + kernels.lanes - 1) / kernels.lanes;
  // The outputs are dealt too where columns are too few for all threads.
  const int64_t down = columns >= 2 * threads ? 1 : std::min(outputs.parts, 2 * threads);
  const int64_t weight_parts = of_weight.weight_sum != nullptr ? columns * down : 0;
  for_parts(of_x_parts + weight_parts, threads, [&](int64_t part, int64_t slot) {
    Real* const scratch = memory + build.scratch + slot * build.scratch_each;
    if (part < of_x_parts)
      return kernels.backward(of_input, inputs.border(part), inputs.border(part + 1), scratch);
    const int64_t column = (part - of_x_parts) / down * kernels.lanes, row = (part - of_x_parts) % down;
    kernels.add_weight_gradient(of_weight, outputs.border(outputs.parts * row / down),
                                outputs.border(outputs.parts * (row + 1) / down), column, scratch);
  });
}

void ChainStep::lay_panels(ChainBuild& build) const {
  const auto lay = [&]<class Real>() {
    const PanelKernels<Real>& kernels = layer_kernels<Real>().panels;
    build.samples = (build.rows + kernels.lanes - 1) / kernels.lanes * kernels.lanes;
    for (const Layer& layer : layers_) {
      build.scratch_each = std::max(build.scratch_each, kernels.scratch(layer.passes_on ? layer.out : 0));
    }
  };
  type_ == at::kDouble ? lay.operator()<double>() : lay.operator()<float>();
  build.slots = std::max<int64_t>(at::get_num_threads(), 1);
  build.x = build.take(layers_.front().in);
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const bool trained = layer.passes_on || layer.weight_sum.defined() || layer.bias_sum.defined();
    build.values.push_back(build.take(layer.out));
    // A slope's place takes the gradient, beside the value that the weight's gradient needs.
    const bool passed_to = trained && l + 1 < layers_.size();
    build.gradients.push_back(passed_to || (layer.activation && trained) ? build.take(layer.out) : -1);
    build.slopes.push_back(layer.activation ? build.gradients.back() : -1);
  }
  build.output = build.take(layers_.back().out);
  build.scratch = build.elements;
  build.elements += build.slots * build.scratch_each;
}

template void ChainStep::forward_panels<float>(const Inputs&, const ChainBuild&);
template void ChainStep::forward_panels<double>(const Inputs&, const ChainBuild&);
template void ChainStep::backward_panels<float>(const ChainBuild&);
template void ChainStep::backward_panels<double>(const ChainBuild&);

}  // namespace accrue::nn
