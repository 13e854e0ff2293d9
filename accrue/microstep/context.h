// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace accrue {

/// What a layer may know about the micro-step in which it runs, so that its random numbers depend on seed,
/// update and sample and not on the split.
struct MicroStepContext {
  uint64_t seed = 0;
  int64_t update = 0;                     ///< number of the update that this micro-step works for
  std::span<const int64_t> sample_ids;    ///< [n]
  std::span<const int64_t> offsets = {};  ///< [n + 1] for end-to-end fields, else empty
  /// [n]: which of the equal ids of its batch each sample is, from 0; empty: no id repeats.
  std::span<const int64_t> occurrences = {};
  bool for_window = false;  ///< the terms go to `Window::add`: a loss may leave its pass to it (OnePass)
};

/// The context of the micro-step that runs on this thread, or null.
const MicroStepContext* current_context() noexcept;

/// How often the layer called `layer` (a hash of its path) has asked in this scope before: 0, 1, ... Part of
/// the key of its random numbers. Without a context 0.
int64_t next_call(uint64_t layer);

/// The context of this thread at one moment, or that there is none, with the call counts of its layers:
/// copies of all it points to, so that a part of the micro-step can be run again when its scope has ended.
class NotedContext {
 public:
  NotedContext();
  NotedContext(const NotedContext&) = delete;
  NotedContext& operator=(const NotedContext&) = delete;

 private:
  friend class ContextScope;

  bool any_;
  MicroStepContext context_;
  std::vector<int64_t> sample_ids_, offsets_, occurrences_;
  std::map<uint64_t, int64_t> calls_;
};

/// Sets the context of this thread for a scope; nests. Call counts begin at 0.
class ContextScope {
 public:
  explicit ContextScope(const MicroStepContext& context) noexcept;
  /// A noted one, which must outlive the scope; call counts go on from the noted ones.
  explicit ContextScope(const NotedContext& noted);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  friend class NotedContext;
  friend const MicroStepContext* current_context() noexcept;
  friend int64_t next_call(uint64_t layer);

  const MicroStepContext* context_;  ///< null: as if there were none
  ContextScope* outer_;
  std::map<uint64_t, int64_t> calls_;  ///< of each layer
};

}  // namespace accrue
