// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <stdexcept>

#include "accrue/accrue.h"
#include "accrue/nn/group_norm.h"
#include "benchmarks/parts.h"

namespace parts {
namespace {

using Tensors = std::vector<at::Tensor>;
using Offsets = std::vector<int64_t>;

at::Tensor leaf(at::IntArrayRef shape, double deviation = 1) {
  return at::randn(shape).mul_(deviation).requires_grad_();
}

/// Adds micro-step after micro-step to one window.
class Adder {
 public:
  explicit Adder(const Tensors& parameters) : gradients_(named(parameters)), window_(gradients_) {}
  void add(const accrue::LossTerm& term) { window_.add({term}); }

 private:
  static std::vector<accrue::NamedTensor> named(const Tensors& parameters) {
    std::vector<accrue::NamedTensor> list;
    for (const at::Tensor& parameter : parameters) list.push_back({std::to_string(list.size()), parameter});
    if (list.empty()) list.push_back({"none", leaf({1})});
    return list;
  }
  accrue::GradientBuffer gradients_;
  accrue::Window window_;
};

/// The gradients of one call by both ways must agree: sums of some thousand products in fp32.
void check_same(const std::string& name, const at::Tensor& x, const Tensors& parameters,
                const at::Tensor& of_output,
                const std::function<at::Tensor(const at::Tensor&, const Tensors&)>& forward) {
  constexpr double kMost = 1e-4;
  Tensors of = parameters;
  of.push_back(x);
  const auto gradients = [&](bool plain) {
    const accrue::nn::PlainScope scope(plain);
    return torch::autograd::grad({forward(x, parameters)}, of, {of_output}, {}, false, /*allow_unused=*/true);
  };
  const Tensors expected = gradients(true), got = gradients(false);
  for (size_t i = 0; i < of.size(); ++i) {
    if (!expected[i].defined()) continue;
    const double distance = ((got[i] - expected[i]).norm() / expected[i].norm()).item<double>();
    if (distance < kMost) continue;
    throw std::runtime_error(name + ": gradients differ by " + std::to_string(distance));
  }
}

/// A layer whose input needs its gradient too.
Part layer(std::string name, std::string shape, const at::Tensor& x, const Tensors& parameters,
           const std::function<at::Tensor(const at::Tensor&, const Tensors&)>& forward) {
  const auto adder = std::make_shared<Adder>(parameters);
  const at::Tensor of_output = at::randn(forward(x, parameters).sizes());
  check_same(name, x, parameters, of_output, forward);
  return both_ways(std::move(name), std::move(shape), [=] {
    adder->add({.sum = forward(x, parameters).reshape({-1}).dot(of_output.view({-1})), .weight = 1});
    x.mutable_grad() = at::Tensor();
  });
}

/// The head and its loss; ours in the one pass that `accrue train` takes.
Part head(int64_t rows, int64_t width, int64_t classes) {
  const at::Tensor x = leaf({rows, width}), weight = leaf({classes, width}, 0.02);
  const at::Tensor targets = at::randint(classes, {rows}, at::kLong);
  const auto adder = std::make_shared<Adder>(Tensors{weight});
  return both_ways("head and cross entropy in one pass",
                   std::to_string(rows) + " tokens that count, 256 to 8192 classes", [=] {
                     accrue::LossTerm term;
                     term.weight = static_cast<double>(rows);
                     term.one_pass = accrue::nn::linear_cross_entropy_pass(x, weight, targets);
                     adder->add(term);
                     x.mutable_grad() = at::Tensor();
                   });
}

Tensors block_weights(int64_t width, int64_t hidden) {
  Tensors list;
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{width},
                                                                             {width},
                                                                             {width, 3 * width},
                                                                             {3 * width},
                                                                             {width, width},
                                                                             {width},
                                                                             {width},
                                                                             {width},
                                                                             {width, hidden},
                                                                             {hidden},
                                                                             {hidden, width},
                                                                             {width}}) {
    list.push_back(leaf(shape, 0.02));
  }
  return list;
}

constexpr int64_t kTokens = 1024, kWidth = 256, kHidden = 1024, kHeads = 8, kClasses = 8192;
const std::string kRows = "1024 tokens";

std::vector<Part> layers_of_tokens() {
  const at::Tensor x = leaf({kTokens, kWidth}), gate = leaf({kTokens, kHidden}),
                   up = leaf({kTokens, kHidden});
  const at::Tensor ids = at::randint(kClasses, {kTokens}, at::kLong);
  const auto affine = [](const at::Tensor& in, const Tensors& w) {
    return accrue::nn::linear(in, w[0], w[1], accrue::Activation::gelu);
  };
  const auto layer_norm = [](const at::Tensor& in, const Tensors& w) {
    return accrue::nn::layer_norm(in, w[0], w[1]);
  };
  const auto rms_norm = [](const at::Tensor& in, const Tensors& w) { return accrue::nn::rms_norm(in, w[0]); };
  const auto embedding = [ids](const at::Tensor&, const Tensors& w) {
    return accrue::nn::embedding(ids, w[0]);
  };
  const auto gated = [up](const at::Tensor& in, const Tensors&) {
    up.mutable_grad() = at::Tensor();
    return accrue::nn::gated(in, up);
  };
  return {layer("linear, bias, GELU", kRows + ", 256 to 1024", x,
                {leaf({kHidden, kWidth}, 0.05), leaf({kHidden})}, affine),
          layer("layer norm", kRows + " of 256", x, {leaf({kWidth}), leaf({kWidth})}, layer_norm),
          layer("RMS norm", kRows + " of 256", x, {leaf({kWidth})}, rms_norm),
          layer("embedding", kRows + ", 8192 rows of 256", x, {leaf({kClasses, kWidth})}, embedding),
          layer("gate", kRows + " of 1024", gate, {}, gated)};
}

std::vector<Part> blocks() {
  const Offsets offsets = {0, 40, 90, 150, 212, 276, 350, 430, 520, 640, 780, 1024};
  const at::Tensor x = leaf({kTokens, kWidth}), qkv = leaf({kTokens, 3 * kWidth});
  const at::Tensor some = at::arange(0, kTokens, 2);
  const auto attention = [offsets](const at::Tensor& in, const Tensors&) {
    return accrue::nn::causal_attention(in, offsets, {.heads = kHeads});
  };
  const auto block = [offsets](const at::Tensor& in, const Tensors& w, const at::Tensor& rows) {
    return accrue::nn::transformer_block(
        in, {w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11]}, offsets, kHeads, 1e-5,
        rows);
  };
  const auto whole = [block](const at::Tensor& in, const Tensors& w) { return block(in, w, {}); };
  const auto taken = [block, some](const at::Tensor& in, const Tensors& w) {
    return block(in, w, {}).index_select(0, some);
  };
  const auto only = [block, some](const at::Tensor& in, const Tensors& w) { return block(in, w, some); };
  const auto weights = [] { return block_weights(kWidth, kHidden); };
  return {layer("attention in segments", kRows + " in 11 segments, 8 heads", qkv, {}, attention),
          layer("transformer block", kRows + ", width 256", x, weights(), whole),
          {"last block of counted tokens alone, beside our whole one", kRows + ", half of them counted",
           layer("", "", x, weights(), taken).now, layer("", "", x, weights(), only).now},
          head(kTokens / 2, kWidth, kClasses)};
}

}  // namespace

std::vector<Part> layers_of_sequences() {
  std::vector<Part> list = layers_of_tokens();
  for (Part& part : blocks()) list.push_back(std::move(part));
  return list;
}

std::vector<Part> layers_of_pictures() {
  const auto images = [](int64_t channels, int64_t side) {
    return at::randn({16, channels, side, side}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
  };
  std::vector<Part> list;
  for (const auto& [channels, side] : {std::pair<int64_t, int64_t>{64, 32}, {128, 16}, {256, 8}, {512, 4}}) {
    const std::string c = std::to_string(channels), s = std::to_string(side);
    list.push_back(
        layer("3x3 convolution", c + " channels, 16 of " + s + "x" + s, images(channels, side),
              {leaf({channels, channels, 3, 3}, 0.05)},
              [](const at::Tensor& in, const Tensors& w) { return accrue::nn::conv2d(in, w[0], {}, 1, 1); }));
  }
  list.push_back(layer(
      "GroupNorm, ReLU", "64 channels, 16 of 32x32", images(64, 32), {leaf({64}), leaf({64})},
      [](const at::Tensor& in, const Tensors& w) { return accrue::nn::group_norm_relu(in, 8, w[0], w[1]); }));
  return list;
}

}  // namespace parts
