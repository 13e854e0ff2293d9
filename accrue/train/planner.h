// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "accrue/memory/ledger.h"
#include "accrue/plan/cost_model.h"
#include "accrue/plan/plan.h"
#include "accrue/train/probe.h"
#include "accrue/train/split_step.h"

namespace accrue {

struct PlannerOptions {
  int64_t micro_batch = 0;             ///< samples of a group; 0: chosen by measurement
  std::optional<int64_t> budget = {};  ///< bytes of the process; empty: the allocator's (memory::budget)
  int64_t guard = 0;                   ///< bytes of the budget that the allocator does not give out
  /// Bytes that the process had had before it read data, set by a program whose own start counts against its
  /// budget; 0: what was there before the planner is no part of what it foretells.
  int64_t bare = 0;
  Grouping grouping = Grouping::as_given;
  Recompute recompute = Recompute::automatic;
  ProbeOptions probe = {};
  int64_t batches_ahead = 0;  ///< gathered while one is trained on
  double seconds = 4;  ///< that trying sizes may take, about; where three batches take longer, up to thrice
  std::filesystem::path choice_file = {};  ///< empty: choices are neither kept nor taken
  std::string choice_key = {};             ///< of model, shapes, threads and machine
  bool measure_anew = false;               ///< a kept choice is not taken, but written over
};

/// A size of group that was thought about.
struct Candidate {
  int64_t capacity = 0;      ///< the most a group may hold: samples, or tokens
  int64_t samples = 0;       ///< of the group that was tried
  int64_t peak_bytes = 0;    ///< of the process
  bool is_measured = false;  ///< else foretold
  bool fits = true;
  std::optional<double> seconds = {};  ///< of the whole batch at the group's speed, without the update
};

/// Work beside the micro-steps that must fit as well.
struct OtherWork {
  std::string what = {};   ///< "an evaluation of one sample"
  int64_t peak_bytes = 0;  ///< of the process
};

/// What a plan will take.
struct Prediction {
  std::optional<int64_t> peak_bytes = {};  ///< of the process
  std::optional<double> seconds = {};      ///< forward and backward of all groups
};

/// Stage 4 with measurement: decides how batches are cut, from a budget and from what micro-steps took. Its
/// choice stays for the run; what is measured later refines predictions alone, and only a refusal changes the
/// plan. Without the allocator (memory::install) it knows no bytes. Model, loss and updater must outlive it.
class Planner {
 public:
  using Sizes = std::vector<int64_t>;

  Planner(const Model& model, const Loss& loss, Updater& updater, PlannerOptions options);

  /// Runs a few micro-steps of this batch (nothing of them stays), so that bytes and seconds can be foretold;
  /// where no micro_batch was given, tries growing groups that fit and takes the one with the least time a
  /// sample. Recomputes parts of the model where a single sample does not fit otherwise and Recompute allows
  /// it. Throws BudgetError, with the smallest budget that would do and what else would save bytes, where
  /// nothing fits; to find that out one micro-step may run without the limit.
  /// `largest`: the largest sample of all the data where it is not in this batch, so that it fits as well.
  void prepare(const Batch& batch, const std::optional<Batch>& largest = std::nullopt);
  bool is_prepared() const noexcept { return prepared_; }
  /// What `prepare` throws where nothing fits, for a caller whose own start has passed the budget. May run
  /// some micro-steps without the limit.
  [[noreturn]] void refuse(const Batch& batch, const std::optional<Batch>& largest = std::nullopt,
                           const OtherWork& other = {});

  /// How to cut this batch, or one of samples of these sizes (Batch::sizes).
  Plan plan(const Sizes& sizes) const;
  Plan plan(const Batch& batch) const { return plan(batch.sizes()); }
  Prediction predict(const Plan& plan, const Sizes& sizes) const;
  Prediction predict(const Plan& plan, const Batch& batch) const { return predict(plan, batch.sizes()); }
  /// What a run of one group of this size takes.
  Prediction predict(const GroupSize& size) const;
  /// One group of the batch, run now: empty where it was refused. Nothing of it stays.
  std::optional<Probe> try_group(const Batch& batch, const Plan& plan, size_t group);

  /// From every micro-step of the run.
  void observe(const MicroStepEvent::Cost& cost);
  /// Corrects the choice for the rest of the run.
  void refused(const RefusalEvent& event);
  /// For `SplitOptions::make_room`: recomputes every part that can be, if that is allowed and not done yet.
  bool make_room();

  /// The number of the group that takes the most bytes; the largest one where bytes are not known.
  size_t largest_of(const std::vector<GroupSize>& groups) const;
  /// Cuts samples of these sizes as asked, grouped as the options say.
  Plan cut(const std::vector<int64_t>& sizes, const PlanOptions& asked) const;

  const std::vector<Candidate>& candidates() const noexcept { return candidates_; }
  /// "32 samples", "1024 tokens": the most that a group holds.
  std::string limit_text() const;
  /// Samples of one forward without gradients that surely fit.
  int64_t evaluation_batch(const Batch& batch) const;
  int64_t num_recomputed() const;
  int64_t num_refusals() const noexcept { return num_refusals_; }
  /// How many times the seconds that were foretold when the plan was chosen the run's micro-steps take (the
  /// median of the latest), where that is more than 1.5 or less than 1 / 1.5: another program ran beside one
  /// of the two. Empty where the size was given, or the choice restored.
  std::optional<double> contradiction() const;
  /// The most that a group may hold (samples, or tokens); 0 where micro_batch was given or nothing was
  /// chosen.
  int64_t capacity() const noexcept { return capacity_; }
  /// Resident size that the process had had when this was made, which no plan's peak is below; 0 where
  /// PlannerOptions::bare was not given.
  int64_t start_bytes() const noexcept { return start_; }
  /// What the process has reached by now counts as reached before the run: for work that the run will do
  /// again, such as an evaluation.
  void note_reached();
  /// Whether `prepare` took what an earlier run had kept.
  bool took_kept_choice() const noexcept { return took_kept_choice_; }
  Layout layout() const;
  /// Whether a group of this size stays within the budget, as far as is known.
  bool fits(const GroupSize& size) const;
  /// The rows of the largest group of `plan`, foretold. `predicted` is at least what the process had reached
  /// when the planner was prepared: reading the data and trying sizes count as well.
  memory::Ledger ledger(const Plan& plan, const Sizes& sizes) const;
  memory::Ledger ledger(const Plan& plan, const Batch& batch) const { return ledger(plan, batch.sizes()); }
  /// The same with what this process measured so far beside it, the budget, the phases and the modules.
  memory::Ledger ledger_so_far(const Plan& plan, const Sizes& sizes) const;
  memory::Ledger ledger_so_far(const Plan& plan, const Batch& batch) const {
    return ledger_so_far(plan, batch.sizes());
  }
  const CostModel& memory_model() const noexcept { return bytes_.memory; }
  const CostModel& time_model() const noexcept { return seconds_; }
  const PlannerOptions& options() const noexcept { return options_; }

  /// Choice, models and errors, as a JSON object: part of checkpoint and record.
  std::string to_json() const;
  /// Under a budget runs a small micro-step of this batch, of which nothing stays, so that its code is in the
  /// process; `prepare` does it, after `restore` it is the caller's.
  void warm_up(const Batch& batch);
  /// The choice of a run that goes on; nothing is measured. Throws CheckpointError for a text that is none.
  void restore(const std::string& json);
  /// Warns where there is less memory now than when the restored choice was made.
  void warn_of_smaller_budget() const;

 private:
  using Rows = std::vector<int64_t>;
  struct Trial;
  // Sizes that a run meets and nobody tried: the rest of its last batch, and of an evaluation.
  static constexpr int64_t kUntriedSizes = 2;

  bool is_ragged(const Batch& batch) const;
  /// What is known of bytes.
  struct Bytes {
    CostModel memory = CostModel();       // beyond what is there anyway
    CostModel activations = CostModel();  // of them, those between forward and backward
    int64_t fixed = 0;                    // live tensor bytes between micro-steps, without batches
    int64_t data = 0;                     // of the batch and those gathered ahead
    int64_t outside = 0;                  // of the process, beyond tensors
    double spread = 1;                    // bytes held for a byte live, beyond `ends`
    int64_t ends = 0;                     // of chunks that are taken in part: does not grow with the group
    std::optional<int64_t> budget = {};   // of the process
    int64_t reserve_used = 0;             // by the chosen size, of `reserve_of` the budget
    int64_t scratch_of_size = 0;          // that a size which is tried leaves in the process

    /// What stays free of the budget, which must be known, beside a group of this size; below 0: it does not
    /// fit.
    int64_t room(const GroupSize& size) const;
    int64_t peak(const GroupSize& size) const;
    void note_held(int64_t live, int64_t held);
    std::string to_json() const;
    static Bytes from_json(const std::string& text);
  };
  bool fits(const GroupSize& size, const Bytes& bytes) const;
  std::optional<Probe> try_rows(const Batch& batch, const Rows& rows, bool fresh);
  std::optional<Probe> try_twice(const Batch& batch, const Rows& rows);
  void learn(const Probe& probe, bool fresh);
  void note_static();
  std::optional<Probe> try_samples(const std::function<MicroBatch()>& gather, bool fresh);
  void compare_speed(const GroupSize& size, double seconds);
  std::optional<int64_t> usable_budget() const;
  int64_t spare_reserve() const;
  bool stays(const GroupSize& size, int64_t coming = 0) const;
  Rows like_a_group(const std::vector<int64_t>& sizes, int64_t capacity) const;
  Rows rows_of_largest_group(const Batch& batch) const;
  void prepare_given(const Batch& batch);
  void prepare_measured(const Batch& batch, const std::optional<Batch>& largest);
  void try_largest(const Batch& batch, const Rows& rows);
  void try_shapes(const Batch& batch);
  bool try_sizes(const Batch& batch);
  template <class Trials>
  static auto& fastest(Trials& trials);
  void repeat(const Batch& batch, Trial& trial, double until);
  void repeat_in_turns(const Batch& batch, std::vector<Trial>& trials, double until);
  const Trial* fastest_that_stays(const std::vector<Trial>& trials) const;
  bool choose(const std::vector<Trial>& trials, const GroupSize& whole, bool out_of_time);
  void recompute_what_is_needed(const Batch& batch, const Rows& rows);
  void set_recomputed(const std::vector<bool>& which);
  void fill_models();
  std::optional<int64_t> peak_without_budget(const Batch& batch, const Rows& rows, bool recomputed);
  bool is_guarded() const { return !options_.budget || options_.guard > 0; }
  int64_t budget_that_holds(int64_t peak) const;
  int64_t budget_to_name(int64_t peak) const;
  [[noreturn]] void give_up(const Batch& batch, const Rows& rows, std::optional<int64_t> as_it_is = {});
  bool take_kept_choice(const Batch& batch);
  void keep_choice() const;

  Model model_;
  Loss loss_;
  Updater& updater_;
  PlannerOptions options_;
  bool prepared_ = false;
  bool took_kept_choice_ = false;
  int64_t micro_batch_ = 0;        // samples of a group, or 0
  int64_t capacity_ = 0;           // the most a group may hold; 0: no limit
  std::optional<double> refused_;  // the smallest size that was refused
  std::vector<bool> recomputed_;   // by segment
  Bytes bytes_;                    // the latest
  std::optional<Bytes> decided_;   // when the choice was made: what plans are made by
  CostModel seconds_{/*keep_smallest=*/true};
  CostModel chosen_seconds_{/*keep_smallest=*/true};  // when the choice was made
  std::deque<double> slowness_;                       // seconds / foretold of the latest micro-steps
  int64_t num_refusals_ = 0;
  int64_t start_ = 0;                   // resident size that the process had had when this was made
  int64_t reached_ = 0;                 // and when it was prepared
  MicroStepEvent::Cost heaviest_ = {};  // the micro-step so far that took the most bytes, in this process
  std::vector<Candidate> candidates_;
  OtherWork other_;  // where it is more than a micro-step, what is refused
};

}  // namespace accrue
