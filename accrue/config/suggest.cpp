// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/suggest.h"

#include <algorithm>

#include "accrue/base/nearest.h"
#include "accrue/config/schema.h"

namespace accrue::config {
namespace {

struct Alias {
  std::string_view name;
  std::string_view path;
};

/// What other trainers call it.
constexpr Alias kAliases[] = {
    {"gradient_accumulation_steps", "batch.num_micro_steps"},
    {"gradient_accumulation", "batch.num_micro_steps"},
    {"grad_accum_steps", "batch.num_micro_steps"},
    {"accumulate_grad_batches", "batch.num_micro_steps"},
    {"accumulation_steps", "batch.num_micro_steps"},
    {"accum_steps", "batch.num_micro_steps"},
    {"update_freq", "batch.num_micro_steps"},
    {"per_device_train_batch_size", "batch.micro_batch"},
    {"train_micro_batch_size_per_gpu", "batch.micro_batch"},
    {"micro_batch_size", "batch.micro_batch"},
    {"device_batch_size", "batch.micro_batch"},
    {"auto_find_batch_size", "batch.micro_batch: auto"},
    {"auto_scale_batch_size", "batch.micro_batch: auto"},
    {"auto_micro_batch_size", "batch.micro_batch: auto"},
    {"memory_budget", "batch.memory"},
    {"memory_limit", "batch.memory"},
    {"max_memory", "batch.memory"},
    {"gradient_checkpointing", "batch.recompute"},
    {"activation_checkpointing", "batch.recompute"},
    {"activation_checkpoint", "batch.recompute"},
    {"checkpoint_activations", "batch.recompute"},
    {"group_by_length", "batch.grouping"},
    {"batch_size", "batch.size"},
    {"train_batch_size", "batch.size"},
    {"effective_batch_size", "batch.size"},
    {"global_batch_size", "batch.size"},
    {"total_batch_size", "batch.size"},
    {"logical_batch_size", "batch.size"},
    {"shuffle", "batch.order"},
    {"drop_last", "batch.last"},
    {"learning_rate", "optimizer.lr"},
    {"base_lr", "optimizer.lr"},
    {"optim", "optimizer.name"},
    {"beta1", "optimizer.betas"},
    {"beta2", "optimizer.betas"},
    {"adam_epsilon", "optimizer.eps"},
    {"epsilon", "optimizer.eps"},
    {"param_groups", "optimizer.groups"},
    {"wd", "optimizer.weight_decay"},
    {"max_steps", "train.updates"},
    {"total_steps", "train.updates"},
    {"num_steps", "train.updates"},
    {"max_iters", "train.updates"},
    {"num_updates", "train.updates"},
    {"num_epochs", "train.epochs"},
    {"max_epochs", "train.epochs"},
    {"num_train_epochs", "train.epochs"},
    {"clip_grad_norm", "clip_norm"},
    {"max_grad_norm", "clip_norm"},
    {"gradient_clipping", "clip_norm"},
    {"gradient_clip_val", "clip_norm"},
    {"grad_clip", "clip_norm"},
    {"clip_grad_value", "clip_value"},
    {"lr_scheduler", "schedule.name"},
    {"lr_scheduler_type", "schedule.name"},
    {"scheduler", "schedule.name"},
    {"warmup_steps", "schedule.warmup_updates"},
    {"num_warmup_steps", "schedule.warmup_updates"},
    {"warmup_iters", "schedule.warmup_updates"},
    {"step_size", "schedule.every"},
    {"gamma", "schedule.factor"},
    {"eval_steps", "eval.every"},
    {"eval_every", "eval.every"},
    {"val_check_interval", "eval.every"},
    {"save_steps", "checkpoint.every"},
    {"save_every", "checkpoint.every"},
    {"save_total_limit", "checkpoint.keep"},
    {"out_dir", "output_dir"},
    {"save_dir", "output_dir"},
    {"output", "output_dir"},
    {"random_seed", "seed"},
    {"num_threads", "threads"},
    {"val", "data.valid"},
    {"validation", "data.valid"},
    {"features", "data.inputs"},
    {"label", "data.target"},
    {"labels", "data.target"},
    {"normalize", "data.standardize"},
    {"hidden_size", "model.hidden"},
    {"hidden_sizes", "model.hidden"},
    {"type", "model.kind"},
    {"criterion", "loss.kind"},
    {"dtype", "precision.parameters"},
    {"cifar", "data.variant"},
    {"image_size", "data.resize"},
    {"img_size", "data.resize"},
    {"in_channels", "data.channels"},
    {"num_channels", "data.channels"},
    {"horizontal_flip", "data.flip"},
    {"random_flip", "data.flip"},
    {"random_crop", "data.crop"},
    {"seq_len", "data.max_length"},
    {"max_seq_len", "data.max_length"},
    {"max_seq_length", "data.max_length"},
    {"block_size", "model.context"},
    {"context_length", "model.context"},
    {"n_ctx", "model.context"},
    {"n_positions", "model.context"},
    {"vocab_size", "model.vocabulary"},
    {"n_layer", "model.layers"},
    {"num_layers", "model.layers"},
    {"num_hidden_layers", "model.layers"},
    {"n_head", "model.heads"},
    {"num_heads", "model.heads"},
    {"num_attention_heads", "model.heads"},
    {"n_embd", "model.width"},
    {"d_model", "model.width"},
    {"num_groups", "model.groups"},
    {"label_smoothing_factor", "loss.label_smoothing"},
    {"loss_scale_window", "precision.scale_window"},
    {"growth_interval", "precision.scale_window"},
    {"growth_factor", "precision.scale_factor"},
    {"ema_decay", "train.ema"},
    {"num_workers", "train.read_ahead"},
    {"dataloader_num_workers", "train.read_ahead"},
    {"prefetch", "train.read_ahead"},
    {"prefetch_factor", "train.read_ahead"},
    {"early_stopping", "eval.patience"},
    {"early_stopping_patience", "eval.patience"},
    {"eval_batch_size", "eval.batch_size"},
    {"per_device_eval_batch_size", "eval.batch_size"},
    {"metric_for_best_model", "eval.metric"},
};

/// The last part of a path, lower case, with underscores.
std::string plain_name(std::string_view path) {
  const size_t dot = path.rfind('.');
  std::string name(dot == std::string_view::npos ? path : path.substr(dot + 1));
  for (char& letter : name) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    if (letter == '-') letter = '_';
  }
  return name;
}

std::string_view section_of(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

/// The only key with that last part, or null.
const Key* only_key_named(std::string_view name) {
  const Key* found = nullptr;
  for (const Key& key : schema()) {
    if (key.name() != name) continue;
    if (found != nullptr) return nullptr;
    found = &key;
  }
  return found;
}

/// Whether it is the top or a section of the schema.
bool is_known_place(std::string_view section) {
  const std::vector<std::string> sections = section_names();
  return section.empty() || std::find(sections.begin(), sections.end(), section) != sections.end();
}

}  // namespace

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const Key& key : schema()) {
    const std::string section(key.section());
    if (!section.empty() && std::find(names.begin(), names.end(), section) == names.end())
      names.push_back(section);
  }
  return names;
}

std::vector<std::string> names_in(std::string_view section) {
  std::vector<std::string> names;
  for (const Key& key : schema()) {
    const std::string_view top = key.section().empty() ? key.path : key.section();
    const std::string name(section.empty() ? top : key.name());
    if (!section.empty() && key.section() != section) continue;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string exact_hint(std::string_view path) {
  const std::string name = plain_name(path);
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return "; here it is " + std::string(alias.path);
  }
  const Key* key = only_key_named(name);
  return key != nullptr && is_known_place(section_of(path)) ? "; here it is " + std::string(key->path) : "";
}

std::string nearest_hint(std::string_view path) {
  const std::string_view section = section_of(path);
  if (is_known_place(section)) {
    return did_you_mean(section.empty() ? path : path.substr(section.size() + 1), names_in(section));
  }
  std::vector<std::string> paths;
  for (const Key& key : schema()) paths.emplace_back(key.path);
  return did_you_mean(path, paths);
}

}  // namespace accrue::config
