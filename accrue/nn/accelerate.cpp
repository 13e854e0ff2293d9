// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/accelerate.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_backward.h>
#include <ATen/ops/layer_norm_native.h>
#include <ATen/ops/linear_native.h>
#include <ATen/ops/matmul_native.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <mutex>
#include <unordered_map>

#include "accrue/base/torch_compat.h"
#include "accrue/nn/function.h"
#include "accrue/nn/functions.h"

namespace accrue::nn {
namespace {

using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl>;

/// The weights that are ours, by their identity. A dead one's address may belong to another tensor later.
class Weights {
 public:
  void add(const at::Tensor& weight) {
    const std::lock_guard lock(mutex_);
    std::erase_if(list_, [](const auto& entry) { return entry.second.expired(); });
    list_.insert_or_assign(weight.unsafeGetTensorImpl(), WeakTensor(weight.getIntrusivePtr()));
  }
  bool contain(const at::Tensor& weight) {
    const std::lock_guard lock(mutex_);
    const auto found = list_.find(weight.unsafeGetTensorImpl());
    return found != list_.end() && !found->second.expired();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const c10::TensorImpl*, WeakTensor> list_;
};

Weights& weights() {
  static Weights list;
  return list;
}

at::Tensor value_of(const std::optional<at::Tensor>& tensor) {
  return tensor ? *tensor : at::Tensor();
}

bool is_ours(const at::Tensor& x, const at::Tensor& weight) {
  return weight.defined() && x.scalar_type() == weight.scalar_type() && takes_fast({x, weight}) &&
         weights().contain(weight);
}

/// The weight that `transposed` is the whole transposed view of, if it is ours; torch::nn::Linear asks for
/// products with such a view.
std::optional<at::Tensor> weight_behind(const at::Tensor& x, const at::Tensor& transposed) {
  if (transposed.dim() != 2 || !transposed.is_view()) return std::nullopt;
  const at::Tensor weight(transposed._base());
  const bool is_transposed =
      weight.dim() == 2 && weight.size(0) == transposed.size(1) && weight.size(1) == transposed.size(0) &&
      weight.stride(0) == transposed.stride(1) && weight.stride(1) == transposed.stride(0) &&
      weight.storage_offset() == transposed.storage_offset();
  return is_transposed && is_ours(x, weight) ? std::optional(weight) : std::nullopt;
}

at::Tensor matmul_or_torch(const at::Tensor& x, const at::Tensor& other) {
  if (const auto weight = weight_behind(x, other)) return nn::linear(x, *weight);
  return at::native::matmul(x, other);
}

at::Tensor linear_or_torch(const at::Tensor& x, const at::Tensor& weight,
                           const std::optional<at::Tensor>& bias) {
  if (is_ours(x, weight)) return nn::linear(x, weight, value_of(bias));
  return at::native::linear(x, weight, bias);
}

#if ACCRUE_TORCH_KEEPS_KERNELS
/// Torch's own addmm with its derivative, as it was before ours was put there.
const c10::SafeKernelFunction& torch_addmm() {
  static const c10::SafeKernelFunction kernel =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("aten::addmm", "")
          .getComputedKernelForDispatchKey(c10::DispatchKey::AutogradCPU);
  return kernel;
}

at::Tensor addmm_or_torch(c10::DispatchKeySet keys, const at::Tensor& bias, const at::Tensor& x,
                          const at::Tensor& other, const at::Scalar& beta, const at::Scalar& alpha) {
  if (bias.dim() == 1 && beta.equal(1) && alpha.equal(1)) {
    if (const auto weight = weight_behind(x, other)) return nn::linear(x, *weight, bias);
  }
  torch::jit::Stack stack = {bias, x, other, beta, alpha};
  torch_addmm().callBoxed(torch_addmm().opHandle(), keys, &stack);
  return stack.back().toTensor();
}
#endif

at::Tensor layer_norm_or_torch(const at::Tensor& x, c10::SymIntArrayRef shape,
                               const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
                               double eps, bool cudnn) {
  if (weight && bias && bias->defined() && shape.size() == 1 && is_ours(x, *weight)) {
    return nn::layer_norm(x, *weight, *bias, eps);
  }
  return at::native::layer_norm_symint(x, shape, weight, bias, eps, cudnn);
}

/// Torch's embedding as it was, for weights that are not ours.
struct TorchEmbedding : torch::autograd::Function<TorchEmbedding> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& weight,
                            const at::Tensor& ids, int64_t padding, bool scales, bool sparse) {
    context->saved_data["rows"] = weight.size(0);
    context->saved_data["padding"] = padding;
    context->saved_data["scales"] = scales;
    context->saved_data["sparse"] = sparse;
    context->save_for_backward({ids});
    const at::AutoDispatchBelowADInplaceOrView below;
    return at::embedding(weight, ids, padding, scales, sparse);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list of_output) {
    auto& saved = context->saved_data;
    return {
        at::embedding_backward(of_output[0], context->get_saved_variables()[0], saved["rows"].toInt(),
                               saved["padding"].toInt(), saved["scales"].toBool(), saved["sparse"].toBool()),
        {},
        {},
        {},
        {}};
  }
};

at::Tensor embedding_or_torch(const at::Tensor& weight, const at::Tensor& ids, c10::SymInt padding,
                              bool scales, bool sparse) {
  const int64_t row = padding.expect_int();
  if (row < 0 && !scales && !sparse && is_ours(weight, weight)) return nn::embedding(ids, weight);
  return TorchEmbedding::apply(weight, ids, row, scales, sparse);
}

void put_before_torch() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCPU, __FILE__,
                                __LINE__);
  static const bool once = [] {
    library.impl("linear", TORCH_FN(linear_or_torch));
    library.impl("matmul", TORCH_FN(matmul_or_torch));
#if ACCRUE_TORCH_KEEPS_KERNELS
    static_cast<void>(torch_addmm());
    library.impl("addmm", TORCH_FN(addmm_or_torch));
#endif
    library.impl("layer_norm", TORCH_FN(layer_norm_or_torch));
    library.impl("embedding", TORCH_FN(embedding_or_torch));
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

bool accelerate_weight(TorchLayer layer, const at::Tensor& weight) {
  const bool has_type = weight.scalar_type() == at::kFloat || weight.scalar_type() == at::kDouble;
  const size_t dimensions = layer == TorchLayer::layer_norm ? 1 : 2;
  if (!has_type || !weight.device().is_cpu() || weight.sizes().size() != dimensions) return false;
  put_before_torch();
  weights().add(weight);
  return true;
}

}  // namespace accrue::nn
