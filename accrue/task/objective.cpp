// SPDX-License-Identifier: Apache-2.0
#include "accrue/task/objective.h"

#include <string>
#include <string_view>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/task.h"
#include "accrue/config/words.h"
#include "accrue/microstep/losses.h"

namespace accrue {
namespace {

using config::LossKind;
using config::Task;
using ElementTerms = LossTerms (*)(const at::Tensor& prediction, const at::Tensor& target);

LossTerms huber_terms(const at::Tensor& prediction, const at::Tensor& target) {
  return loss::huber(prediction, target);
}

/// A loss over elements: the output takes the target's shape, the target the output's type (fp32 at least).
Loss over_elements(std::string name, ElementTerms terms, const std::string& target) {
  return {.name = std::move(name),
          .terms =
              [terms, target](const Outputs& outputs, const MicroBatch& micro) {
                const at::Tensor& field = micro[target];
                at::Tensor prediction = outputs.tensor();
                if (at::isReducedFloatingType(prediction.scalar_type()))
                  prediction = prediction.to(at::kFloat);
                if (prediction.numel() == field.numel()) prediction = prediction.reshape(field.sizes());
                return terms(prediction, field.to(prediction.scalar_type()));
              },
          .weigh =
              [target](const Batch& batch) {
                return std::vector<double>{static_cast<double>(batch[target].numel())};
              }};
}

/// Class numbers [n] whatever one trailing dimension or integer type they came in.
at::Tensor class_numbers(const at::Tensor& field) {
  const at::Tensor flat = field.reshape({-1});
  return flat.scalar_type() == at::kBool ? flat.to(at::kLong) : flat;
}

Loss over_classes(double label_smoothing, const std::string& target) {
  const loss::CrossEntropyOptions options{.label_smoothing = label_smoothing};
  return {.name = "cross_entropy",
          .terms =
              [options, target](const Outputs& outputs, const MicroBatch& micro) {
                at::Tensor logits = outputs.tensor();
                if (at::isReducedFloatingType(logits.scalar_type())) logits = logits.to(at::kFloat);
                return loss::cross_entropy(logits, class_numbers(micro[target]), options);
              },
          .weigh =
              [options, target](const Batch& batch) {
                return std::vector<double>{loss::target_weight(class_numbers(batch[target]), options)};
              }};
}

LossKind loss_kind_of(const config::Run& run) {
  const bool regression = run.task == Task::regression;
  const LossKind kind = run.loss.kind;
  if (kind == LossKind::automatic) return regression ? LossKind::mse : LossKind::cross_entropy;
  const bool over_numbers = kind == LossKind::mse || kind == LossKind::l1 || kind == LossKind::huber;
  if (over_numbers != regression) {
    fail(message::task_loss_mismatch,
         {{"loss", config::word_of(kind)},
          {"task", config::word_of(run.task)},
          {"allowed", regression ? "mse, l1, huber" : "cross_entropy, binary_cross_entropy"}});
  }
  return kind;
}

void check_classes(const FieldSpec& target, int64_t width, int64_t num_classes, LossKind kind) {
  if (width != 1) fail(message::task_target_width, {{"target", target.name}, {"got", width}});
  if (num_classes < 2) fail(message::task_few_classes, {{"target", target.name}, {"got", num_classes}});
  if (kind == LossKind::binary_cross_entropy && num_classes != 2) {
    fail(message::task_binary_classes, {{"target", target.name}, {"got", num_classes}});
  }
}

Loss loss_of_kind(LossKind kind, double label_smoothing, const std::string& target) {
  switch (kind) {
    case LossKind::l1:
      return over_elements("l1", loss::l1, target);
    case LossKind::huber:
      return over_elements("huber", huber_terms, target);
    case LossKind::binary_cross_entropy:
      return over_elements("binary_cross_entropy", loss::binary_cross_entropy, target);
    case LossKind::cross_entropy:
      return over_classes(label_smoothing, target);
    case LossKind::automatic:
    case LossKind::mse:
      break;
  }
  return over_elements("mse", loss::mse, target);
}

}  // namespace

Objective make_objective(const config::Run& run, const FieldSpec& target, int64_t num_classes) {
  const LossKind kind = loss_kind_of(run);
  const double smoothing = run.loss.label_smoothing;
  if (smoothing != 0 && kind != LossKind::cross_entropy) {
    fail(message::task_smoothing, {{"got", smoothing}, {"loss", config::word_of(kind)}});
  }
  const int64_t width = target.width();
  Objective objective{.loss_kind = kind, .loss = loss_of_kind(kind, smoothing, target.name)};
  if (run.task == Task::regression) {
    objective.num_outputs = width;
    objective.metrics = {metric::mae(target.name), metric::rmse(target.name), metric::r2(target.name)};
    return objective;
  }
  check_classes(target, width, num_classes, kind);
  objective.num_outputs = kind == LossKind::binary_cross_entropy ? 1 : num_classes;
  objective.metrics = {metric::accuracy(target.name)};
  return objective;
}

}  // namespace accrue
