// SPDX-License-Identifier: Apache-2.0
// Two ways to the same numbers, for `parts`.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "accrue/nn/plain.h"

namespace parts {

struct Part {
  std::string name, shape;
  std::function<void()> before, now;  ///< torch's way and ours
};

/// The same call with torch's operations (what ACCRUE_NN=plain runs) and with ours.
inline Part both_ways(std::string name, std::string shape, const std::function<void()>& call) {
  const auto run = [call](bool plain) {
    const accrue::nn::PlainScope scope(plain);
    call();
  };
  return {std::move(name), std::move(shape), [run] { run(true); }, [run] { run(false); }};
}

/// Forward and backward of one micro-step in a window.
std::vector<Part> layers_of_sequences();
std::vector<Part> layers_of_pictures();
/// Whole updates.
std::vector<Part> updates();

}  // namespace parts
