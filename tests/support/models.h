// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "accrue/accumulate/window.h"
#include "accrue/microstep/loss.h"
#include "accrue/microstep/run.h"
#include "tests/support/tensors.h"

namespace accrue::test {

/// Weights by name and what they compute: a model that needs no torch::nn.
struct SmallModel {
  std::vector<NamedTensor> weights;
  std::function<at::Tensor(const std::vector<NamedTensor>&, const MicroBatch&)> compute;
  std::vector<NamedTensor> statistics = {};

  const at::Tensor& operator[](size_t index) const { return weights[index].tensor; }

  /// The engine's view; it shares the weights.
  Model model() const {
    Model view;
    view.forward = [self = *this](const MicroBatch& micro) { return self.compute(self.weights, micro); };
    view.parameters = [list = weights] { return list; };
    view.buffers = [list = statistics] { return list; };
    return view;
  }

  /// A copy whose weights have the same values in another type.
  SmallModel in_type(at::ScalarType type) const {
    SmallModel copy = *this;
    for (NamedTensor& weight : copy.weights) {
      weight.tensor = weight.tensor.detach().to(type, /*non_blocking=*/false, /*copy=*/true);
      weight.tensor.requires_grad_();
    }
    return copy;
  }
};

inline at::Tensor random(at::IntArrayRef shape, double scale = 0.5) {
  return at::randn(shape, at::kFloat).mul_(scale);
}

/// x [n, 6] -> tanh [n, 8] -> [n, outputs]. No ReLU: one near zero may flip by rounding alone.
inline SmallModel mlp(int64_t outputs = 3) {
  return {.weights = {{"hidden.weight", parameter(random({8, 6})), {}},
                      {"hidden.bias", parameter(random({8})), {}},
                      {"out.weight", parameter(random({outputs, 8})), {}},
                      {"out.bias", parameter(random({outputs})), {}}},
          .compute = [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
            const at::Tensor hidden = at::linear(micro["x"], w[0].tensor, w[1].tensor).tanh();
            return at::linear(hidden, w[2].tensor, w[3].tensor);
          }};
}

/// x [n, 2, 6, 6] -> convolution of 3 x 3 -> silu -> mean over the places -> [n, outputs].
inline SmallModel convolution(int64_t outputs = 3) {
  return {.weights = {{"conv.weight", parameter(random({4, 2, 3, 3})), {}},
                      {"conv.bias", parameter(random({4})), {}},
                      {"out.weight", parameter(random({outputs, 4}, 1.0)), {}}},
          .compute = [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
            const at::Tensor seen = at::silu(at::conv2d(micro["x"], w[0].tensor, w[1].tensor));
            return at::linear(seen.mean({2, 3}), w[2].tensor);
          }};
}

/// tokens [n, T] -> embedding -> tanh layer -> logits [n, T, 11] by the same embedding (tied).
inline SmallModel tied_tokens() {
  return {.weights = {{"embedding", parameter(random({11, 5})), {"head"}},
                      {"layer", parameter(random({5, 5})), {}}},
          .compute = [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
            const at::Tensor entered = at::embedding(w[0].tensor, micro["tokens"]);
            return at::linear(at::linear(entered, w[1].tensor).tanh(), w[0].tensor);
          }};
}

/// x [n, width] times a weight [width], from zero: the gradient of the plain sum is the sum of x.
inline SmallModel weighted_sum(int64_t width, at::ScalarType type = at::kFloat) {
  return {.weights = {{"w", parameter(at::zeros({width}, type)), {}}},
          .compute = [](const std::vector<NamedTensor>& w, const MicroBatch& micro) {
            return at::mv(micro["x"], w[0].tensor);
          }};
}

/// The plain sum of the model's output; weight: samples.
inline Loss output_sum() {
  return {.name = "output_sum",
          .terms = [](const Outputs& outputs, const MicroBatch& micro) -> LossTerms {
            return {{.sum = outputs.tensor().sum(), .weight = static_cast<double>(micro.size())}};
          },
          .weigh = {}};
}

/// Forward, loss and backward of one micro-batch into the window.
inline Added add(Window& window, const Model& model, const Loss& loss, const MicroBatch& micro) {
  return window.add(run_micro_step(model, loss, micro, {.sample_ids = micro.ids()}), micro.ids());
}

/// The rows of `batch` in parts of the given sizes.
inline std::vector<MicroBatch> parts(const Batch& batch, const std::vector<int64_t>& sizes) {
  std::vector<MicroBatch> list;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    list.push_back(batch.rows(start, size));
    start += size;
  }
  return list;
}

/// The gradient sums of a window over the parts, divided once: flat, float64.
inline at::Tensor split_gradient(const SmallModel& small, const Loss& loss,
                                 const std::vector<MicroBatch>& micro_batches, WindowOptions options = {}) {
  const Model model = small.model();
  GradientBuffer gradients(model);
  Window window(gradients, model, std::move(options));
  for (const MicroBatch& micro : micro_batches) add(window, model, loss, micro);
  window.close();
  std::vector<at::Tensor> views;
  for (const GradientBuffer::Entry& entry : gradients.entries()) views.push_back(entry.view);
  return joined(views).div(window.weight());
}

}  // namespace accrue::test
