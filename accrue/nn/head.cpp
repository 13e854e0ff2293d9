// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/head.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"
#include "accrue/data/shape_text.h"
#include "accrue/nn/compute_type.h"
#include "accrue/nn/function.h"
#include "accrue/nn/functions.h"
#include "accrue/nn/kernels.h"
#include "accrue/nn/parameter_gradient.h"
#include "accrue/nn/products.h"
#include "accrue/nn/rows.h"
#include "accrue/nn/shapes.h"

namespace accrue::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// More columns than rows of logits, so that equal places of neighbouring classes do not fall on each other
/// in the cache.
constexpr int64_t kPadding = 16;

/// What the head computes on: contiguous, in the compute type.
struct HeadInputs {
  at::Tensor x, weight, targets, class_weights;
  double label_smoothing;

  int64_t rows() const { return x.size(0); }
  int64_t classes() const { return weight.size(0); }
};

/// Transposed logits [classes, rows + padding] of some rows: first the logits, then their gradient up to a
/// factor a row.
class Chunk {
 public:
  Chunk(const HeadInputs& head, int64_t first, int64_t rows)
      : head_(head),
        first_(first),
        rows_(rows),
        storage_(at::empty({head.classes(), rows + kPadding}, head.x.options())),
        scales_(at::empty({rows}, head.x.options())) {
    put_product(logits(), head.weight, head.x.narrow(0, first, rows).t());
  }

  /// The loss of the rows; with a gradient the logits become it.
  double loss(bool with_gradient) const {
    return in_type_of(storage_, [&]<class Real>() { return loss_in<Real>(with_gradient); });
  }

  /// `seed` times the gradient of the rows [rows, width].
  void put_gradient(const at::Tensor& of_x, double seed) const {
    const at::Tensor out = of_x.narrow(0, first_, rows_);
    put_product(out, logits().t(), head_.weight);
    scale(out, out, seed);
  }
  /// Adds `seed` times the gradient of the weight.
  void add_gradient(const at::Tensor& of_weight, double seed) const {
    const at::Tensor scaled = at::empty({rows_, head_.x.size(1)}, head_.x.options());
    scale(head_.x.narrow(0, first_, rows_), scaled, seed);
    add_product(of_weight, logits(), scaled);
  }

 private:
  at::Tensor logits() const { return storage_.narrow(1, 0, rows_); }

  template <class Real>
  double loss_in(bool with_gradient) const {
    Real* const logits = storage_.mutable_data_ptr<Real>();
    const Real* const weights =
        head_.class_weights.defined() ? head_.class_weights.const_data_ptr<Real>() : nullptr;
    const int64_t blocks = (rows_ + kCrossEntropyColumns - 1) / kCrossEntropyColumns;
    std::vector<double> sums(static_cast<size_t>(blocks));
    at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t column = block * kCrossEntropyColumns;
        sums[static_cast<size_t>(block)] = layer_kernels<Real>().cross_entropy(
            {.logits = logits + column,
             .classes = head_.classes(),
             .stride = storage_.size(1),
             .columns = std::min(kCrossEntropyColumns, rows_ - column),
             .targets = head_.targets.const_data_ptr<int64_t>() + first_ + column,
             .class_weights = weights,
             .label_smoothing = head_.label_smoothing,
             .scales = scales_.mutable_data_ptr<Real>() + column,
             .with_gradient = with_gradient});
      }
    });
    double sum = 0;
    for (const double part : sums) sum += part;
    return sum;
  }

  void scale(const at::Tensor& from, const at::Tensor& to, double seed) const {
    const at::Tensor factors = seed == 1 ? scales_ : scales_.mul(seed);
    in_type_of(from, [&]<class Real>() {
      const int64_t width = from.size(1);
      const Real* const source = from.const_data_ptr<Real>();
      const Real* const factor = factors.const_data_ptr<Real>();
      Real* const target = to.mutable_data_ptr<Real>();
      for_rows(rows_, width, [&](int64_t begin, int64_t end, int64_t) {
        layer_kernels<Real>().scale_rows(end - begin, width, source + begin * width, factor + begin,
                                         target + begin * width);
      });
    });
  }

  const HeadInputs& head_;
  int64_t first_, rows_;
  at::Tensor storage_, scales_;
};

HeadInputs inputs_of(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                     const HeadOptions& options) {
  return {as_computed(x, weight).contiguous(), widened(weight).contiguous(),
          targets.to(at::kCPU, at::kLong).contiguous(),
          options.class_weights.defined() ? options.class_weights.to(compute_type(weight)).contiguous()
                                          : options.class_weights,
          options.label_smoothing};
}

/// The loss of all rows; `seed` times its gradients are put into of_x and added to of_weight, where these are
/// defined.
double run_pass(const HeadInputs& head, double seed, const at::Tensor& of_x, const at::Tensor& of_weight) {
  const bool with_gradient = of_x.defined() || of_weight.defined();
  double sum = 0;
  for (int64_t row = 0; row < head.rows(); row += kHeadRows) {
    const Chunk chunk(head, row, std::min(kHeadRows, head.rows() - row));
    sum += chunk.loss(with_gradient);
    if (of_x.defined()) chunk.put_gradient(of_x, seed);
    if (of_weight.defined()) chunk.add_gradient(of_weight, seed);
  }
  return sum;
}

at::Tensor number_like(const at::Tensor& x, double value) {
  return at::scalar_tensor(value, x.options());
}

struct HeadFunction : torch::autograd::Function<HeadFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& targets, const HeadOptions& options) {
    context->set_materialize_grads(false);
    context->save_for_backward({x, weight, targets, options.class_weights});
    context->saved_data["smoothing"] = options.label_smoothing;
    const HeadInputs head = inputs_of(x, weight, targets, options);
    return number_like(head.x, run_pass(head, 1, {}, {}));
  }

  static variable_list backward(AutogradContext* context, variable_list of_output) {
    forbid_create_graph("linear_cross_entropy");
    if (!of_output[0].defined()) return {{}, {}, {}, {}};
    const variable_list saved = context->get_saved_variables();
    const HeadInputs head = inputs_of(
        saved[0], saved[1], saved[2],
        {.label_smoothing = context->saved_data["smoothing"].toDouble(), .class_weights = saved[3]});
    const ParameterGradient of_weight(saved[1], context->needs_input_grad(1));
    const at::Tensor of_x = context->needs_input_grad(0) ? at::empty_like(head.x) : at::Tensor();
    run_pass(head, of_output[0].item<double>(), of_x, of_weight.sum());
    return {of_x, of_weight.result(), {}, {}};
  }
};

void check_head(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                const HeadOptions& options) {
  const at::Tensor& class_weights = options.class_weights;
  const bool fits = x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1) && targets.dim() == 1 &&
                    targets.size(0) == x.size(0) &&
                    at::isIntegralType(targets.scalar_type(), /*includeBool=*/false) &&
                    is_vector_or_none(class_weights, weight.size(0));
  if (!fits) {
    fail(message::nn_head_shapes,
         {{"x", shape_text(x)},
          {"weight", shape_text(weight)},
          {"targets", shape_text(targets)},
          {"class_weights", class_weights.defined() ? shape_text(class_weights) : "none"}});
  }
  const at::Tensor host = targets.to(at::kCPU, at::kLong).contiguous();
  const int64_t* const values = host.const_data_ptr<int64_t>();
  for (int64_t row = 0; row < host.numel(); ++row) {
    if (values[row] >= 0 && values[row] < weight.size(0)) continue;
    fail(message::nn_head_target, {{"row", row}, {"got", values[row]}, {"classes", weight.size(0)}});
  }
}

/// A sum that is there already, as a pass.
OnePass pass_of(const at::Tensor& sum) {
  return {.root = sum,
          .value = [sum] { return sum.detach(); },
          .run =
              [sum](double seed) {
                return std::pair(sum.detach(), sum.requires_grad() ? number_like(sum, seed) : at::Tensor());
              }};
}

at::Tensor plain_cross_entropy(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                               const HeadOptions& options) {
  const at::Tensor logits = nn::linear(x, weight);
  const at::Tensor weights = options.class_weights.defined()
                                 ? options.class_weights.to(logits.device(), logits.scalar_type())
                                 : at::Tensor();
  return at::cross_entropy_loss(logits, targets.to(logits.device(), at::kLong), weights, at::Reduction::Sum,
                                /*ignore_index=*/-1, options.label_smoothing);
}

}  // namespace

at::Tensor linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                                const HeadOptions& options) {
  check_head(x, weight, targets, options);
  if (!takes_fast({x, weight})) return plain_cross_entropy(x, weight, targets, options);
  if (needs_graph({x, weight})) return HeadFunction::apply(x, weight, targets, options);
  const HeadInputs head = inputs_of(x, weight, targets, options);
  return number_like(head.x, run_pass(head, 1, {}, {}));
}

OnePass linear_cross_entropy_pass(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                                  const HeadOptions& options) {
  check_head(x, weight, targets, options);
  const bool adds_itself = !weight.requires_grad() || goes_into_buffer(weight);
  if (!takes_fast({x, weight}) || !adds_itself) {
    return pass_of(linear_cross_entropy(x, weight, targets, options));
  }
  return {.root = x,
          .value =
              [x, weight, targets, options] {
                const c10::NoGradGuard no_grad;
                return linear_cross_entropy(x, weight, targets, options);
              },
          .run =
              [x, weight, targets, options](double seed) {
                const c10::NoGradGuard no_grad;
                const HeadInputs head = inputs_of(x, weight, targets, options);
                const ParameterGradient of_weight(weight, weight.requires_grad());
                const at::Tensor of_x = x.requires_grad() ? at::empty_like(head.x) : at::Tensor();
                const double sum = run_pass(head, seed, of_x, of_weight.sum());
                return std::pair(number_like(head.x, sum), of_x);
              }};
}

DeferredLogits deferred_logits(std::vector<int64_t> shape, const at::Tensor& weight,
                               const std::function<at::Tensor(const at::Tensor& rows)>& rows_of) {
  return {.make = [weight, rows_of] { return nn::linear(rows_of({}), weight); },
          .shape = std::move(shape),
          .cross_entropy =
              [weight, rows_of](const at::Tensor& rows, const at::Tensor& targets, double smoothing,
                                const at::Tensor& class_weights) {
                return linear_cross_entropy(rows_of(rows), weight, targets,
                                            {.label_smoothing = smoothing, .class_weights = class_weights});
              },
          .one_pass =
              [weight, rows_of](const at::Tensor& rows, const at::Tensor& targets, double smoothing,
                                const at::Tensor& class_weights) {
                return linear_cross_entropy_pass(
                    rows_of(rows), weight, targets,
                    {.label_smoothing = smoothing, .class_weights = class_weights});
              }};
}

}  // namespace accrue::nn
