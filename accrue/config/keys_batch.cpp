// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/bind.h"
#include "accrue/config/keys.h"

namespace accrue::config::keys {
namespace {

using bind::get;
using bind::get_count;
using bind::set;

constexpr Key kBatchKeys[] = {
    {.path = "batch.size",
     .type = Type::integer,
     .range = kBatchCount,
     .help = "The samples behind one update.",
     .set = set<&Run::batch, &BatchOptions::size>,
     .get = get<&Run::batch, &BatchOptions::size>},
    {.path = "batch.micro_batch",
     .type = Type::word_or_integer,
     .words = kAutoWords,
     .range = kBatchCount,
     .fallback = "auto where memory is given and num_micro_steps is not, else batch.size",
     .help = "The samples of one forward and backward; a batch that it does not divide ends with a smaller "
             "one. auto: groups that fit the memory, chosen by measurement at the start.",
     .set = bind::set_micro_batch,
     .get = bind::get_micro_batch},
    {.path = "batch.num_micro_steps",
     .type = Type::integer,
     .range = kBatchCount,
     .fallback = "size / micro_batch, rounded up",
     .help = "The micro-steps of one update. Any two of size, micro_batch and num_micro_steps fix the third; "
             "where this "
             "one is given, it must divide the batch.",
     .set = set<&Run::plan, &PlanOptions::num_micro_steps>,
     .get = get_count<&Run::plan, &PlanOptions::num_micro_steps>},
    {.path = "batch.memory",
     .type = Type::size,
     .fallback = "none; 90% where micro_batch is auto",
     .help = "What the whole process may hold in memory: bytes of its resident size, or a share of what the "
             "machine or its cgroup offers.",
     .set = set<&Run::memory>,
     .get = bind::get_memory},
    {.path = "batch.grouping",
     .type = Type::word,
     .words = kWords<Grouping>,
     .fallback = "by_size (causal-lm, sft), as_given (all other tasks)",
     .help = "Which samples of a batch share a micro-batch: neighbours, or those of like size; sorted inside "
             "the batch only, so the update is the same.",
     .set = set<&Run::grouping>,
     .get = get<&Run::grouping>},
    {.path = "batch.recompute",
     .type = Type::word,
     .words = kWords<Recompute>,
     .help = "Whether a micro-batch's forward is run again in its backward, which takes time, instead of "
             "keeping what it made, which takes memory; auto: where that is the faster way to fit.",
     .set = set<&Run::recompute>,
     .get = get<&Run::recompute>},
    {.path = "batch.on_refusal",
     .type = Type::word,
     .words = kWords<OnRefusal>,
     .fallback = "split where micro_batch is auto, else stop",
     .help = "What a micro-batch that is refused memory a second time does: it is cut in two and the update "
             "goes on, equal up to rounding; or the run ends.",
     .set = set<&Run::on_refusal>,
     .get = get<&Run::on_refusal>},
    {.path = "batch.order",
     .type = Type::word,
     .words = kWords<Order>,
     .help = "The order of an epoch: as the data lie, or shuffled by seed and epoch.",
     .set = set<&Run::batch, &BatchOptions::order>,
     .get = get<&Run::batch, &BatchOptions::order>},
    {.path = "batch.last",
     .type = Type::word,
     .words = kWords<LastBatch>,
     .fallback = "flush; error where num_micro_steps is given",
     .help = "What the samples at an epoch's end that fill no batch get: an update of their own weight, "
             "nothing, an "
             "error before training starts, or a place in the next epoch's first batch.",
     .set = set<&Run::batch, &BatchOptions::last>,
     .get = get<&Run::batch, &BatchOptions::last>},
    {.path = "loss.kind",
     .type = Type::word,
     .words = kWords<LossKind>,
     .help = "The loss; auto is mse for regression and cross_entropy for every other task.",
     .set = set<&Run::loss, &LossOptions::kind>,
     .get = get<&Run::loss, &LossOptions::kind>},
    {.path = "loss.label_smoothing",
     .type = Type::number,
     .range = kShare,
     .needs = "loss.kind=cross_entropy",
     .help = "The share of the target that is spread over all classes or tokens.",
     .set = set<&Run::loss, &LossOptions::label_smoothing>,
     .get = get<&Run::loss, &LossOptions::label_smoothing>},
    {.path = "loss.reduction",
     .type = Type::word,
     .words = kWords<Reduction>,
     .help = "exact divides the batch's sum by the batch's weight; micro_mean averages the micro-batches' "
             "means, which "
             "is another result where they are uneven, and is there to reproduce old runs.",
     .set = set<&Run::loss, &LossOptions::reduction>,
     .get = get<&Run::loss, &LossOptions::reduction>},
};

}  // namespace

std::span<const Key> of_batch() {
  return kBatchKeys;
}

}  // namespace accrue::config::keys
