// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "accrue/base/messages/config.h"
#include "accrue/config/resolve.h"
#include "accrue/config/schema.h"
#include "accrue/config/words.h"

namespace accrue::config {
namespace {

/// What a task takes by itself, and what it can have; words parted by '|'.
struct TaskRules {
  ModelKind model;
  LossKind loss;
  std::string_view models;
  std::string_view losses;
  std::string_view formats;
  std::string_view metrics;
};

constexpr std::string_view kRowModels = "linear|mlp";
constexpr std::string_view kImageModels = "linear|mlp|cnn|resnet18|resnet34|resnet50";
constexpr std::string_view kRowFormats = "auto|csv|safetensors";
constexpr std::string_view kTokenFormats = "auto|safetensors|tokens|jsonl";

/// In the order of Task.
constexpr std::array<TaskRules, 5> kTaskRules = {{
    {ModelKind::mlp, LossKind::mse, kRowModels, "mse|l1|huber", kRowFormats, "loss|mae|rmse|r2"},
    {ModelKind::mlp, LossKind::cross_entropy, kRowModels, "cross_entropy|binary_cross_entropy", kRowFormats,
     "loss|accuracy"},
    {ModelKind::cnn, LossKind::cross_entropy, kImageModels, "cross_entropy",
     "auto|safetensors|idx|cifar|image-folder", "loss|accuracy|top5"},
    {ModelKind::gpt, LossKind::cross_entropy, "gpt", "cross_entropy", kTokenFormats,
     "loss|perplexity|accuracy"},
    {ModelKind::gpt, LossKind::cross_entropy, "gpt", "cross_entropy", kTokenFormats,
     "loss|perplexity|accuracy"},
}};

void check_word_of_task(Resolution& r, std::string_view path, std::string_view got,
                        std::string_view allowed) {
  if (!r.has(path) || is_one_of(got, allowed)) return;
  r.problems.add(message::config_of_task, {{"place", r.place(path)},
                                           {"path", path},
                                           {"got", got},
                                           {"task", word_of(r.run.task)},
                                           {"allowed", listed(allowed)}});
}

void check_gpt(Resolution& r) {
  const ModelOptions& model = r.run.model;
  if (model.vocabulary == 0 && !r.refused("model.vocabulary")) {
    r.problems.add(message::config_vocabulary, {{"place", r.place("model.kind")}});
  }
  const bool sizes_refused = r.refused("model.width") || r.refused("model.heads");
  if (!sizes_refused && model.width % model.heads != 0) {
    const char* path = r.has("model.heads") ? "model.heads" : "model.width";
    r.problems.add(message::config_heads, {{"place", r.place(path)},
                                           {"heads", model.heads},
                                           {"width", model.width},
                                           {"near", near_divisors(model.width, model.heads)}});
  }
  DataOptions& data = r.run.data;
  data.vocabulary = model.vocabulary;
  data.context = model.context;
  if (data.max_length > model.context && !r.refused("model.context")) {
    r.problems.add(
        message::config_max_length,
        {{"place", r.place("data.max_length")}, {"max_length", data.max_length}, {"context", model.context}});
  }
}

void check_groups(Resolution& r) {
  constexpr int64_t kFewestChannels = 64;  // of a residual network; all other layers have a multiple
  const ModelOptions& model = r.run.model;
  if (model.norm != Norm::group || kFewestChannels % model.groups == 0) return;
  r.problems.add(message::config_groups, {{"place", r.place("model.groups")},
                                          {"groups", model.groups},
                                          {"channels", kFewestChannels},
                                          {"near", near_divisors(kFewestChannels, model.groups)}});
}

}  // namespace

void resolve_task(Resolution& r) {
  if (!r.has("task")) return;
  const TaskRules& rules = kTaskRules.at(static_cast<size_t>(r.run.task));
  if (!r.has("model.kind") && !r.refused("model.kind")) {
    r.run.model.kind = rules.model;
    r.origins["model.kind"] = "by task";
  }
  if (r.run.loss.kind == LossKind::automatic && !r.refused("loss.kind")) {
    r.run.loss.kind = rules.loss;
    r.origins["loss.kind"] = "by task";
  }
  check_word_of_task(r, "data.format", word_of(r.run.data.format), rules.formats);
  check_word_of_task(r, "model.kind", word_of(r.run.model.kind), rules.models);
  check_word_of_task(r, "loss.kind", word_of(r.run.loss.kind), rules.losses);
  check_word_of_task(r, "eval.metric", r.run.eval.metric, rules.metrics);
}

void check_model(Resolution& r) {
  if (!r.has("task") || r.refused("model.kind")) return;
  const ModelKind kind = r.run.model.kind;
  if (!is_one_of(word_of(kind), kTaskRules.at(static_cast<size_t>(r.run.task)).models)) return;
  if (kind == ModelKind::gpt) check_gpt(r);
  const bool residual =
      kind == ModelKind::resnet18 || kind == ModelKind::resnet34 || kind == ModelKind::resnet50;
  if (residual) check_groups(r);
}

void check_evaluation(Resolution& r) {
  if (r.run.eval.patience == 0 || r.run.eval.every > 0 || r.refused("eval.every")) return;
  r.problems.add(message::config_patience,
                 {{"place", r.place("eval.patience")}, {"patience", r.run.eval.patience}});
}

}  // namespace accrue::config
