// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"
#include "accrue/data/shape_text.h"
#include "accrue/nn/compute_type.h"
#include "accrue/nn/function.h"
#include "accrue/nn/functions.h"
#include "accrue/nn/rows.h"
#include "accrue/nn/segment_attention.h"

namespace accrue::nn {
namespace {

/// Rotations of the pairs of one head at each position of the longest segment.
class Rotations : public torch::CustomClassHolder {
 public:
  Rotations(std::span<const int64_t> offsets, int64_t rotated_heads, int64_t all_heads, int64_t width,
            double base)
      : rotated_(rotated_heads), all_(all_heads), half_(width / 2) {
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      for (int64_t row = offsets[i]; row < offsets[i + 1]; ++row) positions_.push_back(row - offsets[i]);
    }
    const int64_t longest = 1 + *std::max_element(positions_.begin(), positions_.end());
    for (int64_t position = 0; position < longest; ++position) {
      for (int64_t pair = 0; pair < half_; ++pair) {
        const double angle = static_cast<double>(position) *
                             std::pow(base, -static_cast<double>(pair) / static_cast<double>(half_));
        cosines_.push_back(std::cos(angle));
        sines_.push_back(std::sin(angle));
      }
    }
  }

  /// Turned by the angles of their rows, or back by them.
  at::Tensor turned(const at::Tensor& qkv, bool back) const {
    const at::Tensor out = at::empty_like(qkv);
    in_type_of(qkv, [&]<class Real>() {
      const int64_t width = qkv.size(1);
      const Real* const from = qkv.const_data_ptr<Real>();
      Real* const to = out.mutable_data_ptr<Real>();
      for_rows(qkv.size(0), width, [&](int64_t begin, int64_t end, int64_t) {
        for (int64_t row = begin; row < end; ++row) turn(from + row * width, to + row * width, row, back);
      });
    });
    return out;
  }

 private:
  template <class Real>
  void turn(const Real* from, Real* to, int64_t row, bool back) const {
    const int64_t place = positions_[static_cast<size_t>(row)] * half_;
    const double* const cosines = cosines_.data() + place;
    const double* const sines = sines_.data() + place;
    const Real direction = back ? Real{-1} : Real{1};
    for (int64_t head = 0; head < rotated_; ++head, from += 2 * half_, to += 2 * half_) {
      for (int64_t pair = 0; pair < half_; ++pair) {
        const Real cosine = static_cast<Real>(cosines[pair]);
        const Real sine = direction * static_cast<Real>(sines[pair]);
        to[pair] = from[pair] * cosine - from[pair + half_] * sine;
        to[pair + half_] = from[pair + half_] * cosine + from[pair] * sine;
      }
    }
    std::copy(from, from + (all_ - rotated_) * 2 * half_, to);
  }

  int64_t rotated_, all_, half_;
  std::vector<int64_t> positions_;
  std::vector<double> cosines_, sines_;
};

struct RotaryFunction : torch::autograd::Function<RotaryFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& qkv,
                            const c10::intrusive_ptr<Rotations>& rotations) {
    context->set_materialize_grads(false);
    context->saved_data["rotations"] = at::IValue::make_capsule(rotations);
    return rotations->turned(widened(qkv).contiguous(), /*back=*/false);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list of_output) {
    forbid_create_graph("rotary");
    if (!of_output[0].defined()) return {{}, {}};
    const auto rotations =
        c10::static_intrusive_pointer_cast<Rotations>(context->saved_data["rotations"].toCapsule());
    return {rotations->turned(of_output[0].contiguous(), /*back=*/true), {}};
  }
};

}  // namespace

at::Tensor rotary(const at::Tensor& qkv, std::span<const int64_t> offsets, const RotaryOptions& options) {
  const int64_t key_heads = options.key_heads == 0 ? options.heads : options.key_heads;
  const int64_t all = options.heads + 2 * key_heads;
  const bool fits = options.heads >= 1 && key_heads >= 1 && options.base > 0 && qkv.dim() == 2 &&
                    qkv.device().is_cpu() && qkv.size(1) >= 2 * all && qkv.size(1) % (2 * all) == 0;
  if (!fits) {
    fail(message::nn_rotary, {{"got", shape_text(qkv)},
                              {"heads", options.heads},
                              {"key_heads", key_heads},
                              {"base", options.base}});
  }
  check_segments(offsets, qkv.size(0));
  auto rotations = c10::make_intrusive<Rotations>(offsets, options.heads + key_heads, all, qkv.size(1) / all,
                                                  options.base);
  if (needs_graph({qkv})) return RotaryFunction::apply(qkv, rotations);
  return rotations->turned(widened(qkv).contiguous(), /*back=*/false);
}

}  // namespace accrue::nn
