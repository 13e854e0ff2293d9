// SPDX-License-Identifier: Apache-2.0
#include "accrue/task/objective.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/task.h"
#include "accrue/base/nearest.h"
#include "accrue/batch/pad.h"
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
  Loss loss = {.name = "cross_entropy",
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
  if (label_smoothing >= 0 && label_smoothing < 1) {
    set_known(loss, {.kind = KnownLoss::Kind::cross_entropy,
                     .target = target,
                     .label_smoothing = label_smoothing,
                     .takes_any_shape = true});
  }
  return loss;
}

bool is_of_tokens(Task task) {
  return task == Task::causal_lm || task == Task::sft;
}

/// The losses that belong to a task; the first is its default.
std::vector<LossKind> losses_of(Task task) {
  if (task == Task::regression) return {LossKind::mse, LossKind::l1, LossKind::huber};
  if (task == Task::classification) return {LossKind::cross_entropy, LossKind::binary_cross_entropy};
  return {LossKind::cross_entropy};
}

LossKind loss_kind_of(const config::Run& run) {
  const std::vector<LossKind> allowed = losses_of(run.task);
  if (run.loss.kind == LossKind::automatic) return allowed.front();
  if (std::find(allowed.begin(), allowed.end(), run.loss.kind) != allowed.end()) return run.loss.kind;
  std::vector<std::string> words;
  for (const LossKind kind : allowed) words.emplace_back(config::word_of(kind));
  fail(message::task_loss_mismatch, {{"loss", config::word_of(run.loss.kind)},
                                     {"task", config::word_of(run.task)},
                                     {"allowed", join(words)}});
}

void check_classes(Task task, const FieldSpec& target, int64_t width, int64_t num_classes, LossKind kind) {
  const std::string_view name = config::word_of(task);
  if (width != 1) fail(message::task_target_width, {{"target", target.name}, {"got", width}, {"task", name}});
  if (num_classes < 2)
    fail(message::task_few_classes, {{"target", target.name}, {"got", num_classes}, {"task", name}});
  if (kind == LossKind::binary_cross_entropy && num_classes != 2) {
    fail(message::task_binary_classes, {{"target", target.name}, {"got", num_classes}});
  }
}

void choose_best(Objective& objective, const config::Run& run) {
  const bool of_classes = run.task == Task::classification || run.task == Task::image_classification;
  objective.best_metric = !run.eval.metric.empty() ? run.eval.metric : of_classes ? "accuracy" : "loss";
  if (objective.best_metric == "loss") return;
  std::vector<std::string> names = {"loss"};
  for (const Metric& metric : objective.metrics) {
    names.push_back(metric.name);
    if (metric.name != objective.best_metric) continue;
    objective.higher_is_better = metric.higher_is_better;
    return;
  }
  fail(message::task_metric, {{"got", run.eval.metric},
                              {"task", config::word_of(run.task)},
                              {"hint", did_you_mean(run.eval.metric, names)},
                              {"allowed", join(names)}});
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
  Loss mse = over_elements("mse", loss::mse, target);
  set_known(mse, {.kind = KnownLoss::Kind::mse, .target = target, .takes_any_shape = true});
  return mse;
}

}  // namespace

Objective make_objective(const config::Run& run, const FieldSpec& target, int64_t num_classes) {
  const LossKind kind = loss_kind_of(run);
  const double smoothing = run.loss.label_smoothing;
  if (smoothing != 0 && kind != LossKind::cross_entropy) {
    fail(message::task_smoothing, {{"got", smoothing}, {"loss", config::word_of(kind)}});
  }
  Objective objective{.loss_kind = kind};
  if (is_of_tokens(run.task)) {
    objective.loss = next_token_loss(smoothing, target.name, kAttentionMask);
    objective.metrics = {metric::perplexity(target.name, kAttentionMask),
                         metric::token_accuracy(target.name, kAttentionMask)};
    choose_best(objective, run);
    return objective;
  }
  const int64_t width = target.width();
  objective.loss = loss_of_kind(kind, smoothing, target.name);
  if (run.task == Task::regression) {
    objective.num_outputs = width;
    objective.metrics = {metric::mae(target.name), metric::rmse(target.name), metric::r2(target.name)};
  } else {
    check_classes(run.task, target, width, num_classes, kind);
    objective.num_outputs = kind == LossKind::binary_cross_entropy ? 1 : num_classes;
    objective.metrics = {metric::accuracy(target.name)};
    if (run.task == Task::image_classification) objective.metrics.push_back(metric::top5(target.name));
  }
  choose_best(objective, run);
  return objective;
}

}  // namespace accrue
