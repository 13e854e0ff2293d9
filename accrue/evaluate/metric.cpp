// SPDX-License-Identifier: Apache-2.0
#include "accrue/evaluate/metric.h"

#include <ATen/ops/isnan.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/evaluate.h"
#include "accrue/data/shape_text.h"

namespace accrue::metric {
namespace {

constexpr int64_t kIgnored = -100;

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
    errors_ += error.square().sum(0, /*keepdim=*/true);
    sums_ += moved.sum(0, /*keepdim=*/true);
    squares_ += moved.square().sum(0, /*keepdim=*/true);
    count_ += static_cast<double>(target.size(0));
  }

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

class Accuracy : public MetricSums {
 public:
  explicit Accuracy(std::string target) : target_(std::move(target)) {}

  void add(const Outputs& outputs, const MicroBatch& micro) override {
    const at::Tensor& field = micro[target_];
    if (!at::isIntegralType(field.scalar_type(), /*includeBool=*/true)) {
      fail(message::metric_target_type, {{"metric", "accuracy"}, {"got", toString(field.scalar_type())}});
    }
    const at::Tensor& output = outputs.tensor();
    const bool one_logit = output.numel() == output.size(0);
    if (output.size(0) != field.numel() || !(one_logit || output.dim() == 2)) {
      fail(message::metric_sizes, {{"metric", "accuracy"},
                                   {"output", shape_text(output)},
                                   {"target", shape_text(field)},
                                   {"needed", "[n, C] or one logit a sample, with n class numbers"}});
    }
    const at::Tensor target = field.reshape({-1}).to(at::kLong);
    const at::Tensor rows = output.reshape({output.size(0), -1});
    const at::Tensor chosen = one_logit ? rows.squeeze(1).gt(0).to(at::kLong) : rows.argmax(1);
    // argmax of a row with NaN is the NaN's place: by luck the right class.
    const at::Tensor right = chosen.eq(target).logical_and(at::isnan(rows).any(1).logical_not());
    const at::Tensor counted = target.ne(kIgnored);
    right_ += right.logical_and(counted).sum().item<int64_t>();
    counted_ += counted.sum().item<int64_t>();
  }
  double value() const override { return static_cast<double>(right_) / static_cast<double>(counted_); }

 private:
  std::string target_;
  int64_t right_ = 0;
  int64_t counted_ = 0;
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

}  // namespace accrue::metric
