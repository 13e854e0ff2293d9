// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/report/run_record.h"
#include "cli/training.h"

namespace accrue::cli {

/// The record of a run for run.json: timing, first loss and peak of this session, counts of the whole run.
RunRecord describe_run(const Session& session, const RunSummary& summary, const Training& training);

}  // namespace accrue::cli
