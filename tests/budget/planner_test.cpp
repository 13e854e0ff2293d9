// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "accrue/base/error.h"
#include "accrue/memory/allocator.h"
#include "accrue/microstep/slice.h"
#include "accrue/plan/by_size.h"
#include "accrue/plan/choice_file.h"
#include "accrue/train/plan_table.h"
#include "tests/budget/planning.h"
#include "tests/support/files.h"

namespace accrue {
namespace {

using test::by_measurement;
using test::Trained;
using test::Workload;
using testing::HasSubstr;

/// Sequences of 8 to 64 tokens, so that a batch has many shapes.
Workload ragged(int64_t samples = 48) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < samples; ++i) lengths.push_back(8 + (i * 37) % 57);
  Workload work = test::gpt_workload(at::kFloat, 0, lengths);
  work.model =
      models::make_gpt({.width = 64, .layers = 3, .heads = 4, .vocabulary = 512, .context = 64}, {.seed = 4});
  work.batch = test::sequences(lengths, 512);
  return work;
}

/// The measured bytes of groups that were not probed, beside what was foretold.
double worst_error(Planner& planner, const Workload& work, const std::vector<int64_t>& micro_batches,
                   bool sorts) {
  double worst = 0;
  for (const int64_t micro_batch : micro_batches) {
    const PlanOptions cut{.micro_batch = micro_batch, .remainder = Remainder::smaller};
    const std::vector<int64_t> sizes = work.batch.sizes();
    const Plan plan = sorts ? plan_by_size(sizes, cut) : accrue::plan(work.batch.size(), cut);
    const GroupSize size = group_sizes(plan, sizes, planner.layout())[0];
    const double foretold = planner.memory_model().predict(size);
    const std::optional<Probe> probe = planner.try_group(work.batch, plan, 0);
    const double measured = static_cast<double>(probe->peak + probe->start);
    worst = std::max(worst, std::abs((foretold + static_cast<double>(probe->start)) / measured - 1));
  }
  return worst;
}

TEST(Planner, ForetellsBytesOfSizesThatWereNotProbed) {
  const Workload mlp = test::mlp_workload(1024, 128);
  Trained mlp_trained(mlp);
  PlannerOptions options = by_measurement();
  options.seconds = 4;  // from 16 samples on a chain takes other bytes: those sizes must be reached
  Planner mlp_planner(mlp.model, mlp.loss, mlp_trained.updater, options);
  mlp_planner.prepare(mlp.batch);
  EXPECT_LT(worst_error(mlp_planner, mlp, {37, 150, 300, 700}, false), 0.05);

  const Workload gpt = ragged();
  Trained gpt_trained(gpt);
  Planner gpt_planner(gpt.model, gpt.loss, gpt_trained.updater, by_measurement(true));
  gpt_planner.prepare(gpt.batch);
  EXPECT_LT(worst_error(gpt_planner, gpt, {3, 7, 11, 19}, true), 0.05);
}

TEST(Planner, ChoosesASizeThatCoversEverySampleOnceAndStays) {
  const Workload work = ragged();
  Trained trained(work);
  const std::vector<at::Tensor> before = trained.everything();
  Planner planner(work.model, work.loss, trained.updater, by_measurement(true));
  planner.prepare(work.batch);
  EXPECT_FALSE(test::first_difference(trained.everything(), before).has_value())
      << "measuring changed something";
  const Plan plan = planner.plan(work.batch);
  check_plan(work.batch, plan);
  EXPECT_GT(planner.capacity(), 0);
  EXPECT_FALSE(planner.candidates().empty());
  for (const GroupSize& size : group_sizes(plan, work.batch.sizes(), Layout::end_to_end)) {
    EXPECT_TRUE(size.samples == 1 || size.total <= static_cast<double>(planner.capacity()));
  }
  // Later measurements refine what is foretold, not the plan.
  planner.observe({group_sizes(plan, work.batch.sizes(), Layout::end_to_end)[0], int64_t{1} << 20,
                   int64_t{1} << 10, 1.0});
  EXPECT_EQ(planner.plan(work.batch), plan);

  Planner resumed(work.model, work.loss, trained.updater, by_measurement(true));
  resumed.restore(planner.to_json());
  EXPECT_EQ(resumed.plan(work.batch), plan);
  EXPECT_EQ(resumed.to_json(), planner.to_json());
}

TEST(Planner, LedgerSetsWhatWasMeasuredBesideWhatWasForetold) {
  const Workload work = ragged();
  Trained trained(work);
  Planner planner(work.model, work.loss, trained.updater, by_measurement(true));
  planner.prepare(work.batch);
  const Plan plan = planner.plan(work.batch);
  EXPECT_EQ(planner.ledger_so_far(plan, work.batch).measured_activations, std::nullopt) << "nothing ran yet";
  SplitStep step(work.model, work.loss, trained.updater,
                 {.micro_batch = work.batch.size(),
                  .on_micro_step = [&](const MicroStepEvent& event) { planner.observe(event.cost); }});
  const memory::Ledger foretold = planner.ledger(plan, work.batch);
  step(work.batch, plan);
  const memory::Ledger ledger = planner.ledger_so_far(plan, work.batch);
  ASSERT_TRUE(ledger.measured_activations && ledger.measured_workspace);
  const auto error = [](int64_t measured, const std::optional<int64_t>& told) {
    return std::abs(static_cast<double>(measured) / static_cast<double>(told.value_or(0)) - 1);
  };
  EXPECT_LT(error(*ledger.measured_activations, foretold.activations), 0.05);
  EXPECT_LT(error(*ledger.measured_activations + *ledger.measured_workspace,
                  *foretold.activations + foretold.workspace.value_or(0)),
            0.05);
  EXPECT_GT(ledger.measured.value_or(0), 0);
  EXPECT_EQ(ledger.modules.size(), 6u) << "two embeddings, three blocks and the last norm";
  int64_t parameters = 0;
  for (const auto& module : ledger.modules) parameters += module.parameters;
  EXPECT_EQ(parameters, ledger.parameters);
  const auto is_backward = [](const auto& phase) { return phase.first == "backward"; };
  EXPECT_TRUE(std::any_of(ledger.phases.begin(), ledger.phases.end(), is_backward));
}

TEST(Planner, SharesTheActivationsOfAChainOutByWidth) {
  const Workload work = test::mlp_workload(64, 12);
  Trained trained(work);
  Planner planner(work.model, work.loss, trained.updater, {.micro_batch = 64});
  planner.prepare(work.batch);
  SplitStep step(work.model, work.loss, trained.updater,
                 {.micro_batch = 64,
                  .on_micro_step = [&](const MicroStepEvent& event) { planner.observe(event.cost); }});
  const Plan plan = planner.plan(work.batch.sizes());
  ASSERT_EQ(step(work.batch, plan).mode, "compiled");
  const memory::Ledger ledger = planner.ledger_so_far(plan, work.batch.sizes());
  ASSERT_GT(ledger.measured_activations.value_or(0), 0);
  ASSERT_EQ(ledger.modules.size(), 3u);
  const std::vector<int64_t> widths = {12, 12, 3};
  for (size_t i = 0; i < widths.size(); ++i) {
    EXPECT_EQ(ledger.modules[i].activations.value_or(0), *ledger.measured_activations * widths[i] / 27);
  }
}

TEST(Planner, AKeptChoiceIsTakenAndMeasuringAnewIsNot) {
  const std::filesystem::path folder = test::fresh_folder();
  const Workload work = test::mlp_workload(64, 32);
  Trained trained(work);
  PlannerOptions options = by_measurement();
  options.choice_file = folder / "plans.json";
  options.choice_key = "this model";
  Planner first(work.model, work.loss, trained.updater, options);
  first.prepare(work.batch);
  // A choice that measuring would hardly make tells where it came from.
  std::string kept = first.to_json();
  const std::string capacity = "\"capacity\":" + std::to_string(first.capacity());
  kept.replace(kept.find(capacity), capacity.size(), "\"capacity\":5");
  ASSERT_TRUE(keep_choice(options.choice_file, options.choice_key, kept));
  Planner second(work.model, work.loss, trained.updater, options);
  second.prepare(work.batch);
  EXPECT_EQ(second.capacity(), 5);
  options.measure_anew = true;
  Planner third(work.model, work.loss, trained.updater, options);
  third.prepare(work.batch);
  EXPECT_NE(third.capacity(), 5);
}

/// Puts another number for each second of a kept choice.
std::string with_seconds(const std::string& choice, double scale) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(choice);
  for (auto& point : json["seconds"]["points"]) point.back() = point.back().get<double>() * scale;
  return json.dump();
}

TEST(Planner, AKeptChoiceThatWasTimedBesideAnotherProgramIsMadeAnew) {
  const Workload work = test::mlp_workload(64, 32);
  Trained trained(work);
  PlannerOptions options = by_measurement();
  options.choice_file = std::filesystem::path(test::fresh_folder()) / "plans.json";
  options.choice_key = "this model";
  Planner first(work.model, work.loss, trained.updater, options);
  first.prepare(work.batch);
  std::string kept = first.to_json();
  const std::string capacity = "\"capacity\":" + std::to_string(first.capacity());
  kept.replace(kept.find(capacity), capacity.size(), "\"capacity\":5");
  for (const auto& [scale, taken] : {std::pair(0.1, true), std::pair(1e5, false)}) {
    ASSERT_TRUE(keep_choice(options.choice_file, options.choice_key, with_seconds(kept, scale)));
    Planner second(work.model, work.loss, trained.updater, options);
    second.prepare(work.batch);
    EXPECT_EQ(second.capacity() == 5, taken) << "seconds times " << scale;
  }
}

TEST(Planner, SizesThatWereDisturbedOnceAreNotTheEndOfTheSearch) {
  Workload work = test::mlp_workload(256, 32);
  // Another program takes the processor while groups of 2 and 4 are timed first.
  std::map<int64_t, int> calls;
  Loss disturbed = work.loss;
  disturbed.terms = [&](const Outputs& outputs, const MicroBatch& micro) {
    if ((micro.size() == 2 || micro.size() == 4) && ++calls[micro.size()] <= 3)
      std::this_thread::sleep_for(std::chrono::milliseconds(35));
    return work.loss.terms(outputs, micro);
  };
  disturbed.known.reset();
  Trained trained(work);
  PlannerOptions options = by_measurement();
  options.seconds = 4;
  Planner planner(work.model, disturbed, trained.updater, options);
  planner.prepare(work.batch);
  EXPECT_GT(planner.capacity(), 4);
}

TEST(Planner, ListsASizeThatThereWasNoTimeForOnce) {
  const Workload work = test::mlp_workload(64, 16);
  Trained trained(work);
  PlannerOptions options = by_measurement();
  options.seconds = 0;
  Planner planner(work.model, work.loss, trained.updater, options);
  planner.prepare(work.batch);
  std::vector<int64_t> capacities;
  for (const Candidate& candidate : planner.candidates()) {
    capacities.push_back(candidate.capacity);
    EXPECT_EQ(candidate.is_measured, candidate.capacity == 1);
  }
  EXPECT_THAT(capacities, testing::ElementsAre(1, 2, 4)) << "one that ran, and two doublings";
  EXPECT_EQ(planner.capacity(), 4);
}

TEST(Planner, SaysWhereTheRunContradictsWhatTheChoiceWasMadeBy) {
  const Workload work = test::mlp_workload(16384, 64);
  Trained trained(work);
  Planner planner(work.model, work.loss, trained.updater, by_measurement());
  planner.prepare(work.batch);
  const GroupSize size{16384, 16384, 16384};
  const double foretold = *planner.predict(size).seconds;
  ASSERT_GT(foretold, 1e-3) << "too short to be compared";
  const auto observe = [&](double times) {
    Planner copy = planner;
    for (int i = 0; i < 7; ++i) copy.observe({size, 0, 0, times * foretold});
    EXPECT_FALSE(copy.contradiction()) << "of too few micro-steps";
    copy.observe({size, 0, 0, times * foretold});
    return copy.contradiction();
  };
  EXPECT_FALSE(observe(0.8));
  EXPECT_FALSE(observe(1.3));
  EXPECT_NEAR(observe(0.4).value_or(0), 0.4, 1e-9);
  EXPECT_NEAR(observe(3).value_or(0), 3, 1e-9);
}

TEST(Planner, ARefusalMakesThePlansOfTheRunSmaller) {
  const Workload work = test::mlp_workload(64, 16);
  Trained trained(work);
  Planner planner(work.model, work.loss, trained.updater, {.micro_batch = 64});
  EXPECT_EQ(planner.plan(work.batch).num_micro_steps(), 1);
  planner.refused({.group = 0, .samples = 64, .size = {64, 64, 64}, .after = AfterRefusal::again});
  EXPECT_EQ(planner.plan(work.batch).num_micro_steps(), 1);
  planner.refused({.group = 0, .samples = 64, .size = {64, 64, 64}, .after = AfterRefusal::split});
  EXPECT_EQ(planner.plan(work.batch).num_micro_steps(), 2);
  EXPECT_EQ(planner.num_refusals(), 2);

  Planner measured(work.model, work.loss, trained.updater, by_measurement());
  measured.prepare(work.batch);
  const auto size = static_cast<double>(measured.capacity());
  measured.refused(
      {.group = 0, .samples = measured.capacity(), .size = {size, size, size}, .after = AfterRefusal::split});
  EXPECT_LE(measured.plan(work.batch).micro_batch(), static_cast<int64_t>(std::ceil(size / 2)));
}

TEST(PlanTable, SetsWholeBatchAndSplitsSideBySide) {
  const Workload work = test::mlp_workload(4096, 128);
  Trained trained(work);
  Planner planner(work.model, work.loss, trained.updater, by_measurement());
  planner.prepare(work.batch);
  const std::vector<PlanRow> rows = compare_plans(planner, work.batch);
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0].name, "whole batch");
  EXPECT_EQ(rows[2].num_micro_steps, 4);
  for (const PlanRow& row : rows) {
    EXPECT_TRUE(row.is_measured);
    EXPECT_EQ(row.gradients, rows[0].gradients);
    EXPECT_EQ(row.parameters_and_state, rows[0].parameters_and_state);
  }
  // Requirement: a micro-batch of B / 4 has a quarter of the activations, within what blocks are rounded to.
  EXPECT_NEAR(static_cast<double>(*rows[2].activations) / static_cast<double>(*rows[0].activations), 0.25,
              0.01);
  const std::string text = describe(rows);
  EXPECT_THAT(text, HasSubstr("num_micro_steps 8"));
  EXPECT_THAT(text, HasSubstr("The same in every row: gradients "));
}

TEST(PlanTable, SaysWhichOfItsColumnsAreSamplesAndWhichTokens) {
  const PlanRow pictures{.name = "chosen", .num_micro_steps = 4, .samples = 16, .tokens = 16};
  EXPECT_THAT(describe({pictures}), HasSubstr("micro-steps  samples  activations"));
  EXPECT_THAT(describe({pictures}), HasSubstr("Samples, activations and workspace are of"));
  const PlanRow sequences{.name = "chosen", .num_micro_steps = 4, .samples = 8, .tokens = 480};
  EXPECT_THAT(describe({sequences}), HasSubstr("micro-steps  samples   tokens  activations"));
  EXPECT_THAT(describe({sequences}), HasSubstr("          4        8      480 "));
  EXPECT_THAT(describe({sequences}), HasSubstr("Samples, tokens, activations and workspace are of"));
}

}  // namespace
}  // namespace accrue
