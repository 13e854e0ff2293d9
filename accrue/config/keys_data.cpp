// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/bind.h"
#include "accrue/config/keys.h"

namespace accrue::config::keys {
namespace {

using bind::get;
using bind::get_count;
using bind::set;

constexpr double kMaxSide = 8192;  // pixels; its square is the largest image that is decoded

constexpr Key kDataKeys[] = {
    {.path = "task",
     .type = Type::word,
     .words = kWords<Task>,
     .fallback = "none; must be given",
     .help = "What is learned: numbers; one of several classes, of rows or of images; the next token, of any "
             "text "
             "or (sft) of the answers in it.",
     .set = set<&Run::task>,
     .get = get<&Run::task>},
    {.path = "data.train",
     .type = Type::path,
     .fallback = "none; must be given",
     .help = "The file with the training samples, or their folder (idx, cifar, image-folder, tokens).",
     .set = set<&Run::data, &DataOptions::train>,
     .get = get<&Run::data, &DataOptions::train>},
    {.path = "data.valid",
     .type = Type::path_or_fraction,
     .range = {.minimum = 0, .maximum = 1, .open_minimum = true, .open_maximum = true},
     .help = "The file or folder with the validation samples, or the share of the training samples that is "
             "kept for "
             "validation "
             "(chosen by the seed).",
     .set = bind::set_valid,
     .get = bind::get_valid},
    {.path = "data.format",
     .type = Type::word,
     .words = kWords<DataFormat>,
     .help = "The files' format; auto tells by content, then by suffix.",
     .set = set<&Run::data, &DataOptions::format>,
     .get = get<&Run::data, &DataOptions::format>},
    {.path = "data.inputs",
     .type = Type::texts,
     .needs = "task=regression|classification|image-classification;data.format=auto|csv|safetensors",
     .fallback = "all but the target",
     .help =
         "The columns (CSV) or fields (safetensors) that go into the model, as they are written in the data.",
     .set = set<&Run::data, &DataOptions::inputs>,
     .get = get<&Run::data, &DataOptions::inputs>},
    {.path = "data.target",
     .type = Type::text,
     .needs = "task=regression|classification|image-classification;data.format=auto|csv|safetensors",
     .fallback = "the last column (csv), y (safetensors)",
     .help = "The column or field to predict.",
     .set = set<&Run::data, &DataOptions::target>,
     .get = get<&Run::data, &DataOptions::target>},
    {.path = "data.standardize",
     .type = Type::boolean,
     .needs = "task=regression|classification;data.format=auto|csv",
     .help = "Whether numeric CSV inputs become (value - mean) / deviation of the training samples.",
     .set = set<&Run::data, &DataOptions::standardize>,
     .get = get<&Run::data, &DataOptions::standardize>},
    {.path = "data.missing",
     .type = Type::word,
     .words = kWords<Missing>,
     .needs = "task=regression|classification;data.format=auto|csv",
     .help =
         "What an empty cell of a CSV input column does: stop with its place, or count as the column's mean.",
     .set = set<&Run::data, &DataOptions::missing>,
     .get = get<&Run::data, &DataOptions::missing>},
    {.path = "data.variant",
     .type = Type::word,
     .words = kWords<CifarKind>,
     .needs = "task=image-classification;data.format=auto|cifar",
     .help = "Which of the two CIFAR data sets the files hold; auto tells by their length.",
     .set = set<&Run::data, &DataOptions::cifar>,
     .get = get<&Run::data, &DataOptions::cifar>},
    {.path = "data.resize",
     .type = Type::integers,
     .range = {.minimum = 1, .maximum = kMaxSide, .length = 1, .max_length = 2},
     .needs = "task=image-classification;data.format=auto|image-folder",
     .fallback = "none; all images must have one size",
     .help = "The size that images get: one side, or height and width.",
     .set = set<&Run::data, &DataOptions::resize>,
     .get = get<&Run::data, &DataOptions::resize>},
    {.path = "data.channels",
     .type = Type::integer,
     .range = {.minimum = 1, .maximum = 3, .ends_only = true},
     .needs = "task=image-classification;data.format=auto|image-folder",
     .fallback = "as the first training image",
     .help = "1 makes the images gray, 3 red, green and blue.",
     .set = set<&Run::data, &DataOptions::channels>,
     .get = get_count<&Run::data, &DataOptions::channels>},
    {.path = "data.mean",
     .type = Type::numbers,
     .needs = "task=image-classification",
     .fallback = "0",
     .help = "What is taken off each pixel, after its division by 255: a number for each channel, or one for "
             "all.",
     .set = set<&Run::data, &DataOptions::mean>,
     .get = get<&Run::data, &DataOptions::mean>},
    {.path = "data.std",
     .type = Type::numbers,
     .range = kPositive,
     .needs = "task=image-classification",
     .fallback = "1",
     .help = "What each pixel is then divided by: a number for each channel, or one for all.",
     .set = set<&Run::data, &DataOptions::deviation>,
     .get = get<&Run::data, &DataOptions::deviation>},
    {.path = "data.flip",
     .type = Type::boolean,
     .needs = "task=image-classification",
     .help = "Whether training images are mirrored, each with probability 1/2.",
     .set = set<&Run::data, &DataOptions::flip>,
     .get = get<&Run::data, &DataOptions::flip>},
    {.path = "data.crop",
     .type = Type::integer,
     .range = {.minimum = 0, .maximum = kMaxSide},
     .needs = "task=image-classification",
     .help = "Training images are cut, at a place drawn by chance, out of a frame that is wider by this many "
             "pixels on each side; 0: they stay whole.",
     .set = set<&Run::data, &DataOptions::crop>,
     .get = get<&Run::data, &DataOptions::crop>},
    {.path = "data.dtype",
     .type = Type::word,
     .words = kWords<TokenType>,
     .needs = "task=causal-lm|sft;data.format=auto|tokens",
     .help = "How the ids of a token shard are stored; auto tells by a known header, else by the vocabulary.",
     .set = set<&Run::data, &DataOptions::token_type>,
     .get = get<&Run::data, &DataOptions::token_type>},
    {.path = "data.max_length",
     .type = Type::integer,
     .range = kBatchCount,
     .needs = "task=causal-lm|sft",
     .fallback = "none; rows longer than model.context are an error",
     .help = "Rows are cut after this many tokens.",
     .set = set<&Run::data, &DataOptions::max_length>,
     .get = get_count<&Run::data, &DataOptions::max_length>},
};

}  // namespace

std::span<const Key> of_data() {
  return kDataKeys;
}

}  // namespace accrue::config::keys
