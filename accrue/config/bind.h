// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>

#include "accrue/config/run.h"
#include "accrue/config/value.h"
#include "accrue/config/words.h"

/// How keys of the schema reach their fields in a Run.
namespace accrue::config::bind {

template <typename T>
void store(T& field, const Value& value) {
  if constexpr (std::is_enum_v<T>) {
    const auto& word = std::get<std::string>(value);
    const auto found = std::find(kWords<T>.begin(), kWords<T>.end(), word);
    field = static_cast<T>(found - kWords<T>.begin());
  } else if constexpr (std::is_same_v<T, int>) {
    field = static_cast<int>(std::get<int64_t>(value));
  } else {
    field = std::get<T>(value);
  }
}

template <typename T>
void store(std::optional<T>& field, const Value& value) {
  field = std::get<T>(value);
}

template <typename T>
Value fetch(const T& field) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(word_of(field));
  } else if constexpr (std::is_same_v<T, int>) {
    return static_cast<int64_t>(field);
  } else {
    return field;
  }
}

template <typename T>
Value fetch(const std::optional<T>& field) {
  return field ? Value(*field) : Value();
}

inline Value fetch(const std::string& field) {
  return field.empty() ? Value() : Value(field);
}

template <typename T>
Value fetch(const std::vector<T>& field) {
  return field.empty() ? Value() : Value(field);
}

/// The field that a chain of member pointers leads to.
template <auto First, auto... Rest, typename T>
auto& follow(T& object) {
  if constexpr (sizeof...(Rest) == 0) {
    return object.*First;
  } else {
    return follow<Rest...>(object.*First);
  }
}

template <auto... Members>
void set(Run& run, const Value& value) {
  store(follow<Members...>(run), value);
}

template <auto... Members>
Value get(const Run& run) {
  return fetch(follow<Members...>(run));
}

/// As get, but 0 stands for "not set".
template <auto... Members>
Value get_count(const Run& run) {
  return follow<Members...>(run) > 0 ? get<Members...>(run) : Value();
}

inline void set_micro_batch(Run& run, const Value& value) {
  const auto* number = std::get_if<int64_t>(&value);
  run.plan.micro_batch = number != nullptr ? *number : 0;
}

inline Value get_micro_batch(const Run& run) {
  return run.plan.micro_batch > 0 ? Value(run.plan.micro_batch) : Value(std::string(kAutoWords.at(0)));
}

inline Value get_memory(const Run& run) {
  return run.memory.is_set() ? Value(run.memory) : Value();
}

inline void set_optimizer(Run& run, const Value& value) {
  const auto& name = std::get<std::string>(value);
  if (name == "sgd") run.optimizer = Sgd{};
  if (name == "adam") run.optimizer = Adam{};
  if (name == "adamw") run.optimizer = AdamW{};
}

inline Value get_optimizer(const Run& run) {
  return std::string(kOptimizerWords.at(run.optimizer.index()));
}

inline void set_lr(Run& run, const Value& value) {
  std::visit([&](auto& optimizer) { optimizer.lr = std::get<double>(value); }, run.optimizer);
}

inline Value get_lr(const Run& run) {
  return std::visit([](const auto& optimizer) { return Value(optimizer.lr); }, run.optimizer);
}

inline void set_decay(Run& run, const Value& value) {
  std::visit([&](auto& optimizer) { optimizer.weight_decay = std::get<double>(value); }, run.optimizer);
}

inline Value get_decay(const Run& run) {
  return std::visit([](const auto& optimizer) { return Value(optimizer.weight_decay); }, run.optimizer);
}

template <auto Member>
void set_sgd(Run& run, const Value& value) {
  if (auto* sgd = std::get_if<Sgd>(&run.optimizer)) store(sgd->*Member, value);
}

template <auto Member>
Value get_sgd(const Run& run) {
  const auto* sgd = std::get_if<Sgd>(&run.optimizer);
  return sgd != nullptr ? fetch(sgd->*Member) : Value();
}

/// Calls `use` with the options of Adam or AdamW; nothing happens with SGD.
template <typename Optimizer, typename Use>
void with_adam(Optimizer& optimizer, const Use& use) {
  std::visit(
      [&](auto& options) {
        if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(options)>, Sgd>) use(options);
      },
      optimizer);
}

inline void set_betas(Run& run, const Value& value) {
  const auto& betas = std::get<std::vector<double>>(value);
  with_adam(run.optimizer, [&](auto& adam) {
    adam.beta1 = betas.at(0);
    adam.beta2 = betas.at(1);
  });
}

inline Value get_betas(const Run& run) {
  Value value;
  with_adam(run.optimizer, [&](const auto& adam) { value = std::vector<double>{adam.beta1, adam.beta2}; });
  return value;
}

inline void set_eps(Run& run, const Value& value) {
  with_adam(run.optimizer, [&](auto& adam) { adam.eps = std::get<double>(value); });
}

inline Value get_eps(const Run& run) {
  Value value;
  with_adam(run.optimizer, [&](const auto& adam) { value = adam.eps; });
  return value;
}

inline void set_valid(Run& run, const Value& value) {
  if (const auto* fraction = std::get_if<double>(&value)) {
    run.data.valid_fraction = *fraction;
  } else {
    run.data.valid = std::get<std::string>(value);
  }
}

inline Value get_valid(const Run& run) {
  return run.data.valid_fraction ? Value(*run.data.valid_fraction) : fetch(run.data.valid);
}

inline void set_loss_scale(Run& run, const Value& value) {
  LossScaleOptions& scaling = run.update.loss_scale;
  if (const auto* scale = std::get_if<double>(&value)) {
    scaling.kind = LossScaling::fixed;
    scaling.scale = *scale;
  } else {
    scaling.kind = std::get<std::string>(value) == "dynamic" ? LossScaling::dynamic : LossScaling::none;
  }
}

inline Value get_loss_scale(const Run& run) {
  const LossScaleOptions& scaling = run.update.loss_scale;
  if (scaling.kind == LossScaling::fixed) return scaling.scale;
  return std::string(scaling.kind == LossScaling::dynamic ? "dynamic" : "none");
}

inline void set_average(Run& run, const Value& value) {
  if (!run.update.average) run.update.average.emplace();
  run.update.average->decay = std::get<double>(value);
}

inline Value get_average(const Run& run) {
  return run.update.average ? Value(run.update.average->decay) : Value();
}

inline void set_average_ramp(Run& run, const Value& value) {
  if (run.update.average) run.update.average->ramp = std::get<bool>(value);
}

inline Value get_average_ramp(const Run& run) {
  return run.update.average ? Value(run.update.average->ramp) : Value();
}

}  // namespace accrue::config::bind
