// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/block.h"

#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <vector>

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"
#include "accrue/data/shape_text.h"
#include "accrue/nn/compute_type.h"
#include "accrue/nn/function.h"
#include "accrue/nn/functions.h"
#include "accrue/nn/kernels.h"
#include "accrue/nn/norm_rows.h"
#include "accrue/nn/parameter_gradient.h"
#include "accrue/nn/products.h"
#include "accrue/nn/row_passes.h"
#include "accrue/nn/rows.h"
#include "accrue/nn/segment_attention.h"

namespace accrue::nn {
namespace {

constexpr size_t kBlockParameters = 12;

// In the order of BlockWeights.
enum Parameter : size_t {
  kNorm1,
  kShift1,
  kQkv,
  kQkvBias,
  kProjection,
  kProjectionBias,
  kNorm2,
  kShift2,
  kUp,
  kUpBias,
  kDown,
  kDownBias
};
using Parameters = std::array<at::Tensor, kBlockParameters>;

Parameters list_of(const BlockWeights& w) {
  return {w.norm1, w.shift1, w.qkv, w.qkv_bias, w.projection, w.projection_bias,
          w.norm2, w.shift2, w.up,  w.up_bias,  w.down,       w.down_bias};
}

/// Tanh GELU of product + bias.
at::Tensor gelu_of(const at::Tensor& product, const at::Tensor& bias) {
  at::Tensor value = at::empty_like(product);
  activate_rows(Activation::gelu_tanh, product, bias, value);
  return value;
}

/// The value once more, while `gradient` of the value becomes that of the product; adds the bias's to `sums`.
at::Tensor gelu_backward(const at::Tensor& product, const at::Tensor& bias, const at::Tensor& gradient,
                         const at::Tensor& sums) {
  at::Tensor value = at::empty_like(product);
  in_type_of(product, [&]<class Real>() {
    const int64_t width = product.size(1);
    const Real* const from = product.const_data_ptr<Real>();
    const Real* const shift = bias.const_data_ptr<Real>();
    Real* const again = value.mutable_data_ptr<Real>();
    Real* const changed = gradient.mutable_data_ptr<Real>();
    for_rows_with_sums<Real>(product.size(0), width, std::array{sums},
                             [&](int64_t begin, int64_t end, const std::array<Real*, 1>& partial) {
                               const int64_t at = begin * width;
                               layer_kernels<Real>().activate_backward(Activation::gelu_tanh, end - begin,
                                                                       width, from + at, shift, again + at,
                                                                       changed + at, partial[0]);
                             });
  });
  return value;
}

/// What a block keeps for its backward, beside its input.
struct Kept {
  at::Tensor qkv;  ///< without its bias
  SegmentAttention::Result attended;
  at::Tensor middle;  ///< x + attention
  at::Tensor up;      ///< before bias and GELU
};

at::Tensor in_type(const at::Tensor& parameter) {
  return widened(parameter).contiguous();
}

/// Of values [tokens, width] those of the block's rows; all where these are undefined.
at::Tensor taken(const at::Tensor& values, const at::Tensor& rows) {
  return rows.defined() ? values.index_select(0, rows) : values;
}

/// The inverse for a gradient: zero for the other tokens.
at::Tensor put_back(const at::Tensor& values, const at::Tensor& rows, int64_t tokens) {
  if (!rows.defined()) return values;
  return at::zeros({tokens, values.size(1)}, values.options()).index_copy_(0, rows, values);
}

/// x [tokens, width] in the compute type.
at::Tensor run_block(const at::Tensor& x, const Parameters& p, const SegmentAttention& attention, double eps,
                     const at::Tensor& rows, Kept& kept) {
  const NormWeights norm1(p[kNorm1], p[kShift1], eps);
  const NormWeights norm2(p[kNorm2], p[kShift2], eps);
  kept.qkv = product(normalise(x, norm1).normed, widened(p[kQkv]));
  kept.attended = attention.forward(kept.qkv, in_type(p[kQkvBias]));
  const at::Tensor projected = product(taken(kept.attended.output, rows), widened(p[kProjection]));
  const NormResult second = normalise(taken(x, rows), norm2, projected, in_type(p[kProjectionBias]));
  kept.middle = second.sum;
  kept.up = product(second.normed, widened(p[kUp]));
  at::Tensor out = product(gelu_of(kept.up, in_type(p[kUpBias])), widened(p[kDown]));
  add_to_rows(out, in_type(p[kDownBias]), kept.middle);
  return out;
}

/// Adds rows^T gradient to the gradient of a matrix [in, out].
void add_to_matrix(const ParameterGradient& to, const at::Tensor& rows, const at::Tensor& gradient) {
  if (!to.is_wanted()) return;
  add_product(to.sum(), rows.t(), gradient);
}

/// The gradient of x.
at::Tensor run_backward(const at::Tensor& x, const Parameters& p, const SegmentAttention& attention,
                        double eps, const at::Tensor& rows, const Kept& kept, const at::Tensor& of_output,
                        const std::vector<ParameterGradient>& to) {
  const NormWeights norm1(p[kNorm1], p[kShift1], eps);
  const NormWeights norm2(p[kNorm2], p[kShift2], eps);
  at::Tensor of_middle;
  {
    at::Tensor of_up = product(of_output, widened(p[kDown]).t());
    add_columns(of_output, to[kDownBias].sum());
    add_to_matrix(to[kDown], gelu_backward(kept.up, in_type(p[kUpBias]), of_up, to[kUpBias].sum()),
                  of_output);
    const NormResult second = normalise(kept.middle, norm2);
    add_to_matrix(to[kUp], second.normed, of_up);
    of_middle = norm_backward(kept.middle, second.moments, norm2, product(of_up, widened(p[kUp]).t()),
                              of_output, {to[kNorm2].sum(), to[kShift2].sum(), to[kProjectionBias].sum()});
  }
  add_to_matrix(to[kProjection], taken(kept.attended.output, rows), of_middle);
  const at::Tensor of_attended = product(of_middle, widened(p[kProjection]).t());
  const at::Tensor of_qkv = attention.backward(kept.qkv, in_type(p[kQkvBias]), kept.attended,
                                               put_back(of_attended, rows, x.size(0)));
  add_columns(of_qkv, to[kQkvBias].sum());
  const NormResult first = normalise(x, norm1);
  add_to_matrix(to[kQkv], first.normed, of_qkv);
  return norm_backward(x, first.moments, norm1, product(of_qkv, widened(p[kQkv]).t()),
                       put_back(of_middle, rows, x.size(0)), {to[kNorm1].sum(), to[kShift1].sum(), {}});
}

struct BlockFunction : torch::autograd::Function<BlockFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            at::TensorList parameters, const c10::intrusive_ptr<SegmentAttention>& attention,
                            double eps, const std::optional<at::Tensor>& only) {
    context->set_materialize_grads(false);
    const at::Tensor rows = only.value_or(at::Tensor());
    const at::Tensor entering = as_computed(x, parameters[kQkv]).reshape({-1, x.size(-1)}).contiguous();
    Parameters p;
    std::copy(parameters.begin(), parameters.end(), p.begin());
    Kept kept;
    const at::Tensor out = run_block(entering, p, *attention, eps, rows, kept);
    torch::autograd::variable_list saved = {
        entering, kept.qkv, kept.attended.output, kept.attended.log_sums, kept.middle, kept.up, rows};
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["attention"] = at::IValue::make_capsule(attention);
    context->saved_data["eps"] = eps;
    context->saved_data["sizes"] = x.sizes();
    return rows.defined() ? out : at::_unsafe_view(out, x.sizes());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list of_output) {
    forbid_create_graph("transformer_block");
    torch::autograd::variable_list gradients(1 + kBlockParameters + 3);
    if (!of_output[0].defined()) return gradients;
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const size_t before = saved.size() - kBlockParameters;
    Parameters p;
    std::copy(saved.begin() + static_cast<std::ptrdiff_t>(before), saved.end(), p.begin());
    std::vector<ParameterGradient> to;
    for (size_t i = 0; i < kBlockParameters; ++i) to.emplace_back(p[i], context->needs_input_grad(1 + i));
    const auto attention =
        c10::static_intrusive_pointer_cast<SegmentAttention>(context->saved_data["attention"].toCapsule());
    const Kept kept{saved[1], {saved[2], saved[3]}, saved[4], saved[5]};
    const at::Tensor of_rows = of_output[0].reshape(kept.middle.sizes()).contiguous();
    const at::Tensor of_x = run_backward(saved[0], p, *attention, context->saved_data["eps"].toDouble(),
                                         saved[6], kept, of_rows, to);
    gradients[0] = of_x.view(context->saved_data["sizes"].toIntVector());
    for (size_t i = 0; i < kBlockParameters; ++i) gradients[1 + i] = to[i].result();
    return gradients;
  }
};

at::Tensor composed(const at::Tensor& x, const BlockWeights& w, std::span<const int64_t> offsets,
                    int64_t heads, double eps, const at::Tensor& only) {
  const at::Tensor rows = only.defined() ? only.to(x.device()) : only;
  const at::Tensor qkv = linear_transposed(layer_norm(x, w.norm1, w.shift1, eps), w.qkv, w.qkv_bias);
  const at::Tensor mixed = causal_attention(qkv.flatten(0, -2), offsets, {.heads = heads});
  const at::Tensor attended = rows.defined() ? taken(mixed, rows) : mixed.view(x.sizes());
  const at::Tensor entering = rows.defined() ? taken(x.reshape(mixed.sizes()), rows) : x;
  const at::Tensor middle = entering.add(linear_transposed(attended, w.projection, w.projection_bias));
  const at::Tensor hidden =
      linear_transposed(layer_norm(middle, w.norm2, w.shift2, eps), w.up, w.up_bias, Activation::gelu_tanh);
  return middle.add(linear_transposed(hidden, w.down, w.down_bias));
}

void check_rows(const at::Tensor& rows, int64_t tokens) {
  bool fit = rows.dim() == 1 && rows.scalar_type() == at::kLong && rows.is_cpu();
  if (fit) {
    const at::Tensor places = rows.contiguous();
    std::vector<bool> met(static_cast<size_t>(tokens));
    for (int64_t i = 0; fit && i < places.numel(); ++i) {
      const int64_t place = places.const_data_ptr<int64_t>()[i];
      fit = place >= 0 && place < tokens && !met[static_cast<size_t>(place)];
      if (fit) met[static_cast<size_t>(place)] = true;
    }
  }
  if (fit) return;
  fail(message::nn_block_rows,
       {{"got", shape_text(rows)}, {"type", toString(rows.scalar_type())}, {"last", tokens - 1}});
}

void check_block(const at::Tensor& x, const BlockWeights& w, std::span<const int64_t> offsets,
                 int64_t heads) {
  const auto expect = [](const at::Tensor& got, const char* name, at::IntArrayRef needed) {
    if (got.defined() && got.sizes() == needed) return;
    fail(message::nn_block,
         {{"name", name}, {"got", got.defined() ? shape_text(got) : "none"}, {"needed", shape_text(needed)}});
  };
  const int64_t width = x.dim() == 0 ? 0 : x.size(-1);
  const int64_t hidden = w.up.defined() && w.up.dim() == 2 ? w.up.size(1) : 4 * width;
  expect(w.norm1, "norm1", {width});
  expect(w.shift1, "shift1", {width});
  expect(w.qkv, "qkv", {width, 3 * width});
  expect(w.qkv_bias, "qkv_bias", {3 * width});
  expect(w.projection, "projection", {width, width});
  expect(w.projection_bias, "projection_bias", {width});
  expect(w.norm2, "norm2", {width});
  expect(w.shift2, "shift2", {width});
  expect(w.up, "up", {width, hidden});
  expect(w.up_bias, "up_bias", {hidden});
  expect(w.down, "down", {hidden, width});
  expect(w.down_bias, "down_bias", {width});
  if (heads < 1 || width % heads != 0) {
    fail(message::nn_attention_shape, {{"got", shape_text(w.qkv)}, {"heads", heads}, {"key_heads", heads}});
  }
  check_segments(offsets, width == 0 ? 0 : x.numel() / width);
}

}  // namespace

at::Tensor transformer_block(const at::Tensor& x, const BlockWeights& weights,
                             std::span<const int64_t> offsets, int64_t heads, double eps,
                             const at::Tensor& rows) {
  check_block(x, weights, offsets, heads);
  if (rows.defined()) check_rows(rows, x.numel() / x.size(-1));
  const Parameters parameters = list_of(weights);
  const bool fast = takes_fast({x}) && takes_fast(parameters);
  if (!fast) return composed(x, weights, offsets, heads, eps, rows);
  const auto attention = c10::make_intrusive<SegmentAttention>(offsets, heads, heads, 0, nullptr);
  if (needs_graph({x}) || needs_graph(parameters))
    return BlockFunction::apply(x, at::TensorList(parameters), attention, eps, if_there(rows));
  Kept kept;
  const at::Tensor entering = as_computed(x, weights.qkv).reshape({-1, x.size(-1)}).contiguous();
  const at::Tensor out = run_block(entering, parameters, *attention, eps, rows, kept);
  return rows.defined() ? out : out.view(x.sizes());
}

}  // namespace accrue::nn
