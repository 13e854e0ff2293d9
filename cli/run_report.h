// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/report/console.h"
#include "accrue/report/run_record.h"
#include "cli/session.h"

namespace accrue::cli {

/// The record of a run that has ended, for run.json.
RunRecord describe_run(const Session& session, const RunSummary& summary, const std::vector<Record>& records);

}  // namespace accrue::cli
