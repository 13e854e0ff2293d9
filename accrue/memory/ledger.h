// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace accrue::memory {

/// Where the bytes of training lie, by category. The first three are exact and do not depend on the split;
/// what is not known is empty, never 0 or a guess.
struct Ledger {
  int64_t parameters = 0;                            ///< bytes
  int64_t gradients = 0;                             ///< bytes of the flat sums
  int64_t optimizer_state = 0;                       ///< bytes of moments
  int64_t masters = 0;                               ///< bytes of fp32 masters of half-precision parameters
  int64_t average = 0;                               ///< bytes of the averaged weights
  std::optional<int64_t> caller_gradients = {};      ///< bytes of gradients that the caller computed himself
  std::optional<int64_t> activations = {};           ///< bytes at the peak of the largest micro-step
  std::optional<int64_t> workspace = {};             ///< bytes that come and go inside it
  std::optional<int64_t> input_data = {};            ///< bytes of samples, and of batches gathered ahead
  std::optional<int64_t> rounding = {};              ///< bytes held for tensors beyond what is live
  std::optional<int64_t> outside = {};               ///< bytes of the process that are no tensors
  std::optional<int64_t> measured_activations = {};  ///< bytes, of the micro-step that took the most so far
  std::optional<int64_t> measured_workspace = {};    ///< bytes, of the same micro-step
  std::optional<int64_t> predicted = {};             ///< bytes of the process at its peak, foretold
  std::optional<int64_t> measured = {};              ///< bytes of the process at its peak, so far
  std::optional<int64_t> budget = {};                ///< bytes of the process
  /// The most tensor bytes that were live in each phase ("forward", "backward", ...).
  std::vector<std::pair<std::string, int64_t>> phases = {};
  /// What lies where in the model, in the forward's order.
  struct Module {
    std::string name;
    int64_t parameters = 0;                   ///< bytes
    int64_t gradients = 0;                    ///< bytes
    int64_t optimizer_state = 0;              ///< bytes of moments and masters
    std::optional<int64_t> activations = {};  ///< bytes its last forward kept for its backward
    bool is_recomputed = false;
  };
  std::vector<Module> modules = {};

  /// Parameters, gradients (the caller's included), optimizer state, masters and average: what stays for the
  /// whole run.
  int64_t long_lived() const noexcept {
    return parameters + gradients + optimizer_state + masters + average + caller_gradients.value_or(0);
  }
};

/// A table for people, a line each ending in a newline, with the two sentences on what num_micro_steps
/// changes.
std::string describe(const Ledger& ledger);

/// The JSON object `categories` of `plan --json`: parameters, gradients (the caller's included),
/// optimizer_state (masters included), masters, average, activations, workspace, input_data, rounding,
/// outside; null for what is not known.
std::string categories_json(const Ledger& ledger);

/// A line a module.
std::string modules_text(const Ledger& ledger);

/// Everything as a JSON object: `categories` as above, `measured` (activations and workspace), predicted,
/// measured and budget of the process, phases, modules.
std::string to_json(const Ledger& ledger);

}  // namespace accrue::memory
