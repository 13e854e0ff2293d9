// SPDX-License-Identifier: Apache-2.0
#include "accrue/evaluate/metric.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/evaluate.h"
#include "accrue/data/shape_text.h"
#include "accrue/evaluate/share.h"
#include "accrue/microstep/next_tokens.h"

namespace accrue::metric {
namespace {

/// Output and target as float64 matrices [n, elements of one target].
std::pair<at::Tensor, at::Tensor> matrices(const std::string& metric, const Outputs& outputs,
                                           const at::Tensor& target) {
  const at::Tensor& output = outputs.tensor();
  if (output.numel() != target.numel()) {
    fail(message::metric_sizes, {{"metric", metric},
                                 {"output", shape_text(output)},
                                 {"target", shape_text(target)},
                                 {"needed", "the same number of elements"}});
  }
  const int64_t n = target.size(0);
  return {output.to(at::kDouble).reshape({n, -1}), target.to(at::kDouble).reshape({n, -1})};
}

class MeanError : public MetricSums {
 public:
  MeanError(std::string name, std::string target, bool squared)
      : name_(std::move(name)), target_(std::move(target)), squared_(squared) {}

  void add(const Outputs& outputs, const MicroBatch& micro) override {
    const auto [output, target] = matrices(name_, outputs, micro[target_]);
    const at::Tensor error = output.sub(target);
    sum_ += (squared_ ? error.square() : error.abs()).sum().item<double>();
    count_ += static_cast<double>(error.numel());
  }
  std::unique_ptr<MetricSums> clone() const override { return std::make_unique<MeanError>(*this); }
  double value() const override { return squared_ ? std::sqrt(sum_ / count_) : sum_ / count_; }

 private:
  std::string name_;
  std::string target_;
  bool squared_;
  double sum_ = 0;
  double count_ = 0;
};

class R2 : public MetricSums {
 public:
  explicit R2(std::string target) : target_(std::move(target)) {}

  void add(const Outputs& outputs, const MicroBatch& micro) override {
    const auto [output, target] = matrices("r2", outputs, micro[target_]);
    if (!origin_.defined()) {
      // Sums around a value of the set itself do not cancel where the mean is large.
      origin_ = target.slice(0, 0, 1).clone();
      errors_ = at::zeros_like(origin_);
      sums_ = at::zeros_like(origin_);
      squares_ = at::zeros_like(origin_);
    }
    const at::Tensor error = output.sub(target);
    const at::Tensor moved = target.sub(origin_);
    // Not in place: clones share the tensors.
    errors_ = errors_.add(error.square().sum(0, /*keepdim=*/true));
    sums_ = sums_.add(moved.sum(0, /*keepdim=*/true));
    squares_ = squares_.add(moved.square().sum(0, /*keepdim=*/true));
    count_ += static_cast<double>(target.size(0));
  }
  std::unique_ptr<MetricSums> clone() const override { return std::make_unique<R2>(*this); }

  double value() const override {
    const at::Tensor deviations = squares_.sub(sums_.square().div(count_)).contiguous();
    const at::Tensor errors = errors_.contiguous();
    double sum = 0;
    double elements = 0;
    for (int64_t i = 0; i < deviations.numel(); ++i) {
      const double deviation = deviations.const_data_ptr<double>()[i];
      if (deviation <= 0) continue;
      sum += 1 - errors.const_data_ptr<double>()[i] / deviation;
      elements += 1;
    }
    return elements > 0 ? sum / elements : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  std::string target_;
  at::Tensor origin_;  // [1, elements of one target], as the three sums below
  at::Tensor errors_;
  at::Tensor sums_;
  at::Tensor squares_;
  double count_ = 0;
};

/// Class numbers [n] beside the outputs [n, C], or [n, 1] of one logit a sample.
struct Classes {
  at::Tensor target;
  at::Tensor rows;
  bool one_logit = false;
};

Classes classes_of(const char* metric, const Outputs& outputs, const at::Tensor& field, const char* needed) {
  if (!at::isIntegralType(field.scalar_type(), /*includeBool=*/true))
    fail(message::metric_target_type, {{"metric", metric}, {"got", toString(field.scalar_type())}});
  const at::Tensor& output = outputs.tensor();
  const bool one_logit = output.dim() > 0 && output.numel() == output.size(0);
  const bool fit = output.dim() > 0 && output.size(0) == field.numel() && (one_logit || output.dim() == 2);
  if (!fit) {
    fail(message::metric_sizes, {{"metric", metric},
                                 {"output", shape_text(output)},
                                 {"target", shape_text(field)},
                                 {"needed", needed}});
  }
  return {field.reshape({-1}).to(at::kLong), output.reshape({output.size(0), -1}), one_logit};
}

class Accuracy : public MetricSums {
 public:
  explicit Accuracy(std::string target) : target_(std::move(target)) {}

  void add(const Outputs& outputs, const MicroBatch& micro) override {
    const auto [target, rows, one_logit] =
        classes_of("accuracy", outputs, micro[target_], "[n, C] or one logit a sample, with n class numbers");
    const at::Tensor chosen = one_logit ? rows.squeeze(1).gt(0).to(at::kLong) : rows.argmax(1);
    share_.add(chosen.eq(target), rows, target.ne(kIgnoredLabel));
  }
  std::unique_ptr<MetricSums> clone() const override { return std::make_unique<Accuracy>(*this); }
  double value() const override { return share_.value(); }

 private:
  std::string target_;
  Share share_;
};

class Top5 : public MetricSums {
 public:
  explicit Top5(std::string target) : target_(std::move(target)) {}

  void add(const Outputs& outputs, const MicroBatch& micro) override {
    const auto [target, rows, one_logit] =
        classes_of("top5", outputs, micro[target_], "[n, C] with n class numbers");
    const int64_t num_classes = rows.size(1);
    const at::Tensor place = target.clamp(0, num_classes - 1).unsqueeze(1);
    const at::Tensor own = rows.gather(1, place);
    const at::Tensor before = at::arange(num_classes, place.options()).unsqueeze(0).lt(place);
    const at::Tensor ahead = rows.gt(own).logical_or(rows.eq(own).logical_and(before)).sum(1);
    share_.add(ahead.lt(5).logical_and(place.squeeze(1).eq(target)), rows, target.ne(kIgnoredLabel));
  }
  std::unique_ptr<MetricSums> clone() const override { return std::make_unique<Top5>(*this); }
  double value() const override { return share_.value(); }

 private:
  std::string target_;
  Share share_;
};

}  // namespace

Metric mae(std::string target) {
  return {.name = "mae", .open = [target] { return std::make_unique<MeanError>("mae", target, false); }};
}

Metric rmse(std::string target) {
  return {.name = "rmse", .open = [target] { return std::make_unique<MeanError>("rmse", target, true); }};
}

Metric r2(std::string target) {
  return {.name = "r2", .open = [target] { return std::make_unique<R2>(target); }, .higher_is_better = true};
}

Metric accuracy(std::string target) {
  return {.name = "accuracy",
          .open = [target] { return std::make_unique<Accuracy>(target); },
          .higher_is_better = true};
}

Metric top5(std::string target) {
  return {
      .name = "top5", .open = [target] { return std::make_unique<Top5>(target); }, .higher_is_better = true};
}

}  // namespace accrue::metric
