// SPDX-License-Identifier: Apache-2.0
// Stage 5: takes a model, a loss and one group of samples, gives loss terms.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "accrue/base/activation.h"
#include "accrue/batch/batch.h"

namespace accrue {

/// A sum whose value and gradient come out of one pass, which is made in the backward.
struct OnePass {
  at::Tensor root;                    ///< what the sum is computed from, with the graph behind it
  std::function<at::Tensor()> value;  ///< the sum alone, 0-dim
  /// Gives the sum, 0-dim, and `seed` times its gradient for `root` (undefined where root needs none).
  /// Gradients of parameters of its own, times `seed`, are added to their `.grad`.
  std::function<std::pair<at::Tensor, at::Tensor>(double seed)> run;
};

/// Logits that are made only where somebody asks for them: a loss of few rows never has them whole. They are
/// to be asked for before parameters, modes or autocast change, since layers before them may run only then.
struct DeferredLogits {
  std::function<at::Tensor()> make;  ///< [..., classes], with the graph
  std::vector<int64_t> shape;        ///< of what `make` gives
  /// The summed cross entropy of some rows, 0-dim with the graph: rows [m] int64 on the CPU (places of the
  /// flattened leading dimensions, each at most once), targets [m] int64 on the CPU in [0, classes), class
  /// weights [classes] or undefined.
  std::function<at::Tensor(const at::Tensor& rows, const at::Tensor& targets, double label_smoothing,
                           const at::Tensor& class_weights)>
      cross_entropy;
  /// The same for `Window::add`.
  std::function<OnePass(const at::Tensor& rows, const at::Tensor& targets, double label_smoothing,
                        const at::Tensor& class_weights)>
      one_pass;
};

/// What a model gives: one tensor, or several by name.
class Outputs {
 public:
  Outputs(at::Tensor output)
      : tensors_{{"output", std::move(output)}} {}                  // NOLINT(google-explicit-constructor)
  Outputs(NamedTensors outputs) : tensors_(std::move(outputs)) {}   // NOLINT(google-explicit-constructor)
  Outputs(DeferredLogits logits) : deferred_(std::move(logits)) {}  // NOLINT(google-explicit-constructor)

  /// The only output (deferred logits are made now); throws ArgumentError if there are several.
  const at::Tensor& tensor() const;
  const at::Tensor& operator[](std::string_view name) const { return tensors()[name]; }
  const NamedTensors& tensors() const;
  /// Null where the outputs are there already.
  const DeferredLogits* deferred() const noexcept { return deferred_ ? &*deferred_ : nullptr; }
  /// Shape of the only output; deferred logits stay unmade.
  std::vector<int64_t> shape() const;

 private:
  mutable NamedTensors tensors_;
  std::optional<DeferredLogits> deferred_;
};

/// One layer of a chain: activation(x weight^T + bias).
struct ChainLayer {
  at::Tensor weight;  ///< [out, in]
  at::Tensor bias;    ///< [out], or undefined
  std::optional<Activation> activation = {};
};

/// A model that is nothing but known layers, one after the other, on fields that are flattened and laid side
/// by side: its micro-steps can be run without a graph.
struct Chain {
  std::vector<std::string> fields;  ///< [n, ...] each
  std::vector<ChainLayer> layers;
  /// The type of what `Model::forward` holds, so that a forward that somebody puts in its place is not passed
  /// over.
  const std::type_info* made_for = nullptr;
};

/// A parameter or buffer with every name that the model has for it (a tied tensor stands once).
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  std::vector<std::string> aliases = {};
};

/// A module's place and type, for messages about layers that couple samples or draw random numbers.
struct ModuleInfo {
  std::string path;  ///< "" for the root
  std::string kind;  ///< the class's name, such as "torch::nn::BatchNorm1dImpl"
  bool training = true;
  std::string text =
      {};  ///< the module's own words with its options, such as "torch::nn::Dropout(p=0.5, inplace=false)"
};

/// A part of a model that can be run again in its backward (`nn::Segments`), and the most that its forward
/// took since it was last said which parts are.
struct SegmentInfo {
  std::string name;        ///< the module's path
  int64_t kept_bytes = 0;  ///< for its backward, beyond its output; 0 where the allocator is not installed
  double seconds = 0;      ///< of its forward
  bool is_recomputed = false;
};

/// What the engine sees of a model. It shares the model's tensors and never replaces a parameter object.
/// Made by `adapt` (module_adapter.h) from a torch module, or filled by hand. Copies are cheap and refer to
/// the same model.
struct Model {
  std::string name = "model";
  std::function<Outputs(const MicroBatch&)> forward;
  std::function<std::vector<NamedTensor>()> parameters;
  std::function<std::vector<NamedTensor>()> buffers = [] { return std::vector<NamedTensor>{}; };
  std::function<void(bool)> train = [](bool) {};  ///< training mode on or off
  std::function<bool()> is_training = [] { return true; };
  std::function<std::vector<ModuleInfo>()> modules = [] { return std::vector<ModuleInfo>{}; };
  bool takes_offsets = false;  ///< reads end-to-end fields [tokens, ...] with "offsets" [n + 1]
  /// Notes the mode of every module (some may be frozen in evaluation mode); what it gives puts them back.
  /// Empty: the model has one mode.
  std::function<std::function<void()>()> note_modes = {};
  /// Sets the mode of the module at `path` (as in `modules`) and of its parts. Empty: the model has one mode.
  std::function<void(const std::string& path, bool training)> set_mode = {};
  /// The parts that can be run again, in the order of the forward. Empty: none.
  std::function<std::vector<SegmentInfo>()> segments = [] { return std::vector<SegmentInfo>{}; };
  /// Says which of `segments` are run again from now on. Empty: none can.
  std::function<void(const std::vector<bool>&)> recompute = {};
  /// What `forward` computes in training mode, where that is a chain of the model's own parameters. Empty: it
  /// is none. See `chain_of`.
  std::function<Chain()> chain = {};
};

/// Fills `model.chain`, whose forward is set already.
void set_chain(Model& model, std::function<Chain()> chain);
/// `model.chain()`, if its forward is still the one that it was filled for.
std::optional<Chain> chain_of(const Model& model);

/// `model.note_modes`, or the same by `is_training` and `train`.
std::function<void()> note_modes(const Model& model);

/// Puts a tensor into `list`, or its name among the aliases of the entry that is the same tensor.
void add_tensor(std::vector<NamedTensor>& list, const std::string& name, const at::Tensor& tensor);

/// The parameters with requires_grad, in the model's order.
std::vector<NamedTensor> trainable_parameters(const Model& model);

}  // namespace accrue
