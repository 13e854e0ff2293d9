// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/bind.h"
#include "accrue/config/keys.h"

namespace accrue::config::keys {
namespace {

using bind::get;
using bind::get_count;
using bind::set;

constexpr Key kModelKeys[] = {
    {.path = "model.kind",
     .type = Type::word,
     .words = kWords<ModelKind>,
     .fallback = "mlp (regression, classification), cnn (image-classification), gpt (causal-lm, sft)",
     .help = "One linear layer; linear layers with an activation between them; convolutions and linear "
             "layers; a residual network; a decoder of GPT-2's form.",
     .set = set<&Run::model, &ModelOptions::kind>,
     .get = get<&Run::model, &ModelOptions::kind>},
    {.path = "model.hidden",
     .type = Type::integers,
     .range = kBatchCount,
     .needs = "model.kind=mlp|cnn",
     .help = "The width of each hidden linear layer.",
     .set = set<&Run::model, &ModelOptions::hidden>,
     .get = get<&Run::model, &ModelOptions::hidden>},
    {.path = "model.activation",
     .type = Type::word,
     .words = kWords<Activation>,
     .needs = "model.kind=mlp",
     .help = "The function between the layers; gelu is the erf form, gelu_tanh its approximation.",
     .set = set<&Run::model, &ModelOptions::activation>,
     .get = get<&Run::model, &ModelOptions::activation>},
    {.path = "model.channels",
     .type = Type::integers,
     .range = kLayerSize,
     .needs = "model.kind=cnn",
     .help = "The channels of each 3x3 convolution, which ReLU and 2x2 max pooling follow.",
     .set = set<&Run::model, &ModelOptions::channels>,
     .get = get<&Run::model, &ModelOptions::channels>},
    {.path = "model.norm",
     .type = Type::word,
     .words = kWords<Norm>,
     .needs = "model.kind=resnet18|resnet34|resnet50",
     .help = "What follows each convolution. batch takes its statistics over a micro-batch, so it is another "
             "computation than the whole batch; the others look at one sample.",
     .set = set<&Run::model, &ModelOptions::norm>,
     .get = get<&Run::model, &ModelOptions::norm>},
    {.path = "model.groups",
     .type = Type::integer,
     .range = kLayerSize,
     .needs = "model.kind=resnet18|resnet34|resnet50;model.norm=group",
     .help = "The groups of channels that a group norm looks at; they must divide 64.",
     .set = set<&Run::model, &ModelOptions::groups>,
     .get = get<&Run::model, &ModelOptions::groups>},
    {.path = "model.stem",
     .type = Type::word,
     .words = kWords<Stem>,
     .needs = "model.kind=resnet18|resnet34|resnet50",
     .help = "The first convolution: 3x3 for small images, or 7x7 with stride 2 and max pooling for large.",
     .set = set<&Run::model, &ModelOptions::stem>,
     .get = get<&Run::model, &ModelOptions::stem>},
    {.path = "model.vocabulary",
     .type = Type::integer,
     .range = {.minimum = 2, .maximum = kMaxBatch},
     .needs = "model.kind=gpt",
     .fallback = "none; must be given with gpt",
     .help = "The number of token ids, which the tokenizer tells.",
     .set = set<&Run::model, &ModelOptions::vocabulary>,
     .get = get_count<&Run::model, &ModelOptions::vocabulary>},
    {.path = "model.context",
     .type = Type::integer,
     .range = {.minimum = 2, .maximum = kMaxBatch},
     .needs = "model.kind=gpt",
     .help = "The most tokens of one sequence, and those of each row of a token shard.",
     .set = set<&Run::model, &ModelOptions::context>,
     .get = get<&Run::model, &ModelOptions::context>},
    {.path = "model.width",
     .type = Type::integer,
     .range = kLayerSize,
     .needs = "model.kind=gpt",
     .help = "The size of the vector that stands for a token between the layers.",
     .set = set<&Run::model, &ModelOptions::width>,
     .get = get<&Run::model, &ModelOptions::width>},
    {.path = "model.layers",
     .type = Type::integer,
     .range = {.minimum = 1, .maximum = 4096},
     .needs = "model.kind=gpt",
     .help = "The number of blocks.",
     .set = set<&Run::model, &ModelOptions::layers>,
     .get = get<&Run::model, &ModelOptions::layers>},
    {.path = "model.heads",
     .type = Type::integer,
     .range = kLayerSize,
     .needs = "model.kind=gpt",
     .help = "The attention heads of a block; they must divide the width.",
     .set = set<&Run::model, &ModelOptions::heads>,
     .get = get<&Run::model, &ModelOptions::heads>},
    {.path = "model.dropout",
     .type = Type::number,
     .range = kShare,
     .needs = "model.kind=gpt",
     .help = "The probability with which values are left out while training: of embeddings, attention and "
             "residual branches.",
     .set = set<&Run::model, &ModelOptions::dropout>,
     .get = get<&Run::model, &ModelOptions::dropout>},
    {.path = "model.weights",
     .type = Type::path,
     .help = "A safetensors file with the initial weights; without it they are drawn by the seed.",
     .set = set<&Run::model, &ModelOptions::weights>,
     .get = get<&Run::model, &ModelOptions::weights>},
};

}  // namespace

std::span<const Key> of_model() {
  return kModelKeys;
}

}  // namespace accrue::config::keys
