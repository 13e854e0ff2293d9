// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/bind.h"
#include "accrue/config/keys.h"

namespace accrue::config::keys {
namespace {

using bind::get;
using bind::get_count;
using bind::set;

constexpr double kMaxSeed = 18446744073709551615.0;

constexpr Key kRunKeys[] = {
    {.path = "train.epochs",
     .type = Type::integer,
     .range = kAtLeastOne,
     .fallback = "1, unless updates is given",
     .help = "The run's length in passes over the training samples. Not together with updates.",
     .set = set<&Run::train, &TrainOptions::epochs>,
     .get = get<&Run::train, &TrainOptions::epochs>},
    {.path = "train.updates",
     .type = Type::integer,
     .range = kAtLeastOne,
     .help = "The run's length in updates. Not together with epochs.",
     .set = set<&Run::train, &TrainOptions::updates>,
     .get = get<&Run::train, &TrainOptions::updates>},
    {.path = "train.non_finite",
     .type = Type::word,
     .words = kWords<NonFinite>,
     .help = "What a loss or gradient that is not finite does.",
     .set = set<&Run::update, &UpdateOptions::non_finite>,
     .get = get<&Run::update, &UpdateOptions::non_finite>},
    {.path = "train.ema",
     .type = Type::number,
     .range = kShare,
     .help = "The share d that a moving average of the parameters keeps: after each applied update, average "
             "+= (1 - d) (parameter - average). Without it there is none.",
     .set = bind::set_average,
     .get = bind::get_average},
    {.path = "train.ema_ramp",
     .type = Type::boolean,
     .needs = "train.ema=*",
     .fallback = "true",
     .help =
         "Whether d is at most (1 + t) / (10 + t) at applied update t, so that the first ones count less.",
     .set = bind::set_average_ramp,
     .get = bind::get_average_ramp},
    {.path = "train.noise_scale",
     .type = Type::boolean,
     .help = "Whether the gradient noise scale is estimated, roughly the batch beyond which more samples an "
             "update no longer pay; it costs one reading pass an update.",
     .set = set<&Run::update, &UpdateOptions::noise_scale>,
     .get = get<&Run::update, &UpdateOptions::noise_scale>},
    {.path = "train.batch_norm",
     .type = Type::word,
     .words = kWords<BatchNormPolicy>,
     .needs = "model.kind=resnet18|resnet34|resnet50;model.norm=batch",
     .help = "What BatchNorm layers get, whose statistics over a micro-batch are not those of the batch: a "
             "warning, or their running statistics kept as they are.",
     .set = set<&Run::train, &TrainOptions::batch_norm>,
     .get = get<&Run::train, &TrainOptions::batch_norm>},
    {.path = "train.read_ahead",
     .type = Type::integer,
     .range = {.minimum = 0, .maximum = 1024},
     .help = "The batches that are gathered in the background while one is trained on.",
     .set = set<&Run::train, &TrainOptions::read_ahead>,
     .get = get<&Run::train, &TrainOptions::read_ahead>},
    {.path = "train.overfit",
     .type = Type::integer,
     .range = kAtLeastOne,
     .fallback = "all samples",
     .help = "So many samples alone (the first of the shuffled order), to train and to validate on: a model "
             "that is "
             "wired right learns them by heart.",
     .set = set<&Run::train, &TrainOptions::overfit>,
     .get = get_count<&Run::train, &TrainOptions::overfit>},
    {.path = "eval.every",
     .type = Type::integer,
     .range = kAtLeastZero,
     .help = "The updates between two evaluations of the validation samples; 0: only at the end.",
     .set = set<&Run::eval, &EvalOptions::every>,
     .get = get<&Run::eval, &EvalOptions::every>},
    {.path = "eval.batch_size",
     .type = Type::integer,
     .range = kBatchCount,
     .fallback = "batch.micro_batch; where that is auto, what was chosen",
     .help = "The samples of one forward of an evaluation.",
     .set = set<&Run::eval, &EvalOptions::batch_size>,
     .get = get_count<&Run::eval, &EvalOptions::batch_size>},
    {.path = "eval.metric",
     .type = Type::word,
     .words = kMetricWords,
     .fallback = "by task",
     .help = "What the best checkpoint is best in: loss, or mae, rmse, r2 (regression), accuracy "
             "(classes), top5 (image-classification), perplexity (causal-lm, sft).",
     .set = set<&Run::eval, &EvalOptions::metric>,
     .get = get<&Run::eval, &EvalOptions::metric>},
    {.path = "eval.patience",
     .type = Type::integer,
     .range = kAtLeastZero,
     .help = "The evaluations in a row without a new best after which the run ends; 0: it never does. Needs "
             "eval.every above 0.",
     .set = set<&Run::eval, &EvalOptions::patience>,
     .get = get<&Run::eval, &EvalOptions::patience>},
    {.path = "checkpoint.every",
     .type = Type::integer,
     .range = kAtLeastZero,
     .help = "The updates between two checkpoints; 0: only at the end.",
     .set = set<&Run::checkpoint, &EveryOptions::every>,
     .get = get<&Run::checkpoint, &EveryOptions::every>},
    {.path = "checkpoint.keep",
     .type = Type::integer,
     .range = kAtLeastOne,
     .help = "The number of latest checkpoints that are kept, beside the best.",
     .set = set<&Run::checkpoint, &EveryOptions::keep>,
     .get = get<&Run::checkpoint, &EveryOptions::keep>},
    {.path = "output_dir",
     .type = Type::path,
     .fallback = "runs/ and the configuration's name",
     .help = "The folder of the run's records and checkpoints.",
     .set = set<&Run::output_dir>,
     .get = get<&Run::output_dir>},
    {.path = "seed",
     .type = Type::seed,
     .range = {.minimum = 0, .maximum = kMaxSeed},
     .help = "What everything drawn by chance depends on.",
     .set = set<&Run::seed>,
     .get = get<&Run::seed>},
    {.path = "device",
     .type = Type::text,
     .help = "Where the run computes: cpu, or auto for the best that this build has.",
     .set = set<&Run::device>,
     .get = get<&Run::device>},
    {.path = "threads",
     .type = Type::integer,
     .range = {.minimum = 1, .maximum = 4096},
     .fallback = "the smallest of physical cores, affinity and cgroup quota",
     .help = "The threads of one computation.",
     .set = set<&Run::threads>,
     .get = get_count<&Run::threads>},
};

}  // namespace

std::span<const Key> of_run() {
  return kRunKeys;
}

}  // namespace accrue::config::keys
