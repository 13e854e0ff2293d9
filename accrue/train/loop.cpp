// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/loop.h"

#include <exception>

#include "accrue/base/clock.h"
#include "accrue/base/error.h"
#include "accrue/memory/allocator.h"
#include "accrue/report/from_result.h"

namespace accrue {
namespace {

bool is_due(int64_t every, int64_t update) {
  return every > 0 && update % every == 0;
}

Record::Memory foretell(const LoopOptions& options, const Plan& plan, const Batch& batch) {
  if (!options.predict) return {};
  const memory::Ledger ledger = options.predict(plan, batch);
  return {.predicted_bytes = ledger.predicted, .categories = memory::categories_json(ledger)};
}

/// What cannot be read or measured must not cost the updates before it.
template <class Call, class Save>
auto or_save(const Call& call, const Save& save) {
  try {
    return call();
  } catch (...) {
    const std::exception_ptr failure = std::current_exception();
    try {
      save();
    } catch (const Error&) {  // the first failure tells more
    }
    std::rethrow_exception(failure);
  }
}

}  // namespace

LoopEnd run_loop(Batcher& batcher, SplitStep& step, Updater& updater, const LoopOptions& options,
                 const LoopHooks& hooks) {
  int64_t update = updater.num_windows();
  int64_t epoch = batcher.sampler().position().epoch + 1;
  const int64_t first = update;
  int64_t evaluated = -1;
  int64_t saved = update;
  const auto save = [&] {
    if (hooks.save && saved != update) hooks.save(update, epoch);
    saved = update;
  };
  const auto evaluate = [&] {
    evaluated = update;
    return or_save([&] { return hooks.evaluate(update, epoch); }, save);
  };
  if (update > 0 && update < options.total_updates && hooks.enough(update)) return LoopEnd::enough;
  while (update < options.total_updates) {
    const Stopwatch total;
    epoch = batcher.sampler().position().epoch + 1;
    const int64_t dropped_before = batcher.sampler().position().dropped;
    const std::optional<Batch> batch = or_save([&batcher] { return batcher.next(); }, save);
    if (!batch) break;
    const double data_seconds = total.seconds();
    const Plan plan = options.plan(*batch);
    const Record::Memory foretold = foretell(options, plan, *batch);
    UpdateResult result = step(*batch, plan);
    result.seconds.data += data_seconds;
    update = updater.num_windows();

    Record record = make_record(result, total.seconds());
    record.memory.predicted_bytes = foretold.predicted_bytes;
    record.memory.categories = foretold.categories;
    record.epoch = epoch;
    record.samples = batch->size();
    record.dropped_samples = batcher.sampler().position().dropped - dropped_before;
    hooks.report(record);
    if (memory::budget()) memory::keep_within_budget();

    if (hooks.evaluate && is_due(options.evaluate_every, update) && evaluate()) save();
    if (hooks.interrupted()) {
      save();
      return LoopEnd::interrupted;
    }
    if (evaluated == update && update < options.total_updates && hooks.enough(update)) {
      save();
      return LoopEnd::enough;
    }
    if (is_due(options.checkpoint_every, update)) save();
  }
  const bool open = evaluated != update && update > first;
  if (hooks.evaluate && open && evaluate()) saved = -1;
  save();
  return LoopEnd::finished;
}

}  // namespace accrue
