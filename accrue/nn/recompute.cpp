// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/recompute.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "accrue/accumulate/direct.h"
#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"
#include "accrue/data/shape_text.h"
#include "accrue/nn/parameter_gradient.h"
#include "accrue/nn/second_run.h"

namespace accrue::nn {
namespace {

namespace autograd = torch::autograd;
using autograd::AutogradContext;
using autograd::variable_list;

constexpr size_t kOtherInputs = 1;  // of the Function, before x and the parameters

struct Record : torch::CustomClassHolder {
  explicit Record(const Segment& segment, c10::DeviceType device)
      : forward(segment.forward), first(segment.buffers, device) {}
  std::function<at::Tensor(const at::Tensor&)> forward;
  FirstRun first;
};

/// Whether the inner backward may add to `.grad` itself. A hook would be called there and by the outer
/// backward.
bool may_add_directly(const variable_list& parameters) {
  return adds_directly() &&
         std::all_of(parameters.begin(), parameters.end(), [](const at::Tensor& parameter) {
           return parameter.is_leaf() && !has_hooks(parameter);
         });
}

/// Takes the hooks of leaves away for a scope: those who ask for a leaf's gradient would call them, and so
/// will the outer backward that gets it.
class WithoutHooks {
 public:
  explicit WithoutHooks(const variable_list& tensors) {
    for (const at::Tensor& tensor : tensors) {
      if (!tensor.is_leaf() || autograd::impl::hooks(tensor).empty()) continue;
      hooks_.emplace_back(tensor, std::move(autograd::impl::hooks(tensor)));
      autograd::impl::hooks(tensor).clear();
    }
  }
  ~WithoutHooks() {
    for (auto& [tensor, hooks] : hooks_) autograd::impl::hooks(tensor) = std::move(hooks);
  }
  WithoutHooks(const WithoutHooks&) = delete;
  WithoutHooks& operator=(const WithoutHooks&) = delete;

 private:
  using Hooks = std::remove_reference_t<decltype(autograd::impl::hooks(at::Tensor()))>;
  std::vector<std::pair<at::Tensor, Hooks>> hooks_;
};

/// ArgumentError if the graph behind `output` ends in a leaf that is none of `inputs`.
void check_listed(const at::Tensor& output, const variable_list& inputs) {
  std::unordered_set<const autograd::Node*> seen = {nullptr};
  for (const at::Tensor& input : inputs) {
    if (input.requires_grad()) seen.insert(autograd::impl::gradient_edge(input).function.get());
  }
  std::vector<autograd::Node*> waiting;
  const auto visit = [&](const autograd::Edge& edge) {
    if (seen.insert(edge.function.get()).second) waiting.push_back(edge.function.get());
  };
  visit(autograd::impl::gradient_edge(output));
  while (!waiting.empty()) {
    autograd::Node* const node = waiting.back();
    waiting.pop_back();
    if (const auto* leaf = dynamic_cast<autograd::AccumulateGrad*>(node)) {
      fail(message::nn_recompute_unlisted, {{"got", shape_text(leaf->variable)}});
    }
    for (const autograd::Edge& edge : node->next_edges()) visit(edge);
  }
}

struct Recompute : autograd::Function<Recompute> {
  static at::Tensor forward(AutogradContext* context, const c10::intrusive_ptr<Record>& record,
                            const at::Tensor& x, at::TensorList parameters) {
    context->set_materialize_grads(false);
    context->saved_data["record"] = at::IValue::make_capsule(record);
    variable_list saved = {x};
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    context->save_for_backward(std::move(saved));

    const auto version = x._version();
    const AutocastScope autocast(record->first.device(), record->first.autocast());
    at::Tensor output = record->forward(x);
    if (x._version() != version) fail(message::nn_recompute_in_place, {{"x", shape_text(x)}});
    record->first.end();
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list output_gradients) {
    if (c10::GradMode::is_enabled()) fail(message::nn_recompute_create_graph);
    variable_list inputs = context->get_saved_variables();
    variable_list gradients(kOtherInputs + inputs.size());
    if (!output_gradients[0].defined()) return gradients;

    const bool x_needs_gradient = context->needs_input_grad(0);
    inputs[0] = inputs[0].detach();
    if (x_needs_gradient) inputs[0].requires_grad_();
    const at::Tensor output = run_again(context, inputs[0]);
    if (!output.requires_grad()) return gradients;
    check_listed(output, inputs);

    if (may_add_directly({inputs.begin() + 1, inputs.end()})) {
      autograd::backward({output}, output_gradients);
      gradients[kOtherInputs] = inputs[0].grad();
      return gradients;
    }
    variable_list wanted;
    std::vector<size_t> places;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!context->needs_input_grad(i)) continue;
      wanted.push_back(inputs[i]);
      places.push_back(kOtherInputs + i);
    }
    const WithoutHooks without_hooks(wanted);
    const DirectScope as_values(false);
    variable_list got = autograd::grad({output}, wanted, output_gradients, /*retain_graph=*/std::nullopt,
                                       /*create_graph=*/false, /*allow_unused=*/true);
    for (size_t i = 0; i < places.size(); ++i) gradients[places[i]] = std::move(got[i]);
    return gradients;
  }

 private:
  static at::Tensor run_again(AutogradContext* context, const at::Tensor& x) {
    const auto record = c10::static_intrusive_pointer_cast<Record>(context->saved_data["record"].toCapsule());
    const SecondRun scope(record->first);
    const c10::AutoGradMode grad_mode(true);
    return record->forward(x);
  }
};

}  // namespace

at::Tensor recompute(const Segment& segment, const at::Tensor& x) {
  variable_list trained;
  std::copy_if(segment.parameters.begin(), segment.parameters.end(), std::back_inserter(trained),
               [](const at::Tensor& parameter) { return parameter.defined() && parameter.requires_grad(); });
  if (!c10::GradMode::is_enabled() || (trained.empty() && !x.requires_grad())) return segment.forward(x);
  return Recompute::apply(c10::make_intrusive<Record>(segment, x.device().type()), x,
                          at::TensorList(trained));
}

}  // namespace accrue::nn
