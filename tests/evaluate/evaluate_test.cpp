// SPDX-License-Identifier: Apache-2.0
#include "accrue/evaluate/evaluate.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>

#include "accrue/memory/allocator.h"
#include "accrue/memory/pressure.h"
#include "accrue/memory/resident.h"
#include "accrue/microstep/losses.h"
#include "accrue/microstep/module_adapter.h"
#include "accrue/update/updater.h"
#include "tests/support/errors.h"

namespace accrue {
namespace {

class Rows : public Data {
 public:
  Rows(at::Tensor x, at::Tensor y) : x_(std::move(x)), y_(std::move(y)) {}
  int64_t size() const override { return x_.size(0); }
  NamedTensors gather(std::span<const int64_t> ids) const override {
    const at::Tensor rows = at::tensor(at::ArrayRef<int64_t>(ids.data(), ids.size()), at::kLong);
    return {{"x", x_.index_select(0, rows)}, {"y", y_.index_select(0, rows)}};
  }

 private:
  at::Tensor x_;
  at::Tensor y_;
};

at::Generator generator() {
  return at::detail::getDefaultCPUGenerator();
}

void seed(uint64_t number) {
  generator().set_current_seed(number);
}

/// Dropout, running statistics and one frozen normalisation: everything that evaluation could disturb.
torch::nn::Sequential busy_net() {
  torch::nn::Sequential net(torch::nn::Linear(5, 8), torch::nn::BatchNorm1d(8), torch::nn::Dropout(0.5),
                            torch::nn::BatchNorm1d(8), torch::nn::Linear(8, 3));
  net->children().at(3)->eval();
  return net;
}

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copied;
  for (const at::Tensor& tensor : tensors) copied.push_back(tensor.detach().clone());
  return copied;
}

bool same_bits(const std::vector<at::Tensor>& left, const std::vector<at::Tensor>& right) {
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    if (!left[i].equal(right[i])) return false;
  }
  return true;
}

std::vector<bool> modes(const torch::nn::Sequential& net) {
  std::vector<bool> list;
  for (const auto& module : net->modules()) list.push_back(module->is_training());
  return list;
}

TEST(Evaluate, IsTheMeanOverTheWholeSet) {
  seed(1);
  const Rows data(at::randn({23, 5}), at::randn({23, 1}));
  torch::nn::Linear net(5, 1);
  const NamedTensors all = data.gather(
      std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22});
  const at::Tensor error = net->forward(all["x"]).detach().to(at::kDouble).sub(all["y"]);
  const Metric metrics[] = {metric::mae(), metric::rmse()};
  const EvalResult result = evaluate(adapt(net), mse_loss(), metrics, data, {.batch_size = 5});
  // fp32 outputs of other batch sizes differ in their last bits (6e-8 of values near 1).
  EXPECT_NEAR(result.loss, error.square().mean().item<double>(), 1e-6);
  ASSERT_EQ(result.metrics.size(), 2u);
  EXPECT_EQ(result.metrics[0].first, "mae");
  EXPECT_NEAR(result.metrics[0].second, error.abs().mean().item<double>(), 1e-6);
  EXPECT_NEAR(result.metrics[1].second, std::sqrt(result.loss), 1e-12);
  EXPECT_EQ(result.weight, 23);
  EXPECT_EQ(result.samples, 23);
  ASSERT_EQ(result.terms.size(), 1u);
  EXPECT_EQ(result.terms[0].weight, 23);
  EXPECT_GE(result.seconds, 0);
}

TEST(Evaluate, DoesNotDependOnTheBatchSize) {
  seed(2);
  const at::Tensor y = at::randint(0, 3, {50}, at::kLong);
  y.slice(0, 0, 50, 7).fill_(-100);
  const Rows data(at::randn({50, 5}).to(at::kDouble).mul(1e3), y);
  torch::nn::Linear net(5, 3);
  net->to(at::kDouble);
  const Model model = adapt(net);
  const Metric metrics[] = {metric::accuracy()};
  const EvalResult whole = evaluate(model, cross_entropy_loss(), metrics, data, {.batch_size = 1000});
  for (const int64_t batch_size : {1, 7, 50}) {
    const EvalResult parts = evaluate(model, cross_entropy_loss(), metrics, data, {.batch_size = batch_size});
    // 50 float64 additions in another order.
    EXPECT_NEAR(parts.loss, whole.loss, 1e-12 * std::abs(whole.loss)) << batch_size;
    EXPECT_EQ(parts.metrics, whole.metrics) << batch_size;
    EXPECT_EQ(parts.weight, 42);
  }
}

TEST(Evaluate, SumsInFloat64WhateverTheModelGives) {
  // 2^24 + 1 has no fp32 value: an fp32 sum of this batch would lose the ones.
  const Rows data(at::tensor({16777216.0f, 1.0f, 1.0f, 1.0f}).reshape({4, 1}), at::zeros({4, 1}));
  Model model;
  model.forward = [](const MicroBatch& micro) { return Outputs(micro["x"]); };
  model.parameters = [] { return std::vector<NamedTensor>{}; };
  EXPECT_EQ(evaluate(model, l1_loss(), {}, data).terms.at(0).sum, 16777219.0);
  EXPECT_NE(evaluate(model, l1_loss(), {}, data, {.float64_outputs = false}).terms.at(0).sum, 16777219.0);
}

TEST(Evaluate, RunsInEvaluationModeWithoutGradientAndPutsEverythingBack) {
  seed(3);
  torch::nn::Sequential net = busy_net();
  const Rows data(at::randn({20, 5}), at::randint(0, 3, {20}, at::kLong));
  bool trained_inside = false;
  bool grad_inside = false;
  const Model model = adapt(net, [&](torch::nn::Sequential& self, const MicroBatch& micro) {
    trained_inside = trained_inside || self->children().at(2)->is_training();
    const at::Tensor output = self->forward(micro["x"]);
    grad_inside = grad_inside || output.requires_grad();
    return output;
  });
  const std::vector<at::Tensor> parameters = copies(net->parameters());
  const std::vector<at::Tensor> statistics = copies(net->buffers());
  const std::vector<bool> before = modes(net);
  const at::Tensor state = generator().get_state();

  evaluate(model, cross_entropy_loss(), {}, data, {.batch_size = 7});

  EXPECT_FALSE(trained_inside);
  EXPECT_FALSE(grad_inside);
  EXPECT_EQ(modes(net), before);
  EXPECT_EQ(std::count(before.begin(), before.end(), false), 1);
  EXPECT_TRUE(generator().get_state().equal(state));
  EXPECT_TRUE(same_bits(net->parameters(), parameters));
  EXPECT_TRUE(same_bits(net->buffers(), statistics));
  for (const at::Tensor& parameter : net->parameters()) EXPECT_FALSE(parameter.grad().defined());
}

TEST(Evaluate, PutsEverythingBackAfterAnExceptionToo) {
  torch::nn::Sequential net = busy_net();
  const Rows data(at::randn({20, 5}), at::randint(0, 3, {20}, at::kLong));
  const Model model = adapt(net, [](torch::nn::Sequential&, const MicroBatch&) -> at::Tensor {
    static_cast<void>(at::rand({1}));
    throw std::runtime_error("of the model");
  });
  const std::vector<bool> before = modes(net);
  const at::Tensor state = generator().get_state();
  EXPECT_THROW(evaluate(model, cross_entropy_loss(), {}, data), std::runtime_error);
  EXPECT_EQ(modes(net), before);
  EXPECT_TRUE(generator().get_state().equal(state));
}

TEST(Evaluate, UsesRandomNumbersWithoutTakingThem) {
  Model model;
  bool training = true;
  model.forward = [](const MicroBatch& micro) { return Outputs(micro["x"].add(at::rand({1}))); };
  model.parameters = [] { return std::vector<NamedTensor>{}; };
  model.train = [&](bool on) { training = on; };
  model.is_training = [&] { return training; };
  const Rows data(at::zeros({4, 1}), at::zeros({4, 1}));
  seed(4);
  const at::Tensor expected = at::rand({3});
  seed(4);
  evaluate(model, mse_loss(), {}, data, {.batch_size = 1});
  EXPECT_TRUE(training);
  EXPECT_TRUE(at::rand({3}).equal(expected));
}

/// Two windows of three micro-steps, with or without evaluations after each of them; parameters and
/// statistics.
std::vector<at::Tensor> train(bool with_evaluation) {
  seed(5);
  torch::nn::Sequential net = busy_net();
  const Model model = adapt(net);
  const at::Tensor x = at::randn({18, 5});
  const at::Tensor y = at::randint(0, 3, {18}, at::kLong);
  const Rows valid(at::randn({11, 5}), at::randint(0, 3, {11}, at::kLong));
  const Metric metrics[] = {metric::accuracy()};
  GradientBuffer gradients(model);
  Updater updater(gradients, AdamW{.lr = 1e-2});
  const Loss loss = cross_entropy_loss();
  for (int window_number = 0; window_number < 2; ++window_number) {
    Window window(gradients, model);
    for (int64_t first = 0; first < 18; first += 6) {
      const MicroBatch micro({{"x", x.slice(0, first, first + 6)}, {"y", y.slice(0, first, first + 6)}});
      window.add(loss.terms(model.forward(micro), micro));
      if (with_evaluation) evaluate(model, loss, metrics, valid, {.batch_size = 4});
    }
    updater.apply(window);
  }
  std::vector<at::Tensor> all = copies(net->parameters());
  for (const at::Tensor& buffer : copies(net->buffers())) all.push_back(buffer);
  return all;
}

TEST(Evaluate, BetweenAnyTwoMicroStepsChangesNoBit) {
  EXPECT_TRUE(same_bits(train(/*with_evaluation=*/true), train(/*with_evaluation=*/false)));
}

TEST(Evaluate, NanIsAResult) {
  Model model;
  model.forward = [](const MicroBatch& micro) { return Outputs(micro["x"]); };
  model.parameters = [] { return std::vector<NamedTensor>{}; };
  at::Tensor x = at::zeros({4, 2});
  x[2][0] = std::numeric_limits<float>::quiet_NaN();
  const Rows data(x, at::zeros({4}, at::kLong));
  const Metric metrics[] = {metric::accuracy()};
  const EvalResult result = evaluate(model, cross_entropy_loss(), metrics, data, {.batch_size = 3});
  EXPECT_TRUE(std::isnan(result.loss));
  EXPECT_EQ(result.metrics.at(0).second, 0.75);
}

TEST(Evaluate, ATermWithoutWeightIsLeftOutAsInTraining) {
  Model model;
  model.forward = [](const MicroBatch& micro) { return Outputs(micro["x"]); };
  model.parameters = [] { return std::vector<NamedTensor>{}; };
  const Loss loss{.name = "masked mean", .terms = [](const Outputs& outputs, const MicroBatch& micro) {
                    const at::Tensor counted = outputs.tensor().masked_select(micro["y"].gt(0));
                    return LossTerms{from_mean(counted.mean(), static_cast<double>(counted.numel()))};
                  }};
  const Rows data(at::tensor({1.0, 2.0, 3.0, 4.0}), at::tensor({1, 1, 0, 0}, at::kLong));
  EXPECT_EQ(evaluate(model, loss, {}, data, {.batch_size = 2}).loss, 1.5);
}

/// Counts rows; more than `most` of them are refused memory, the sums half changed.
class RefusedRows : public MetricSums {
 public:
  explicit RefusedRows(int64_t most) : most_(most) {}
  void add(const Outputs& outputs, const MicroBatch& /*micro*/) override {
    rows_ += outputs.tensor().size(0);
    if (outputs.tensor().size(0) > most_) TORCH_CHECK_WITH(OutOfMemoryError, false, "no memory");
  }
  std::unique_ptr<MetricSums> clone() const override { return std::make_unique<RefusedRows>(*this); }
  double value() const override { return static_cast<double>(rows_); }

 private:
  int64_t most_;
  int64_t rows_ = 0;
};

TEST(Evaluate, WhatAMetricIsRefusedCountsOnce) {
  Model model;
  model.forward = [](const MicroBatch& micro) { return Outputs(micro["x"]); };
  model.parameters = [] { return std::vector<NamedTensor>{}; };
  const Rows data(at::randint(0, 9, {11, 2}).to(at::kFloat), at::randint(0, 9, {11, 2}).to(at::kFloat));
  const auto run = [&](int64_t most, int64_t batch_size) {
    const Metric metrics[] = {metric::mae(), metric::r2(), {.name = "rows", .open = [most] {
                                                              return std::make_unique<RefusedRows>(most);
                                                            }}};
    return evaluate(model, mse_loss(), metrics, data, {.batch_size = batch_size});
  };
  const EvalResult plain = run(/*most=*/2, /*batch_size=*/2);
  const EvalResult refused = run(/*most=*/2, /*batch_size=*/8);  // 8, 4, then 2 rows
  EXPECT_EQ(refused.loss, plain.loss);
  EXPECT_EQ(refused.weight, plain.weight);
  EXPECT_EQ(refused.metrics, plain.metrics);
  EXPECT_EQ(refused.metrics.back().second, 11);
  EXPECT_THROW(run(/*most=*/0, /*batch_size=*/8), c10::OutOfMemoryError);
}

TEST(Evaluate, KeepsWithinTheBudgetOnceABatch) {
  if (!memory::resident_bytes()) GTEST_SKIP() << "this system does not tell";
  Model model;
  model.forward = [](const MicroBatch& micro) { return Outputs(micro["x"]); };
  model.parameters = [] { return std::vector<NamedTensor>{}; };
  const Rows data(at::zeros({6, 1}), at::zeros({6, 1}));
  int calls = 0;
  const memory::PressureHook hook([&calls] { ++calls; });
  memory::set_budget(1);
  evaluate(model, mse_loss(), {}, data, {.batch_size = 2});
  memory::set_budget({});
  EXPECT_EQ(calls, 3);
  evaluate(model, mse_loss(), {}, data, {.batch_size = 2});
  EXPECT_EQ(calls, 3);
}

TEST(Evaluate, RefusesWhatGivesNoResult) {
  torch::nn::Linear net(5, 1);
  const Model model = adapt(net);
  const Rows data(at::zeros({4, 5}), at::zeros({4, 1}));
  EXPECT_ERROR(evaluate(model, mse_loss(), {}, data, {.batch_size = 0}), ArgumentError,
               "batch_size of the evaluation is 0, needed at least 1");
  EXPECT_ERROR(evaluate(model, mse_loss(), {}, Rows(at::zeros({0, 5}), at::zeros({0, 1}))), DataError,
               "the set to evaluate on has no samples, needed at least 1");
}

}  // namespace
}  // namespace accrue
