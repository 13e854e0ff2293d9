// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/resolve.h"

#include <algorithm>
#include <filesystem>

#include "accrue/base/log.h"
#include "accrue/base/messages/config.h"
#include "accrue/base/threads.h"
#include "accrue/config/paths.h"
#include "accrue/config/words.h"

namespace accrue::config {
namespace {

void apply(Resolution& r) {
  r.run = default_run();
  for (const Key& key : schema()) {
    if (r.has(key.path)) key.set(r.run, *r.given.find(key.path)->second.value);
  }
}

void check_needed(Resolution& r) {
  for (const char* path : {"task", "data.train"}) {
    if (r.has(path) || r.refused(path)) continue;
    r.problems.add(message::config_needed,
                   {{"file", r.file}, {"path", path}, {"allowed", allowed_text(*find_key(path))}});
  }
}

void check_pair(Resolution& r, const char* first, const char* second) {
  if (!r.has(first) || !r.has(second)) return;
  r.problems.add(
      message::config_not_together,
      {{"place", r.place(second)}, {"path", second}, {"other", first}, {"other_place", r.place(first)}});
}

/// Whether it is open what the key will be, since what decides it was refused or not given.
bool is_unclear(const Resolution& r, std::string_view path) {
  if (r.refused(path)) return true;
  const bool by_task = path == "task" || path == "loss.kind" || path == "model.kind";
  return by_task && !r.has("task") && !r.has(path);
}

void check_meaning(Resolution& r) {
  for (const Key& key : schema()) {
    const auto given = r.given.find(key.path);
    if (given == r.given.end()) continue;
    const std::vector<Need> needs = needs_of(key);
    const auto broken = std::find_if(needs.begin(), needs.end(), [&](const Need& need) {
      return !is_unclear(r, need.key) && !need.holds(r.run);
    });
    if (given->second.takes_back && broken == needs.end()) {
      static_cast<void>(read_value(key, Node{}, Source{given->second.place, false}, r.problems));
    }
    if (given->second.takes_back || broken == needs.end()) continue;
    const bool by_task = r.origins.count(std::string(broken->key)) > 0;
    r.problems.add(message::config_no_meaning, {{"place", r.place(key.path)},
                                                {"path", key.path},
                                                {"other", broken->key},
                                                {"got", to_text(find_key(broken->key)->get(r.run))},
                                                {"origin", by_task              ? " (by task)"
                                                           : r.has(broken->key) ? ""
                                                                                : " (the default)"},
                                                {"need", broken->text()}});
  }
}

void check_update(Resolution& r) {
  check_pair(r, "clip_norm", "clip_value");
  const auto* sgd = std::get_if<Sgd>(&r.run.optimizer);
  if (sgd != nullptr && sgd->nesterov && sgd->momentum == 0 && !r.refused("optimizer.momentum")) {
    r.problems.add(message::config_nesterov, {{"place", r.place("optimizer.nesterov")}});
  }
  const ScheduleOptions& schedule = r.run.update.schedule;
  if (schedule.kind == ScheduleKind::step && schedule.every == 0 && !r.refused("schedule.every")) {
    r.problems.add(message::config_step_every, {{"place", r.place("schedule.name")}});
  }
  if (r.run.parameters == ParameterType::bf16 && r.run.update.master == Master::none) {
    warn(message::config_no_master, {{"place", r.place("precision.master")}});
  }
}

void resolve_length(Resolution& r) {
  check_pair(r, "train.epochs", "train.updates");
  const bool open = !r.run.train.epochs && !r.run.train.updates;
  if (open && !r.refused("train.epochs") && !r.refused("train.updates")) r.run.train.epochs = 1;
}

void resolve_paths(Resolution& r) {
  if (r.run.output_dir.empty()) {
    const std::string stem = std::filesystem::path(r.file).stem().string();
    r.run.output_dir = "runs/" + (stem.empty() ? "run" : stem);
    r.origins["output_dir"] = "derived";
  }
  for (std::string* path : {&r.run.data.train, &r.run.data.valid, &r.run.model.weights, &r.run.output_dir}) {
    *path = absolute_path(*path);
  }
}

void resolve_machine(Resolution& r) {
  if (r.run.device == "auto") {
    r.run.device = "cpu";
    r.run.derivations.emplace_back("device cpu from auto: this build has cpu alone");
  } else if (r.run.device != "cpu") {
    r.problems.add(message::config_device, {{"place", r.place("device")}, {"got", r.run.device}});
  }
  if (r.has("threads")) {
    r.run.threads_origin = "configuration";
  } else if (!r.refused("threads")) {
    const ThreadCount threads = default_threads();
    r.run.threads = threads.count;
    r.run.threads_origin = threads.origin;
    r.origins["threads"] = threads.origin;
  }
}

}  // namespace

bool Resolution::has(std::string_view path) const {
  const auto found = given.find(path);
  return found != given.end() && found->second.value.has_value();
}

bool Resolution::refused(std::string_view path) const {
  const auto found = given.find(path);
  return found != given.end() && !found->second.value.has_value();
}

std::string Resolution::place(std::string_view path) const {
  const auto found = given.find(path);
  return found != given.end() ? found->second.place : file;
}

void resolve(Resolution& r) {
  apply(r);
  check_needed(r);
  resolve_task(r);
  resolve_batch(r);
  check_meaning(r);
  check_model(r);
  check_evaluation(r);
  check_update(r);
  resolve_length(r);
  resolve_paths(r);
  resolve_machine(r);
}

}  // namespace accrue::config
