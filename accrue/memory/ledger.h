// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace accrue::memory {

/// Where the bytes of training lie, by category. The first three are exact and do not depend on the split;
/// what is not known is empty, never 0 or a guess.
struct Ledger {
  int64_t parameters = 0;                        ///< bytes
  int64_t gradients = 0;                         ///< bytes of the flat sums
  int64_t optimizer_state = 0;                   ///< bytes of moments
  int64_t masters = 0;                           ///< bytes of fp32 masters of half-precision parameters
  int64_t average = 0;                           ///< bytes of the averaged weights
  std::optional<int64_t> caller_gradients = {};  ///< bytes of gradients that the caller computes himself
  std::optional<int64_t> activations = {};       ///< bytes at the peak of the largest micro-step
  std::optional<int64_t> workspace = {};         ///< bytes
  std::optional<int64_t> predicted = {};         ///< bytes of the process at its peak, foretold

  /// Parameters, gradients (the caller's included), optimizer state, masters and average: what stays for the
  /// whole run.
  int64_t long_lived() const noexcept {
    return parameters + gradients + optimizer_state + masters + average + caller_gradients.value_or(0);
  }
};

/// A table for people, a line each ending in a newline, with the two sentences on what num_micro_steps
/// changes.
std::string describe(const Ledger& ledger);

/// The JSON object `categories` of `plan --json`: parameters, gradients, optimizer_state (masters
/// included), masters, average, activations, workspace; null for what is not known.
std::string categories_json(const Ledger& ledger);

}  // namespace accrue::memory
