// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>

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
};

/// The context of the micro-step that runs on this thread, or null.
const MicroStepContext* current_context() noexcept;

/// How often the layer called `layer` (a hash of its path) has asked in this scope before: 0, 1, ... Part of
/// the key of its random numbers. Without a context 0.
int64_t next_call(uint64_t layer);

/// Sets the context of this thread for a scope; nests. Call counts begin at 0.
class ContextScope {
 public:
  explicit ContextScope(const MicroStepContext& context) noexcept;
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  friend const MicroStepContext* current_context() noexcept;
  friend int64_t next_call(uint64_t layer);

  const MicroStepContext* context_;
  ContextScope* outer_;
  std::map<uint64_t, int64_t> calls_;  ///< of each layer
};

}  // namespace accrue
