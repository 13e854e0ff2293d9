// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include "accrue/base/error.h"
#include "accrue/memory/allocator.h"
#include "accrue/memory/refusal.h"
#include "cli/session.h"

namespace accrue::cli {

/// The process's budget by `batch.memory`: bytes, or a share of what the machine or its cgroup offers. Throws
/// ConfigError where the program's allocator is off.
void find_budget(Session& session, const config::Run& run);

/// Holds the process to the session's budget from here on. Throws BudgetError where it has been larger.
void keep_budget(const Session& session);

/// Throws BudgetError where what was read and built has taken the process over its budget; measures the
/// process otherwise.
void check_resident(const Session& session);

/// The process's peak in bytes when this was first asked: before data are read, in whichever attempt.
int64_t bare_process();

/// Gives back what only the start needed (heap and code), and measures what is left outside of tensors: the
/// same state whichever way the program came to it.
void measure_process();

/// For memory that was refused beside the allocator's own word on it.
[[noreturn]] void fail_out_of_memory(const std::string& what);

/// Says what was there and what was asked for when memory was refused.
struct FailForBudget {
  [[noreturn]] void operator()() const;
};

/// Runs a part of the start. Memory that is refused in it is a BudgetError: `refuse` throws it, by default
/// with what was there and what was asked for. Errors of ours stay as they are.
template <class Work, class Refuse = FailForBudget>
auto at_start(const Work& work, const Refuse& refuse = {}) {
  const int64_t refusals_before = memory::statistics().num_refusals;
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (...) {
    if (!memory::is_refusal(std::current_exception(), refusals_before)) throw;
  }
  refuse();
}

/// "2.0 GiB of the process (80% of 2.5 GiB: cgroup v2 /a); 120.0 MiB of it are no tensors".
std::string budget_line(const Session& session);

PlannerOptions planner_options(const Session& session);

/// "3 micro-steps of 16 and one of 2", "5 micro-steps of 3 to 20 samples".
std::string groups_text(const Plan& plan);

/// "foretold 312.0 MiB at its peak, 1.2 s an update".
std::string foretold_text(const Prediction& prediction);

/// Of a run whose micro-steps took so many times what was foretold.
std::string contradiction_text(double times);

/// The program's allocator, unless ACCRUE_ALLOCATOR is "system". First thing in main.
void install_allocator();

}  // namespace accrue::cli
