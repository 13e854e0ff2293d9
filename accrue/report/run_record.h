// SPDX-License-Identifier: Apache-2.0
// One record of a whole run: what was trained, where, how fast, how large, how well, and how sure that is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accrue/report/record.h"

namespace accrue {

/// How much a record proves.
enum class EvidenceLevel {
  smoke,     ///< fewer than 10 updates after the warm-up: it ran
  cpu,       ///< measured on a CPU, once
  repeated,  ///< a benchmark with several runs
};

struct RunRecord {
  struct Workload {
    std::string task = {}, model = {}, dtype = {}, optimizer = {};
    int64_t parameters = 0, batch = 0, micro_batch = 0, num_micro_steps = 0;
    std::optional<int64_t> sequence_length = {};
    uint64_t seed = 0;
    int64_t warmup_updates = 0;  ///< left out of the timing
  };
  struct Environment {
    std::string accrue = {}, torch = {}, compiler = {}, device = {}, processor = {}, kernels = {};
    std::string products = {};  ///< whose products of matrices the layers take
    int threads = 0;
  };
  struct Performance {
    int64_t measured_updates = 0;
    std::optional<double> seconds_minimum = {}, seconds_median = {}, samples_per_second = {};
    std::optional<double> tokens_per_second = {};         ///< by `token_rule`: padding not counted
    std::optional<double> padded_tokens_per_second = {};  ///< padding counted too
    std::string token_rule = "real tokens";
  };
  /// Memory that was refused to an update.
  struct Refusal {
    int64_t update = 0, samples = 0;        ///< samples of the micro-batch; 0: outside of micro-steps
    int64_t asked = 0, live = 0, held = 0;  ///< bytes; 0 where the allocator did not refuse them
    std::string phase = {};                 ///< empty likewise
    std::string answer = {};                ///< "again", "split", "recompute"
  };
  struct Memory {
    std::optional<int64_t> peak_resident_bytes = {};
    std::optional<int64_t> parameters = {}, gradients = {}, optimizer_state = {}, masters = {}, average = {};
    std::optional<int64_t> device_allocated = {}, device_reserved = {};  ///< never invented on a CPU
    bool out_of_memory = false;          ///< whether memory was refused to an update
    std::optional<int64_t> budget = {};  ///< bytes of the process
    int64_t num_refusals = 0;
    std::vector<Refusal> refusals = {};  ///< the first ones
    std::string ledger_json = {};        ///< a JSON object, or empty: bytes by category, phase and module
    std::string plan_json = {};          ///< a JSON object, or empty: what the planner chose and learnt
  };
  struct Training {
    int64_t updates = 0, skipped = 0, samples = 0;
    std::optional<double> first_loss = {}, last_loss = {};
    std::vector<std::pair<std::string, double>> evaluation = {};
    std::string evaluated_weights = "model";  ///< or "average"
    bool stopped_early = false;
    bool interrupted = false;
  };
  Workload workload = {};
  Environment environment = {};
  Performance performance = {};
  Memory memory = {};
  Training training = {};
  EvidenceLevel evidence = EvidenceLevel::smoke;
};

/// Timing of the applied updates whose seconds are known, without the first `warmup_updates` applied ones.
/// Rates are sums over those updates divided by their seconds. Throws ArgumentError for `warmup_updates`
/// below 0.
RunRecord::Performance performance_of(const std::vector<Record>& records, int64_t warmup_updates);
/// "smoke", "cpu" or "repeated".
std::string evidence_name(EvidenceLevel evidence);
/// `smoke` below 10 measured updates, else `cpu`.
EvidenceLevel evidence_of(const RunRecord::Performance& performance);
/// The compiler, the processor's name and Accrue's version, as far as they are known here.
void fill_environment(RunRecord::Environment& environment);
/// Strict JSON with "format": "accrue-run/1" and the groups workload, environment, performance, memory,
/// training, evidence; what is not known is null.
std::string to_json(const RunRecord& record);

}  // namespace accrue
