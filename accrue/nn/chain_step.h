// SPDX-License-Identifier: Apache-2.0
// Micro-steps of a chain of known layers with a known loss, forward and backward without a graph.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "accrue/accumulate/window.h"
#include "accrue/microstep/loss.h"
#include "accrue/microstep/model.h"
#include "accrue/nn/panels.h"

namespace accrue::nn {

/// Where the numbers of one micro-step lie: made once for each number of rows and floating type. Offsets are
/// elements from the start of the memory that all of them share.
struct ChainBuild {
  int64_t rows = 0;
  at::ScalarType type = at::kFloat;
  int64_t samples = rows;  ///< with those that fill the last panel
  int64_t elements = 0;
  std::vector<int64_t> values = {};  ///< of each layer's output [rows, out], later of its gradient
  std::vector<int64_t> slopes = {};  ///< of its activation's derivative there; -1: not wanted
  int64_t output = 0;                ///< of the last output's rows, later of their gradient
  std::vector<at::Tensor> value_tensors = {};

  // Of panels (panels.h) only, in which then values and slopes are as well.
  int64_t slots = 0;  ///< most threads at once; 0: no panels
  int64_t x = 0;
  std::vector<int64_t> gradients = {};  ///< of each layer's output
  int64_t scratch = 0;                  ///< of the first slot's
  int64_t scratch_each = 0;

  /// The place of `width` numbers for each sample.
  int64_t take(int64_t width);
};

/// Forward, loss and backward of a model that is a chain (Model::chain) under a known loss (Loss::known),
/// added straight to a GradientBuffer: what autograd gives up to rounding, without its graph. Keeps one block
/// of memory for the largest micro-step so far. Bits depend on rows, type and thread count alone.
class ChainStep {
 public:
  /// Null where model or loss is another, or a trained parameter of the chain is not in `gradients`, which
  /// must outlive it.
  static std::unique_ptr<ChainStep> make(const Model& model, const Loss& loss,
                                         const GradientBuffer& gradients);

  /// A micro-step of at least so many samples takes bytes and time of whole multiples of them; 1: of what it
  /// has.
  static int64_t samples_at_once(const Model& model, const Loss& loss);

  /// Whether the micro-steps of a window with these options over samples like those of `batch` can run this
  /// way now: fp32 or float64 on the CPU, fields that fit, no hooks on parameters, no autocast, nothing
  /// recomputed, not ACCRUE_NN=plain. Looks up where the parameters lie: to be asked before each window, and
  /// wherever the caller's code has run since.
  bool fits(const WindowOptions& options, const Batch& batch);

  /// Seconds of the parts of a micro-step are added to these.
  struct Seconds {
    double forward = 0;
    double backward = 0;
  };
  /// One micro-step of the samples [start, start + length) of a batch that fits. DataError for a target that
  /// is no class.
  void add(Window& window, const Batch& batch, int64_t start, int64_t length, Seconds& seconds);

  /// What it computes in, since it was last asked whether something fits.
  at::ScalarType type() const noexcept { return type_; }
  int64_t num_builds() const noexcept { return num_builds_; }
  int64_t held_bytes() const noexcept {
    return memory_.defined() ? static_cast<int64_t>(memory_.nbytes()) : 0;
  }
  /// Gives the memory back, unless it is so small that nobody would notice.
  void release_large();
  void release();

 private:
  struct Layer {
    at::Tensor weight;
    at::Tensor bias;             // or undefined
    at::Tensor weight_sum = {};  // parts of the buffer; undefined where frozen
    at::Tensor bias_sum = {};
    std::optional<Activation> activation = {};
    int64_t in = 0;
    int64_t out = 0;
    bool passes_on = false;  // some layer before it is trained
  };
  struct Inputs {
    at::Tensor x;        // [rows, in] of the type; undefined where only `x_at` is needed
    at::Tensor targets;  // keeps converted ones
    const void* x_at = nullptr;
    const void* targets_at = nullptr;  // of the type, or int64
  };

  ChainStep(const Model& model, const KnownLoss& loss) : model_(model), loss_(loss) {}
  bool take_layers(const Chain& chain, const GradientBuffer& gradients);
  bool parameters_fit();
  bool fields_fit(const Batch& batch) const;
  bool target_fits(const Batch& batch) const;
  bool is_small(int64_t rows, const Layer& layer) const noexcept;
  bool all_small(int64_t rows) const noexcept;
  void find_x(Inputs& inputs, const Batch& batch, int64_t start, int64_t length) const;
  void find_targets(Inputs& inputs, const Batch& batch, int64_t start, int64_t length) const;
  const ChainBuild& build_for(int64_t rows);
  void make_room(ChainBuild& build);
  double weigh(const Inputs& inputs, int64_t rows) const;
  template <class Real>
  void run(Window& window, const Batch& batch, int64_t start, std::span<const int64_t> ids, Seconds& seconds);
  template <class Real>
  void forward(const Inputs& inputs, const ChainBuild& build);
  template <class Real>
  double loss_and_gradient(const Inputs& inputs, const ChainBuild& build);
  template <class Real>
  void backward(const Inputs& inputs, const ChainBuild& build);
  /// Whether the products of so many rows are done by panels, in chain_panels.cpp.
  bool in_panels(int64_t rows) const;
  void lay_rows(ChainBuild& build) const;
  void lay_panels(ChainBuild& build) const;
  template <class Real>
  void forward_panels(const Inputs& inputs, const ChainBuild& build);
  template <class Real>
  void backward_panels(const ChainBuild& build);
  template <class Real>
  void backward_layer(const Layer& layer, const ChainBuild& build, const PanelBackward<Real>& of_input,
                      const Real* x);

  Model model_;
  KnownLoss loss_;
  std::vector<std::string> fields_;
  std::vector<Layer> layers_;
  at::ScalarType type_ = at::kFloat;
  std::vector<ChainBuild> builds_;
  int64_t num_builds_ = 0;
  at::Tensor memory_;
};

}  // namespace accrue::nn
