// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/losses.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>

#include "accrue/base/error.h"
#include "accrue/base/messages/microstep.h"
#include "accrue/data/shape_text.h"

namespace accrue::loss {
namespace {

/// At least fp32: a sum over many half-precision numbers would keep their few bits.
at::ScalarType sum_type(const at::Tensor& tensor) {
  return c10::promoteTypes(tensor.scalar_type(), at::kFloat);
}

struct Pair {
  at::Tensor prediction;
  at::Tensor target;
};

/// Both in one type, since torch's backward refuses a target of another one.
Pair same_type(const at::Tensor& prediction, const at::Tensor& target) {
  const at::ScalarType type = c10::promoteTypes(sum_type(prediction), target.scalar_type());
  return {prediction.to(type), target.to(type)};
}

/// Elementwise losses: [n, ...] against [n, ...], never broadcast.
void check_same_shape(const char* loss, const at::Tensor& prediction, const at::Tensor& target) {
  if (prediction.sizes() != target.sizes()) {
    fail(message::shapes_differ,
         {{"loss", loss}, {"prediction", shape_text(prediction)}, {"target", shape_text(target)}});
  }
  if (!prediction.is_floating_point()) {
    fail(message::prediction_not_float, {{"loss", loss}, {"type", toString(prediction.scalar_type())}});
  }
}

void check_probabilities(const at::Tensor& target) {
  if (target.numel() == 0) return;
  const auto [least, greatest] = at::aminmax(target.detach());
  if (!(least.item<double>() >= 0 && greatest.item<double>() <= 1)) {
    fail(message::target_not_probability,
         {{"least", least.item<double>()}, {"greatest", greatest.item<double>()}});
  }
}

LossTerms elements(at::Tensor sum, const at::Tensor& target) {
  return {{.name = "loss", .sum = std::move(sum), .weight = static_cast<double>(target.numel())}};
}

void check_label_smoothing(double label_smoothing) {
  if (!(label_smoothing >= 0 && label_smoothing < 1)) {
    fail(message::label_smoothing_range, {{"got", label_smoothing}});
  }
}

void check_integer(const at::Tensor& target) {
  if (!at::isIntegralType(target.scalar_type(), /*includeBool=*/false)) {
    fail(message::target_not_integer, {{"type", toString(target.scalar_type())}});
  }
}

/// Targets [m] as int64 on the CPU, contiguous.
at::Tensor host_targets(const at::Tensor& target) {
  check_integer(target);
  return target.detach().to(at::Device(at::kCPU), at::kLong).contiguous();
}

/// How many of the targets are not `ignore_index`; with `num_classes` they are checked against it.
int64_t count_targets_checked(const at::Tensor& host, int64_t ignore_index, int64_t num_classes) {
  const int64_t* values = host.const_data_ptr<int64_t>();
  int64_t counted = 0;
  for (int64_t i = 0; i < host.numel(); ++i) {
    if (values[i] == ignore_index) continue;
    if (num_classes >= 0 && (values[i] < 0 || values[i] >= num_classes)) {
      fail(message::target_out_of_range, {{"row", i}, {"got", values[i]}, {"classes", num_classes}});
    }
    ++counted;
  }
  return counted;
}

/// Targets outside [0, C) count nothing here: `cross_entropy` refuses them with their row.
double class_weight_sum(const at::Tensor& class_weights, const at::Tensor& host, int64_t ignore_index) {
  const at::Tensor weights = class_weights.detach().to(at::Device(at::kCPU), at::kDouble).contiguous();
  const double* per_class = weights.const_data_ptr<double>();
  const int64_t* values = host.const_data_ptr<int64_t>();
  double sum = 0;
  for (int64_t i = 0; i < host.numel(); ++i) {
    const bool counts = values[i] != ignore_index && values[i] >= 0 && values[i] < weights.numel();
    sum += counts ? per_class[values[i]] : 0;
  }
  return sum;
}

void check_class_weights(const at::Tensor& class_weights, int64_t num_classes) {
  if (class_weights.dim() != 1 || class_weights.size(0) != num_classes) {
    fail(message::class_weights_shape, {{"shape", shape_text(class_weights)}, {"classes", num_classes}});
  }
  const at::Tensor host = class_weights.detach().to(at::Device(at::kCPU), at::kDouble).contiguous();
  for (int64_t c = 0; c < num_classes; ++c) {
    const double weight = host.const_data_ptr<double>()[c];
    if (!(weight >= 0) || std::isinf(weight))
      fail(message::class_weight_value, {{"class", c}, {"got", weight}});
  }
}

}  // namespace

LossTerms mse(const at::Tensor& prediction, const at::Tensor& target) {
  check_same_shape("mse", prediction, target);
  const Pair pair = same_type(prediction, target);
  return elements(at::mse_loss(pair.prediction, pair.target, at::Reduction::Sum), target);
}

LossTerms l1(const at::Tensor& prediction, const at::Tensor& target) {
  check_same_shape("l1", prediction, target);
  const Pair pair = same_type(prediction, target);
  return elements(at::l1_loss(pair.prediction, pair.target, at::Reduction::Sum), target);
}

LossTerms huber(const at::Tensor& prediction, const at::Tensor& target, double delta) {
  check_same_shape("huber", prediction, target);
  if (!(delta > 0) || std::isinf(delta)) fail(message::huber_delta, {{"got", delta}});
  const Pair pair = same_type(prediction, target);
  return elements(at::huber_loss(pair.prediction, pair.target, at::Reduction::Sum, delta), target);
}

LossTerms binary_cross_entropy(const at::Tensor& logits, const at::Tensor& target) {
  check_same_shape("binary_cross_entropy", logits, target);
  const Pair pair = same_type(logits, target);
  check_probabilities(pair.target);
  return elements(
      at::binary_cross_entropy_with_logits(pair.prediction, pair.target, {}, {}, at::Reduction::Sum), target);
}

LossTerms cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                        const CrossEntropyOptions& options) {
  check_label_smoothing(options.label_smoothing);
  const bool shapes_fit = logits.dim() >= 2 && target.dim() == logits.dim() - 1 &&
                          logits.size(0) == target.size(0) &&
                          logits.sizes().slice(2) == target.sizes().slice(1);
  if (!shapes_fit) {
    fail(message::cross_entropy_shapes, {{"logits", shape_text(logits)}, {"target", shape_text(target)}});
  }
  if (!logits.is_floating_point()) {
    fail(message::prediction_not_float,
         {{"loss", "cross_entropy"}, {"type", toString(logits.scalar_type())}});
  }
  const int64_t num_classes = logits.size(1);
  const at::Tensor host = host_targets(target);
  const auto counted = static_cast<double>(count_targets_checked(host, options.ignore_index, num_classes));
  double weight = counted;
  if (options.class_weights.defined()) {
    check_class_weights(options.class_weights, num_classes);
    weight = class_weight_sum(options.class_weights, host, options.ignore_index);
  }
  const at::ScalarType type = sum_type(logits);
  const at::Tensor class_weights =
      options.class_weights.defined() ? options.class_weights.to(logits.device(), type) : at::Tensor();
  at::Tensor sum = at::cross_entropy_loss(logits.to(type), target.to(at::kLong), class_weights,
                                          at::Reduction::Sum, options.ignore_index, options.label_smoothing);
  return {{.name = "loss",
           .sum = std::move(sum),
           .weight = weight,
           .adds_without_weight = counted > 0 && options.label_smoothing > 0}};
}

double target_weight(const at::Tensor& target, const CrossEntropyOptions& options) {
  const at::Tensor host = host_targets(target);
  if (options.class_weights.defined()) {
    return class_weight_sum(options.class_weights, host, options.ignore_index);
  }
  return static_cast<double>(count_targets_checked(host, options.ignore_index, -1));
}

}  // namespace accrue::loss

namespace accrue {
namespace {

using ElementLoss = LossTerms (*)(const at::Tensor&, const at::Tensor&);

Loss element_loss(std::string name, ElementLoss terms, const std::string& target) {
  return {
      .name = std::move(name),
      .terms = [terms, target](const Outputs& outputs,
                               const MicroBatch& micro) { return terms(outputs.tensor(), micro[target]); },
      .weigh =
          [target](const Batch& batch) {
            return std::vector<double>{static_cast<double>(batch[target].numel())};
          }};
}

}  // namespace

Loss mse_loss(std::string target) {
  Loss mse = element_loss("mse", loss::mse, target);
  set_known(mse, {.kind = KnownLoss::Kind::mse, .target = std::move(target)});
  return mse;
}

Loss l1_loss(std::string target) {
  return element_loss("l1", loss::l1, target);
}

Loss binary_cross_entropy_loss(std::string target) {
  return element_loss("binary_cross_entropy", loss::binary_cross_entropy, target);
}

Loss huber_loss(double delta, std::string target) {
  Loss huber = element_loss("huber", loss::mse, target);
  huber.terms = [delta, target](const Outputs& outputs, const MicroBatch& micro) {
    return loss::huber(outputs.tensor(), micro[target], delta);
  };
  return huber;
}

Loss cross_entropy_loss(loss::CrossEntropyOptions options, std::string target) {
  Loss loss = {.name = "cross_entropy",
               .terms =
                   [options, target](const Outputs& outputs, const MicroBatch& micro) {
                     return loss::cross_entropy(outputs.tensor(), micro[target], options);
                   },
               .weigh =
                   [options, target](const Batch& batch) {
                     return std::vector<double>{loss::target_weight(batch[target], options)};
                   }};
  const bool in_range = options.label_smoothing >= 0 && options.label_smoothing < 1;
  if (in_range && !options.class_weights.defined() &&
      options.ignore_index == loss::CrossEntropyOptions{}.ignore_index) {
    set_known(loss, {.kind = KnownLoss::Kind::cross_entropy,
                     .target = std::move(target),
                     .label_smoothing = options.label_smoothing});
  }
  return loss;
}

}  // namespace accrue
