// SPDX-License-Identifier: Apache-2.0
#include "models/gpt.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/models.h"
#include "accrue/batch/pad.h"
#include "accrue/data/shape_text.h"
#include "accrue/microstep/generator_scope.h"
#include "accrue/microstep/module_adapter.h"
#include "accrue/nn/block.h"
#include "accrue/nn/dropout.h"
#include "accrue/nn/functions.h"
#include "accrue/nn/head.h"
#include "accrue/nn/recompute.h"
#include "models/size.h"

namespace accrue::models {
namespace {

constexpr double kDeviation = 0.02;
constexpr double kEps = 1e-5;  // of the norms

at::Tensor normal(at::IntArrayRef shape, double deviation) {
  return at::empty(shape, at::kFloat).normal_(0, deviation);
}

struct Embedding : torch::nn::Module {
  Embedding(int64_t rows, int64_t width)
      : weight(register_parameter("weight", normal({rows, width}, kDeviation))) {}
  at::Tensor weight;
};

struct Affine : torch::nn::Module {
  Affine(int64_t in, int64_t out, double deviation)
      : weight(register_parameter("weight", normal({in, out}, deviation))),
        bias(register_parameter("bias", at::zeros({out}))) {}
  at::Tensor forward(const at::Tensor& x) const { return nn::linear_transposed(x, weight, bias); }
  at::Tensor weight, bias;
};

struct Norm : torch::nn::Module {
  explicit Norm(int64_t width)
      : weight(register_parameter("weight", at::ones({width}))),
        bias(register_parameter("bias", at::zeros({width}))) {}
  at::Tensor forward(const at::Tensor& x) const { return nn::layer_norm(x, weight, bias, kEps); }
  at::Tensor weight, bias;
};

/// Dropout whose random numbers are those of its place in the model.
struct Drop {
  Drop(double probability, const std::string& path) : p(probability), layer(path) {}
  at::Tensor operator()(const at::Tensor& x, bool training) const {
    return training ? nn::dropout(x, p, layer) : x;
  }
  double p;
  nn::Layer layer;
};

/// x [tokens, width], or [n, T, width] with segments of one length.
struct Attention : torch::nn::Module {
  Attention(const GptOptions& options, double deviation, const std::string& path)
      : heads(options.heads),
        attn_dropout(options.dropout, path + ".attn_dropout"),
        resid_dropout(options.dropout, path + ".resid_dropout") {
    c_attn =
        register_module("c_attn", std::make_shared<Affine>(options.width, 3 * options.width, kDeviation));
    c_proj = register_module("c_proj", std::make_shared<Affine>(options.width, options.width, deviation));
  }
  at::Tensor forward(const at::Tensor& x, std::span<const int64_t> offsets) const {
    const at::Tensor qkv = c_attn->forward(x).flatten(0, -2);
    const at::Tensor attended = nn::causal_attention(
        qkv, offsets,
        {.heads = heads, .dropout = is_training() ? attn_dropout.p : 0, .layer = &attn_dropout.layer});
    return resid_dropout(c_proj->forward(attended.view(x.sizes())), is_training());
  }
  int64_t heads;
  Drop attn_dropout, resid_dropout;
  std::shared_ptr<Affine> c_attn, c_proj;
};

struct Mlp : torch::nn::Module {
  Mlp(const GptOptions& options, double deviation, const std::string& path)
      : dropout(options.dropout, path + ".dropout") {
    c_fc = register_module("c_fc", std::make_shared<Affine>(options.width, 4 * options.width, kDeviation));
    c_proj = register_module("c_proj", std::make_shared<Affine>(4 * options.width, options.width, deviation));
  }
  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor hidden = nn::linear_transposed(x, c_fc->weight, c_fc->bias, Activation::gelu_tanh);
    return dropout(c_proj->forward(hidden), is_training());
  }
  Drop dropout;
  std::shared_ptr<Affine> c_fc, c_proj;
};

struct Block : torch::nn::Module {
  Block(const GptOptions& options, const std::string& path) {
    const double deviation = kDeviation / std::sqrt(2 * static_cast<double>(options.layers));
    ln_1 = register_module("ln_1", std::make_shared<Norm>(options.width));
    attn = register_module("attn", std::make_shared<Attention>(options, deviation, path + ".attn"));
    ln_2 = register_module("ln_2", std::make_shared<Norm>(options.width));
    mlp = register_module("mlp", std::make_shared<Mlp>(options, deviation, path + ".mlp"));
  }
  bool drops() const { return is_training() && mlp->dropout.p > 0; }
  at::Tensor forward(const at::Tensor& x, std::span<const int64_t> offsets) const {
    if (!drops()) return without_dropout(x, offsets, {});
    const at::Tensor attended = x.add(attn->forward(ln_1->forward(x), offsets));
    return attended.add(mlp->forward(ln_2->forward(attended)));
  }
  /// Of the tokens in `rows` alone, or of all where it is undefined.
  at::Tensor without_dropout(const at::Tensor& x, std::span<const int64_t> offsets,
                             const at::Tensor& rows) const {
    return nn::transformer_block(x, weights(), offsets, attn->heads, kEps, rows);
  }
  nn::BlockWeights weights() const {
    return {ln_1->weight,         ln_1->bias,         attn->c_attn->weight, attn->c_attn->bias,
            attn->c_proj->weight, attn->c_proj->bias, ln_2->weight,         ln_2->bias,
            mlp->c_fc->weight,    mlp->c_fc->bias,    mlp->c_proj->weight,  mlp->c_proj->bias};
  }
  std::shared_ptr<Norm> ln_1, ln_2;
  std::shared_ptr<Attention> attn;
  std::shared_ptr<Mlp> mlp;
};

struct Blocks : torch::nn::Module {
  explicit Blocks(const GptOptions& options) {
    for (int64_t i = 0; i < options.layers; ++i) {
      const std::string name = std::to_string(i);
      list.push_back(register_module(name, std::make_shared<Block>(options, "transformer.h." + name)));
    }
  }
  std::vector<std::shared_ptr<Block>> list;
};

/// Where sequences begin, and the end; it outlives the forward, since a block may be run again.
using Offsets = std::shared_ptr<const std::vector<int64_t>>;

struct Transformer : torch::nn::Module {
  explicit Transformer(const GptOptions& options) : drop(options.dropout, "transformer.drop") {
    wte = register_module("wte", std::make_shared<Embedding>(options.vocabulary, options.width));
    wpe = register_module("wpe", std::make_shared<Embedding>(options.context, options.width));
    h = register_module("h", std::make_shared<Blocks>(options));
    ln_f = register_module("ln_f", std::make_shared<Norm>(options.width));
    for (size_t i = 0; i < h->list.size(); ++i) {
      segments.add("transformer.h." + std::to_string(i), *h->list[i]);
    }
  }
  /// What enters block number `end`, or leaves the last one.
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& positions, const Offsets& offsets,
                     size_t end) const {
    const at::Tensor entered = nn::embedding(ids, wte->weight).add(nn::embedding(positions, wpe->weight));
    at::Tensor x = drop(entered, is_training());
    for (size_t i = 0; i < end; ++i) {
      const auto run = [block = h->list[i], offsets](const at::Tensor& entering) {
        return block->forward(entering, *offsets);
      };
      x = segments.run(i, run, x);
    }
    return x;
  }
  /// The last block's tokens in `rows` (all where it is undefined) from what enters it.
  at::Tensor last_block(const at::Tensor& x, const Offsets& offsets, const at::Tensor& rows) const {
    const auto run = [block = h->list.back(), offsets, rows](const at::Tensor& entering) {
      return block->without_dropout(entering, *offsets, rows);
    };
    return segments.run(h->list.size() - 1, run, x);
  }
  Drop drop;
  std::shared_ptr<Embedding> wte, wpe;
  std::shared_ptr<Blocks> h;
  std::shared_ptr<Norm> ln_f;
  nn::Segments segments;  // the blocks, by their number
};

/// The head, whose only parameter is the embedding's.
struct Head : torch::nn::Module {
  explicit Head(const at::Tensor& embedding) : weight(register_parameter("weight", embedding)) {}
  at::Tensor weight;
};

struct Gpt : torch::nn::Module {
  explicit Gpt(const GptOptions& options)
      : transformer(register_module("transformer", std::make_shared<Transformer>(options))),
        lm_head(register_module("lm_head", std::make_shared<Head>(transformer->wte->weight))) {}
  std::shared_ptr<Transformer> transformer;
  std::shared_ptr<Head> lm_head;
};

/// Borders of the sequences in the flattened ids: the batch's own, or those of the rows of [n, T].
std::vector<int64_t> borders(const MicroBatch& micro, const at::Tensor& ids) {
  const int64_t dimensions = micro.is_ragged() ? 1 : 2;
  if (ids.dim() != dimensions || ids.numel() == 0 || !at::isIntegralType(ids.scalar_type(), false)) {
    fail(message::gpt_input, {{"got", shape_text(ids)}, {"type", toString(ids.scalar_type())}});
  }
  const std::span<const int64_t> offsets = micro.offsets();
  if (micro.is_ragged()) return {offsets.begin(), offsets.end()};
  std::vector<int64_t> rows(static_cast<size_t>(ids.size(0)) + 1);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i) * ids.size(1);
  return rows;
}

/// DataError that lists the sequences that are longer than `context`.
void check_lengths(const std::vector<int64_t>& offsets, const MicroBatch& micro, int64_t context) {
  Problems problems;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const int64_t length = offsets[i + 1] - offsets[i];
    if (length <= context) continue;
    problems.add(message::gpt_too_long, {{"sample", micro.ids()[i]}, {"got", length}, {"context", context}});
  }
  problems.throw_if_any();
}

/// DataError for the first id outside the vocabulary. Most batches are passed by their extremes alone.
void check_ids(const at::Tensor& ids, const std::vector<int64_t>& offsets, const MicroBatch& micro,
               int64_t vocabulary) {
  const auto [least, greatest] = at::aminmax(ids);
  if (least.item<int64_t>() >= 0 && greatest.item<int64_t>() < vocabulary) return;
  const at::Tensor flat = ids.reshape({-1}).to(at::kCPU, at::kLong).contiguous();
  const int64_t* const values = flat.const_data_ptr<int64_t>();
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    for (int64_t place = offsets[i]; place < offsets[i + 1]; ++place) {
      if (values[place] >= 0 && values[place] < vocabulary) continue;
      fail(message::gpt_id, {{"sample", micro.ids()[i]},
                             {"place", place - offsets[i]},
                             {"got", values[place]},
                             {"vocabulary", vocabulary}});
    }
  }
}

/// DataError for the first row of a rectangle whose mask has a 0 before a 1: attention and positions begin
/// with the row, so only padding on the right is never looked at.
void check_mask(const at::Tensor& ids, const MicroBatch& micro) {
  const at::Tensor* const mask = micro.fields().find(kAttentionMask);
  if (micro.is_ragged() || mask == nullptr) return;
  if (mask->sizes() != ids.sizes()) {
    fail(message::gpt_mask_shape, {{"got", shape_text(*mask)}, {"needed", shape_text(ids)}});
  }
  const at::Tensor shown = mask->ne(0);
  const at::Tensor begins = shown.slice(1, 1).logical_and(shown.slice(1, 0, -1).logical_not());
  if (!begins.any().item<bool>()) return;
  const at::Tensor first = begins.nonzero()[0].to(at::kCPU);
  fail(message::gpt_mask, {{"sample", micro.ids()[static_cast<size_t>(first[0].item<int64_t>())]},
                           {"place", first[1].item<int64_t>() + 1}});
}

/// 0, 1, ... from the beginning of each sequence: [tokens], or [T] for rows of one length.
at::Tensor positions_of(const std::vector<int64_t>& offsets, const at::Tensor& ids) {
  const int64_t count = ids.size(-1);
  const at::Tensor positions = at::empty({count}, at::kLong);
  int64_t* const values = positions.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i + 1 < offsets.size() && offsets[i] < count; ++i) {
    std::iota(values + offsets[i], values + offsets[i + 1], int64_t{0});
  }
  return positions.to(ids.device());
}

Outputs run(const Gpt& gpt, const MicroBatch& micro, const GptOptions& options) {
  const at::Tensor& ids = micro["input_ids"];
  const auto offsets = std::make_shared<const std::vector<int64_t>>(borders(micro, ids));
  check_lengths(*offsets, micro, options.context);
  check_mask(ids, micro);
  check_ids(ids, *offsets, micro, options.vocabulary);
  const std::shared_ptr<Transformer> transformer = gpt.transformer;
  const size_t blocks = transformer->h->list.size();
  // With dropout the random numbers are those of now, and without a graph a metric asks for all logits as
  // well.
  const bool last_waits = c10::GradMode::is_enabled() && !transformer->h->list.back()->drops();
  const at::Tensor x =
      transformer->forward(ids, positions_of(*offsets, ids), offsets, last_waits ? blocks - 1 : blocks);
  std::vector<int64_t> shape = ids.sizes().vec();
  shape.push_back(gpt.lm_head->weight.size(0));
  return nn::deferred_logits(std::move(shape), gpt.lm_head->weight,
                             [transformer, x, offsets, last_waits](const at::Tensor& rows) {
                               at::Tensor y = x;
                               if (last_waits) {
                                 y = transformer->last_block(x, offsets, rows);
                               } else if (rows.defined()) {
                                 y = x.flatten(0, -2).index_select(0, rows);
                               }
                               return transformer->ln_f->forward(y);
                             });
}

void check(const GptOptions& options) {
  check_size("width", options.width);
  check_size("layers", options.layers);
  check_size("heads", options.heads);
  check_size("vocabulary", options.vocabulary);
  check_size("context", options.context);
  if (options.width % options.heads != 0) {
    fail(message::gpt_heads, {{"width", options.width}, {"heads", options.heads}});
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) fail(message::gpt_dropout, {{"got", options.dropout}});
  const auto width = static_cast<double>(options.width);
  const double rows = static_cast<double>(options.vocabulary) + static_cast<double>(options.context);
  check_memory(rows * width + static_cast<double>(options.layers) * (12 * width + 13) * width + 2 * width);
}

}  // namespace

Model make_gpt(const GptOptions& options, const Common& common) {
  check(options);
  const GeneratorScope generator(common.seed);
  const auto gpt = std::make_shared<Gpt>(options);
  gpt->to(common.dtype);
  Model model = adapt(
      gpt,
      [options](const std::shared_ptr<Gpt>& self, const MicroBatch& micro) {
        return run(*self, micro, options);
      },
      "gpt");
  model.takes_offsets = true;
  gpt->transformer->segments.install(model);
  return model;
}

}  // namespace accrue::models
