// SPDX-License-Identifier: Apache-2.0
// What a forward must find again so that its second run computes what the first one did.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <utility>
#include <vector>

#include "accrue/microstep/context.h"
#include "accrue/microstep/generator_scope.h"

namespace accrue::nn {

/// Autocast on this thread for one kind of device.
struct Autocast {
  bool enabled = false;
  at::ScalarType type = at::ScalarType::BFloat16;
};

/// Sets it for a scope, in which no casts are kept: those of a run without a graph have none.
class AutocastScope {
 public:
  AutocastScope(c10::DeviceType device, const Autocast& autocast);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  c10::DeviceType device_;
  Autocast outer_;
  bool outer_cache_;
};

/// Tensors and copies of their values.
using Values = std::vector<std::pair<at::Tensor, at::Tensor>>;

/// What the first run starts from: made before it.
class FirstRun {
 public:
  FirstRun(const std::vector<at::Tensor>& buffers, c10::DeviceType device);
  /// After it: forgets what it left unchanged.
  void end();
  c10::DeviceType device() const noexcept { return device_; }
  const Autocast& autocast() const noexcept { return autocast_; }

 private:
  friend class SecondRun;

  NotedContext context_;
  at::Tensor generator_;  // undefined where it drew nothing
  std::vector<at::Tensor> buffers_;
  Values changed_;
  c10::DeviceType device_;
  Autocast autocast_;
};

/// Random numbers, context, running statistics and autocast of the first run for a scope; then what was
/// before.
class SecondRun {
 public:
  explicit SecondRun(const FirstRun& first);
  ~SecondRun();
  SecondRun(const SecondRun&) = delete;
  SecondRun& operator=(const SecondRun&) = delete;

 private:
  Values outer_;
  GeneratorScope generator_;
  AutocastScope autocast_;
  ContextScope context_;
};

}  // namespace accrue::nn
