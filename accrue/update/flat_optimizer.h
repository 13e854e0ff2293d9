// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "accrue/update/chunks.h"
#include "accrue/update/update_options.h"
#include "accrue/update/writing_pass.h"

namespace accrue {

/// SGD, Adam and AdamW over the flat buffers in one pass. Its state is flat too, in the layout of the
/// gradient sums, and fp32 where they are bf16 or fp16.
class FlatOptimizer : public WritingPass {
 public:
  /// Throws ConfigError for the groups. The options' values are checked already.
  FlatOptimizer(GradientBuffer& gradients, Chunks& chunks, const Kernels& kernels,
                const OptimizerOptions& optimizer, const UpdateOptions& options);

  void write(const WritingOptions& options) override;
  double learning_rate() const override { return groups_[0].lr; }
  int64_t state_bytes() const override;
  std::vector<at::Tensor> masters() const override;
  NamedTensors shared_state() const override;
  void load_state(const NamedTensors& tensors) override;

 private:
  /// One kind of state: flat tensors beside those of the gradient buffer; undefined ones where it does not
  /// apply.
  struct Kind {
    const char* name;
    std::vector<at::Tensor> flats;
    std::vector<at::Tensor> views;  // one an entry, in the parameter's shape and strides; or undefined
    std::vector<char*> places;      // one an entry, or null
  };

  void add_kind(const char* name, bool masters_only);
  void read_masters();
  void set_groups(const OptimizerOptions& optimizer, const std::vector<ParameterGroup>& groups);
  void set_numbers(const WritingOptions& options);
  void* state_at(const Kind* kind, const Chunk& chunk) const;

  GradientBuffer& gradients_;
  Chunks& chunks_;
  const Kernels& kernels_;
  Rule rule_ = Rule::sgd;
  double beta1_ = 0;
  double beta2_ = 0;
  double eps_ = 0;
  struct Group {
    double lr = 0;
    double weight_decay = 0;
  };
  std::vector<Group> groups_;           // the optimizer's own values, then one a parameter group
  std::vector<UpdateNumbers> numbers_;  // one a group
  std::vector<size_t> group_of_;        // one an entry
  std::vector<Storage> storage_of_;     // one an entry
  std::vector<Kind> kinds_;             // momentum; or exp_avg, exp_avg_sq; then master
  Kind* first_ = nullptr;
  Kind* second_ = nullptr;
  Kind* master_ = nullptr;
};

}  // namespace accrue
