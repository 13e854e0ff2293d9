// SPDX-License-Identifier: Apache-2.0
// Runs every row of bad_calls.h: the statements here are the row's text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "accrue/base/units.h"
#include "accrue/batch/batcher.h"
#include "accrue/checkpoint/checkpoint.h"
#include "accrue/data/load.h"
#include "accrue/data/tensor_data.h"
#include "accrue/data/tensor_file.h"
#include "accrue/evaluate/evaluate.h"
#include "accrue/microstep/losses.h"
#include "accrue/microstep/slice.h"
#include "accrue/train/reference_steps.h"
#include "accrue/train/stream_step.h"
#include "accrue/verify/verify.h"
#include "models/linear.h"
#include "tests/calls/bad_calls.h"
#include "tests/support/models.h"

namespace accrue::test {
namespace {

std::string without_spaces(std::string_view text) {
  std::string kept;
  for (const char letter : text) {
    if (letter != ' ') kept += letter;
  }
  return kept;
}

/// What the calls work on; docs/errors.md says the same in words.
class Calls : public testing::Test {
 protected:
  using Parameters = std::vector<NamedTensor>;

  at::Tensor sum() const { return weight.sum(); }
  LossTerms terms() const { return loss.terms(model.forward(batch), batch); }

  template <typename Call>
  void expect_row(const std::string& name, std::string_view code, const Call& call) {
    const auto row = std::find_if(std::begin(kBadCalls), std::end(kBadCalls),
                                  [&](const BadCall& candidate) { return candidate.id == "calls." + name; });
    ASSERT_NE(row, std::end(kBadCalls)) << "the table has no such row";
    EXPECT_EQ(without_spaces(row->call), without_spaces(code)) << "the table shows another call";
    try {
      call();
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(kind_name(error.kind()), row->kind);
      EXPECT_EQ(std::string_view(error.what()), row->text);
    }
  }

  at::Tensor x = at::zeros({8, 6});
  at::Tensor y = at::zeros({8}, at::kLong);
  NamedTensors fields = {{"x", x}, {"y", y}};
  Batch batch = Batch(fields);
  std::shared_ptr<TensorData> data = std::make_shared<TensorData>(fields);
  SmallModel small = mlp(3);
  Model model = small.model();
  at::Tensor weight = small[0];
  Model other_model = models::make_linear(6, 3);
  Loss loss = cross_entropy_loss();
  GradientBuffer gradients = GradientBuffer(model);
  Updater updater = Updater(gradients, Sgd{.lr = 0.1});
};

// The code of each call is compared with the table's text.
#define CALL(name, ...)                                    \
  TEST_F(Calls, name) {                                    \
    expect_row(#name, #__VA_ARGS__, [&] { __VA_ARGS__; }); \
  }

// clang-format off
// Cutting a batch.
CALL(k_zero, slice_micro_batch(fields, 0, 0))
CALL(k_negative, slice_micro_batch(fields, -1, 0))
CALL(k_overflow, slice_micro_batch(fields, 18446744073709551615u, 0))
CALL(index_too_large, slice_micro_batch(fields, 4, 4))
CALL(index_negative, slice_micro_batch(fields, 4, -1))
CALL(unequal_rows, slice_micro_batch({{"x", at::zeros({8, 6})}, {"y", at::zeros({7})}}, 4, 0))
CALL(indivisible, slice_micro_batch(fields, 3, 0))
CALL(no_field, slice_micro_batch({}, 4, 0))
CALL(scalar_field, slice_micro_batch({{"x", at::zeros({})}}, 1, 0))
CALL(no_rows, slice_micro_batch({{"x", at::zeros({0, 6})}}, 1, 0))
CALL(field_twice, NamedTensors({{"x", x}, {"x", y}}))
CALL(field_unknown, batch["z"])
CALL(ids_too_few, Batch(fields, {1, 2}))
CALL(rows_outside, batch.rows(6, 4))
CALL(plan_batch_zero, plan(0, {.micro_batch = 4}))
CALL(plan_nothing, plan(32, {}))
CALL(plan_micro_batch_negative, plan(32, {.micro_batch = -4}))
CALL(plan_k_indivisible, plan(32, {.num_micro_steps = 5}))
CALL(plan_micro_batch_indivisible, plan(32, {.micro_batch = 5}))
CALL(plan_k_above_batch, plan(32, {.num_micro_steps = 33}))
CALL(plan_disagrees, plan(32, {.micro_batch = 8, .num_micro_steps = 2}))
CALL(plan_no_ranks, plan(32, {.micro_batch = 8, .ranks = 0}))
CALL(plan_overflow, plan(9223372036854775807, {.micro_batch = 1, .ranks = 2}))
CALL(plan_too_many, plan(9223372036854775807, {.micro_batch = 1}))
CALL(plan_of_other_batch, split(batch, plan(16, {.micro_batch = 4})))

// Gradient buffer.
CALL(buffer_of_nothing, GradientBuffer(Parameters{}))
CALL(buffer_of_integers, GradientBuffer(Parameters{{"ids", at::zeros({2}, at::kLong)}}))
CALL(buffer_of_complex, GradientBuffer(Parameters{{"w", at::zeros({2}, at::kComplexFloat).requires_grad_()}}))
CALL(buffer_not_dense, GradientBuffer(Parameters{{"w", at::zeros({1, 2}).expand({3, 2}).requires_grad_()}}))
CALL(buffer_not_leaf, GradientBuffer(Parameters{{"w", weight * 2}}))
CALL(buffer_second, GradientBuffer second(model))
CALL(buffer_name, gradients["hidden.wieght"])
CALL(buffer_zero_grad, weight.mutable_grad() = at::Tensor(); Window window(gradients))
CALL(buffer_replaced, weight.mutable_grad() = at::zeros({8, 6}); Window window(gradients))

// Windows.
CALL(window_k_zero, Window window(gradients, {.num_micro_steps = 0}))
CALL(window_weight_negative, Window window(gradients, {.term_weights = {-1.0}}))
CALL(window_second, Window first(gradients); Window second(gradients))
CALL(window_other_model, Window window(gradients, other_model))
CALL(window_add_to_whole, Window window(gradients, {.num_micro_steps = 1}); window.add(terms()); window.add(terms()))
CALL(window_close_twice, Window window(gradients); window.add(terms()); window.close(); window.close())
CALL(window_add_to_applied, Window window(gradients); window.add(terms()); updater.apply(window); window.add(terms()))
CALL(window_computed, Window window(gradients, {.loss_scale = 2}); window.begin_computed())
CALL(window_apply_empty, Window window(gradients); updater.apply(window))
CALL(window_apply_short, Window window(gradients, {.num_micro_steps = 2}); window.add(terms()); updater.apply(window))
CALL(window_apply_twice, Window window(gradients); window.add(terms()); updater.apply(window); updater.apply(window))
CALL(window_other_buffer, GradientBuffer others(other_model); Window window(others); updater.apply(window))
CALL(window_touched, Window window(gradients); window.add(terms()); gradients["out.bias"].add_(1); window.add(terms()))
CALL(window_parameter_changed, Window window(gradients); window.add(terms()); weight.detach().add_(1); updater.apply(window))
CALL(window_no_graph, Window window(gradients); window.add({{.sum = at::zeros({}), .weight = 8}}))
CALL(window_terms_changed, Window window(gradients); window.add(terms()); window.add({{.name = "other", .sum = sum(), .weight = 8}}))
CALL(window_weights_undeclared, Window window(gradients); window.add({{.name = "a", .sum = sum(), .weight = 8}, {.name = "b", .sum = sum(), .weight = 8}}))
CALL(window_weights_count, Window window(gradients, {.term_weights = {8.0, 8.0}}); window.add(terms()))
CALL(window_weights_untrue, Window window(gradients, {.term_weights = {9.0}}); window.add(terms()); window.close())
CALL(window_gradients_count, Window window(gradients); window.add_gradients({}, sum(), 8))
CALL(window_gradient_shape, Window window(gradients); window.add_gradients(std::vector<at::Tensor>(4, at::zeros({2})), sum(), 8))
CALL(value_without_graph, value_and_grad(at::zeros({}), gradients))

// Losses.
CALL(loss_shapes, loss::mse(at::zeros({8, 1}), at::zeros({8})))
CALL(loss_type, loss::l1(at::zeros({8}, at::kLong), at::zeros({8})))
CALL(huber_delta, loss::huber(at::zeros({8}), at::zeros({8}), 0))
CALL(no_probability, loss::binary_cross_entropy(at::zeros({2}), at::full({2}, 2.0)))
CALL(class_shapes, loss::cross_entropy(at::zeros({8, 3}), at::zeros({8, 1}, at::kLong)))
CALL(class_type, loss::cross_entropy(at::zeros({8, 3}), at::zeros({8})))
CALL(class_out_of_range, loss::cross_entropy(at::zeros({2, 3}), at::full({2}, 3, at::kLong)))
CALL(class_weights_shape, loss::cross_entropy(at::zeros({8, 3}), y, {.class_weights = at::ones({2})}))
CALL(class_weight_negative, loss::cross_entropy(at::zeros({8, 3}), y, {.class_weights = at::full({3}, -1.0)}))
CALL(label_smoothing, loss::cross_entropy(at::zeros({8, 3}), y, {.label_smoothing = 1}))
CALL(token_shapes, loss::token_cross_entropy(at::zeros({2, 5, 11}), at::zeros({2, 4}, at::kLong)))
CALL(mean_of_many, from_mean(at::zeros({8}), 8))
CALL(mean_of_negative, from_mean(sum(), -1))
CALL(no_terms, Window window(gradients); window.add({}))
CALL(sum_of_many, Window window(gradients); window.add({{.sum = at::zeros({8}), .weight = 8}}))
CALL(weight_not_finite, Window window(gradients); window.add({{.sum = sum(), .weight = NAN}}))
CALL(term_twice, Window window(gradients); window.add({{.sum = sum(), .weight = 8}, {.sum = sum(), .weight = 8}}))

// Updates in one call.
CALL(split_neither, SplitStep(model, loss, updater, {}))
CALL(split_both, SplitStep(model, loss, updater, {.micro_batch = 4, .num_micro_steps = 2}))
CALL(split_indivisible, SplitStep step(model, loss, updater, {.num_micro_steps = 3}); step(batch))
CALL(split_other_model, SplitStep(other_model, loss, updater, {.micro_batch = 4}))
CALL(split_not_finite, SplitStep step(model, loss, updater, {.micro_batch = 4}); step(Batch({{"x", x / 0}, {"y", y}})))
CALL(stream_without_k, StreamStep(model, loss, updater, {}))
CALL(stream_short_tail, StreamStep step(model, loss, updater, {.num_micro_steps = 2, .tail = Tail::error}); step.push(batch); step.finish())
CALL(full_no_field, train_step_full_batch(model, loss, updater, {}))
CALL(accumulation_k_zero, train_step_with_accumulation(model, loss, updater, fields, 0))
CALL(accumulation_indivisible, train_step_with_accumulation(model, loss, updater, fields, 3))
CALL(accumulation_short_y, train_step_with_accumulation(model, loss, updater, {{"x", x}, {"y", y.slice(0, 0, 7)}}, 4))

// Optimizers.
CALL(lr_negative, Updater(gradients, Sgd{.lr = -1}))
CALL(nesterov_alone, Updater(gradients, Sgd{.nesterov = true}))
CALL(betas_and_eps, Updater(gradients, AdamW{.beta1 = 1, .eps = 0}))
CALL(both_clips, Updater(gradients, Sgd{}, {.clip_norm = 1.0, .clip_value = 1.0}))
CALL(clip_zero, Updater(gradients, Sgd{}, {.clip_norm = 0.0}))
CALL(group_of_nothing, Updater(gradients, Sgd{}, {.groups = {{.match = {"*.wieght"}}}}))
CALL(group_without_pattern, Updater(gradients, Sgd{}, {.groups = {{.lr = 0.1}}}))
CALL(group_overlap, Updater(gradients, Sgd{}, {.groups = {{.match = {"*.bias"}}, {.match = {"out.*"}}}}))
CALL(warmup_negative, Updater(gradients, Sgd{}, {.schedule = {.warmup_updates = -1}}))
CALL(schedule_without_end, resolve({.kind = ScheduleKind::cosine}))
CALL(torch_optimizer_null, Updater(gradients, std::shared_ptr<torch::optim::Optimizer>()))
CALL(state_counts, updater.load_state({{}, 2, 1}))
CALL(state_left_over, updater.load_state({{{"out.bias.momentum", at::zeros({3})}}, 0, 0}))

// Data, evaluation and files.
CALL(sampler_no_samples, Sampler(0, {.size = 4}, 1))
CALL(sampler_size_zero, Sampler(10, {.size = 0}, 1))
CALL(sampler_leftover, Sampler(10, {.size = 4, .last = LastBatch::error}, 1))
CALL(sampler_drops_all, Sampler(10, {.size = 16, .last = LastBatch::drop}, 1))
CALL(sampler_position, Sampler(10, {.size = 4}, 1).restore({.offset = 99}))
CALL(batcher_sizes, Batcher(data, Sampler(10, {.size = 4}, 1)))
CALL(data_no_field, TensorData({}))
CALL(data_id, data->gather(std::vector<int64_t>{8}))
CALL(data_file, DataOptions options; options.train = "/nowhere.csv"; load_data(options, true, 1))
CALL(evaluate_batch_size, evaluate(model, loss, {}, *data, {.batch_size = 0}))
CALL(verify_nothing, verify(model, loss, batch, {.gradients = &gradients}))
CALL(verify_held, verify(model, loss, batch, {.micro_batch = 4}))
CALL(verify_memory, verify(model, loss, batch, {.micro_batch = 4, .memory_limit_bytes = 1, .gradients = &gradients}))
CALL(weights_misfit, models::load_weights(other_model, {{"weight", at::zeros({3, 4})}, {"bais", at::zeros({3})}}, "w.safetensors"))
CALL(weights_type, save_tensors("w.safetensors", {{"w", at::zeros({2}, at::kComplexDouble)}}))
CALL(checkpoint_missing, find_checkpoint("nowhere"))
CALL(checkpoint_keep, save_checkpoint("run", {}, 0))
CALL(size_ambiguous, parse_size("2G", "--memory"))
CALL(size_zero, parse_size("0", "--memory"))
CALL(size_above_whole, parse_size("120%", "--memory", 1000))

// clang-format on

TEST(CallsTable, HasATestForEveryRowAndNoNameTwice) {
  std::set<std::string> tests;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    if (std::string_view(suite.name()) != "Calls") continue;
    for (int t = 0; t < suite.total_test_count(); ++t)
      tests.insert(std::string("calls.") + suite.GetTestInfo(t)->name());
  }
  std::set<std::string> rows;
  for (const BadCall& row : kBadCalls) EXPECT_TRUE(rows.insert(std::string(row.id)).second) << row.id;
  EXPECT_EQ(rows, tests);
}

}  // namespace
}  // namespace accrue::test
