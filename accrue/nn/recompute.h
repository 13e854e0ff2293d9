// SPDX-License-Identifier: Apache-2.0
// Runs a part of a model again in its backward instead of keeping what it made (Chen et al. 2016).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "accrue/microstep/model.h"

namespace accrue::nn {

/// A part of a model: activations [n, ...] in, activations out, by these parameters and running statistics.
struct Segment {
  std::function<at::Tensor(const at::Tensor&)> forward;
  std::vector<at::Tensor> parameters = {};
  std::vector<at::Tensor> buffers = {};
};

/// `segment.forward(x)`, of which only x is kept; its backward runs the forward again. The second run finds
/// the MicroStepContext with its call counts, the default generator, the buffers and the autocast of the
/// first run, and leaves generator and buffers as it found them, also when it throws. Training modes must be
/// those of the first run. Gradients of parameters go straight into `.grad` while a window adds (the bits of
/// the plain forward, but for a parameter that also stands outside the segment: then the order of additions
/// differs); otherwise, under `autograd::grad` and where a parameter has hooks, they are returned. Hooks on
/// x, on the output and on parameters are called once. Without grad mode it is the plain forward. Throws
/// StateError in second derivatives (create_graph); ArgumentError for a forward that writes into x, or (in
/// backward) that uses parameters that are not listed; c10::Error if x or a parameter was changed before the
/// backward.
at::Tensor recompute(const Segment& segment, const at::Tensor& x);

/// The segments of one model: which are recomputed, and what each one's last forward took. Copies share.
class Segments {
 public:
  Segments();
  /// Adds a segment called `name`; returns its number. Parameters and buffers are those of `module`.
  template <class Module>
  size_t add(std::string name, const Module& module) {
    return add(std::move(name), module.parameters(), module.buffers());
  }
  size_t add(std::string name, std::vector<at::Tensor> parameters, std::vector<at::Tensor> buffers);
  /// Runs segment `number` on x, again in backward if it is marked.
  at::Tensor run(size_t number, const std::function<at::Tensor(const at::Tensor&)>& forward,
                 const at::Tensor& x) const;
  /// Fills `model.segments` and `model.recompute`.
  void install(Model& model) const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace accrue::nn
