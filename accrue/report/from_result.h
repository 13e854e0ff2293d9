// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "accrue/memory/ledger.h"
#include "accrue/report/record.h"
#include "accrue/update/updater.h"

namespace accrue {

/// The record of an update: everything that the result knows, samples from `micro_sizes`, peak memory and the
/// wall clock of now. `total_seconds`: wall time since the previous update's end, data included. Epoch and
/// the counts of the run are the caller's to fill.
Record make_record(const UpdateResult& result, std::optional<double> total_seconds = std::nullopt);

/// The exact rows: bytes of the model's parameters (a tied one once), of the gradient sums, of the
/// optimizer's state (without masters), which our own optimizers have from the start and torch's from the
/// first update, of the masters and of the averages; and of the gradients that the caller computed, if any.
memory::Ledger static_ledger(const Model& model, const Updater& updater);

/// Fills `ledger.measured`, the process's peak so far (empty where the system does not tell), and where the
/// allocator is installed `ledger.phases`.
void add_measured(memory::Ledger& ledger);

/// Fills `ledger.modules`: the model's segments, and what lies outside of them by the first two parts of its
/// name, in the order of the parameters. Activations of segments are what their forward kept, those of a
/// chain's layers their share of `measured_activations`.
void add_modules(memory::Ledger& ledger, const Model& model, const Updater& updater);

}  // namespace accrue
