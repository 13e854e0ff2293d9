// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "accrue/config/read.h"

namespace accrue::config {

/// What was given, on its way to a Run.
struct Resolution {
  const GivenValues& given;
  const std::string& file;
  Problems& problems;
  Run run;
  std::map<std::string, std::string> origins;  ///< of values that were neither given nor are plain defaults

  /// Whether a good value was given.
  bool has(std::string_view path) const;
  /// Whether a value was given and refused; what depends on it is then not judged.
  bool refused(std::string_view path) const;
  /// Where the value was given, or the file's name.
  std::string place(std::string_view path) const;
};

/// Applies defaults and what was given, checks what keys mean together, and derives what is left open.
void resolve(Resolution& resolution);

/// Fills in what follows from the task, and refuses a model, loss, format or metric that it has not.
void resolve_task(Resolution& resolution);

/// Sizes of the model that do not go together, and what the data must know of it.
void check_model(Resolution& resolution);

/// Keys of the evaluation that do not go together.
void check_evaluation(Resolution& resolution);

/// Size, micro_batch and num_micro_steps: two fix the third; what memory, grouping and refusals follow.
void resolve_batch(Resolution& resolution);

/// "4 and 8": the divisors of `size` next below and above `wanted`.
std::string near_divisors(int64_t size, int64_t wanted);

}  // namespace accrue::config
