// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "accrue/batch/pad.h"
#include "accrue/evaluate/evaluate.h"
#include "accrue/microstep/losses.h"
#include "accrue/microstep/run.h"
#include "accrue/update/updater.h"
#include "tests/support/errors.h"

namespace accrue {
namespace {

at::Tensor token_ids(const std::vector<int64_t>& values) {
  return at::tensor(at::ArrayRef<int64_t>(values), at::kLong);
}

double metric_value(const Metric& metric, const at::Tensor& output, const MicroBatch& micro) {
  const auto sums = metric.open();
  sums->add(output, micro);
  return sums->value();
}

/// Two sequences of 3 and 2 tokens, whose places 0, 1 and 3 count.
MicroBatch two_texts() {
  return MicroBatch({{"labels", token_ids({9, 1, 0, 9, 1})}, {kOffsets, token_ids({0, 3, 5})}});
}

/// Place 0 is right by 2, place 1 wrong by 1, place 3 undecided; the rest would be wrong by far.
at::Tensor outputs_of_two_texts() {
  at::Tensor logits = at::zeros({5, 10}, at::kDouble).sub(1e9);
  logits[0][1] = 2;
  logits[0][0] = 0;
  logits[1][0] = 0;
  logits[1][1] = 1;
  logits[3][1] = 0;
  logits[3][2] = 0;
  return logits;
}

TEST(TokenMetric, PerplexityIsTheExponentOfTheMeanOverCountedTargets) {
  const double sum = std::log1p(std::exp(-2.0)) + std::log1p(std::exp(1.0)) + std::log(2.0);
  EXPECT_NEAR(metric_value(metric::perplexity(), outputs_of_two_texts(), two_texts()), std::exp(sum / 3),
              1e-12);
}

TEST(TokenMetric, AccuracyCountsTheLargestOutput) {
  EXPECT_EQ(metric::token_accuracy().name, "accuracy");
  EXPECT_DOUBLE_EQ(metric_value(metric::token_accuracy(), outputs_of_two_texts(), two_texts()), 2.0 / 3);
  at::Tensor logits = outputs_of_two_texts();
  logits[0][1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_DOUBLE_EQ(metric_value(metric::token_accuracy(), logits, two_texts()), 1.0 / 3);
  EXPECT_TRUE(std::isnan(metric_value(metric::perplexity(), logits, two_texts())));
}

TEST(TokenMetric, RectanglesGiveTheSame) {
  at::Tensor logits = at::zeros({2, 3, 10}, at::kDouble);
  const at::Tensor flat = outputs_of_two_texts();
  logits[0].copy_(flat.slice(0, 0, 3));
  logits[1].slice(0, 0, 2).copy_(flat.slice(0, 3, 5));
  for (const Metric& metric : {metric::perplexity(), metric::token_accuracy()}) {
    EXPECT_EQ(metric_value(metric, logits, pad(two_texts())), metric_value(metric, flat, two_texts()));
  }
  const MicroBatch masked({{"labels", token_ids({9, 1, 0, 9, 1, 7}).view({2, 3})},
                           {"attention_mask", token_ids({1, 1, 1, 1, 1, 0}).view({2, 3})}});
  EXPECT_EQ(metric_value(metric::perplexity(), logits, masked),
            metric_value(metric::perplexity(), flat, two_texts()));
}

TEST(TokenMetric, WithoutACountedTargetThereIsNone) {
  const MicroBatch micro({{"labels", token_ids({1, 1})}, {kOffsets, token_ids({0, 1, 2})}});
  for (const Metric& metric : {metric::perplexity(), metric::token_accuracy()})
    EXPECT_TRUE(std::isnan(metric_value(metric, at::zeros({2, 3}), micro)));
}

TEST(TokenMetric, WhatDoesNotFitIsAnError) {
  EXPECT_ERROR(metric_value(metric::perplexity(), at::zeros({4, 3}), two_texts()), ArgumentError,
               "metric perplexity: output [4, 3] and target [5] do not fit; needed [tokens, C] and [tokens]");
  EXPECT_ERROR(metric_value(metric::token_accuracy(), at::zeros({2, 3}), pad(two_texts())), ArgumentError,
               "metric accuracy: output [2, 3] and target [2, 3] do not fit; needed [n, T, C] and [n, T]");
}

TEST(TokenMetric, SaysWhichWayIsBetter) {
  EXPECT_FALSE(metric::perplexity().higher_is_better);
  EXPECT_TRUE(metric::token_accuracy().higher_is_better);
}

/// Sequences of 1 to 8 tokens; every fourth label does not count.
class Texts : public Data {
 public:
  explicit Texts(int64_t count) {
    int64_t token = 3;
    for (int64_t i = 0; i < count; ++i) {
      texts_.emplace_back();
      for (int64_t length = (i * 5) % 8 + 1; length > 0; --length)
        texts_.back().push_back(token = (token * 7 + 5) % 11);
    }
  }
  int64_t size() const override { return static_cast<int64_t>(texts_.size()); }
  NamedTensors gather(std::span<const int64_t> ids) const override {
    std::vector<int64_t> tokens;
    std::vector<int64_t> labels;
    std::vector<int64_t> offsets = {0};
    for (const int64_t id : ids) {
      for (const int64_t token : texts_[static_cast<size_t>(id)]) {
        tokens.push_back(token);
        labels.push_back(token % 4 == 3 ? kIgnoredLabel : token);
      }
      offsets.push_back(static_cast<int64_t>(tokens.size()));
    }
    return {{"input_ids", token_ids(tokens)}, {"labels", token_ids(labels)}, {kOffsets, token_ids(offsets)}};
  }

 private:
  std::vector<std::vector<int64_t>> texts_;
};

/// Embedding, a layer and a head for either form of a batch, in float64.
Model text_model(const std::vector<at::Tensor>& weights, bool takes_offsets) {
  Model model;
  model.takes_offsets = takes_offsets;
  model.forward = [weights](const MicroBatch& micro) {
    EXPECT_EQ(current_context(), nullptr);
    return Outputs(
        at::linear(at::linear(at::embedding(weights[0], micro["input_ids"]), weights[1]).tanh(), weights[2]));
  };
  model.parameters = [weights] {
    return std::vector<NamedTensor>{{"embedding", weights[0]}, {"layer", weights[1]}, {"head", weights[2]}};
  };
  return model;
}

std::vector<at::Tensor> text_weights() {
  std::vector<at::Tensor> weights;
  uint64_t salt = 0;
  for (const auto& [rows, columns] : {std::pair(11, 5), std::pair(5, 5), std::pair(11, 5)}) {
    at::Tensor weight = at::zeros({rows, columns}, at::kDouble);
    double* const values = weight.mutable_data_ptr<double>();
    for (int64_t i = 0; i < weight.numel(); ++i) values[i] = std::sin(static_cast<double>(++salt) * 12.9898);
    weights.push_back(weight.requires_grad_());
  }
  return weights;
}

TEST(EvaluateTokens, NeitherBatchSizeNorFormChangesTheNumbers) {
  const Texts data(17);
  const std::vector<at::Tensor> weights = text_weights();
  const Metric metrics[] = {metric::perplexity(), metric::token_accuracy()};
  // The loss has smoothing, perplexity has none.
  const Loss loss = next_token_loss(0.1);
  const EvalResult whole = evaluate(text_model(weights, true), loss, metrics, data, {.batch_size = 100});
  const EvalResult plain = evaluate(text_model(weights, true), next_token_loss(), {}, data);
  EXPECT_GT(whole.weight, 30);
  EXPECT_NEAR(whole.metrics.at(0).second, std::exp(plain.loss), 1e-12 * std::exp(plain.loss));
  EXPECT_GT(std::abs(whole.loss - plain.loss), 1e-3);
  for (const bool takes_offsets : {true, false}) {
    const Model model = text_model(weights, takes_offsets);
    for (const int64_t batch_size : {1, 3, 17}) {
      const EvalResult parts = evaluate(model, loss, metrics, data, {.batch_size = batch_size});
      // Some 50 float64 additions in another order.
      EXPECT_NEAR(parts.loss, whole.loss, 1e-12);
      EXPECT_NEAR(parts.metrics.at(0).second, whole.metrics.at(0).second, 1e-12 * whole.metrics.at(0).second);
      EXPECT_EQ(parts.metrics.at(1), whole.metrics.at(1));
      EXPECT_EQ(parts.weight, whole.weight);
    }
  }
}

/// One window of three micro-steps, with or without an evaluation after each.
std::vector<at::Tensor> trained(bool with_evaluation) {
  const Texts data(9);
  const std::vector<at::Tensor> weights = text_weights();
  // A micro-step has a context, an evaluation has none.
  Model model = text_model(weights, true);
  Model in_window = model;
  in_window.forward = [weights](const MicroBatch& micro) {
    EXPECT_NE(current_context(), nullptr);
    return Outputs(
        at::linear(at::linear(at::embedding(weights[0], micro["input_ids"]), weights[1]).tanh(), weights[2]));
  };
  GradientBuffer gradients(model);
  Updater updater(gradients, AdamW{.lr = 1e-2});
  Window window(gradients, model);
  const Metric metrics[] = {metric::perplexity(), metric::token_accuracy()};
  for (const std::vector<int64_t>& ids : {std::vector<int64_t>{0, 1, 2}, {3, 4}, {5, 6, 7, 8}}) {
    const MicroBatch micro(data.gather(ids), ids);
    window.add(run_micro_step(in_window, next_token_loss(), micro, {.sample_ids = micro.ids()}));
    if (with_evaluation) evaluate(model, next_token_loss(), metrics, data, {.batch_size = 2});
  }
  updater.apply(window);
  return weights;
}

TEST(EvaluateTokens, BetweenMicroStepsItChangesNoBit) {
  const std::vector<at::Tensor> with = trained(true);
  const std::vector<at::Tensor> without = trained(false);
  const std::vector<at::Tensor> start = text_weights();
  for (size_t i = 0; i < with.size(); ++i) {
    EXPECT_TRUE(with[i].equal(without[i]));
    EXPECT_FALSE(with[i].equal(start[i]));
  }
}

}  // namespace
}  // namespace accrue
