// SPDX-License-Identifier: Apache-2.0
// Takes a run's metrics.jsonl and eval.jsonl, gives the records that were written.
#pragma once

#include <string>
#include <vector>

#include "accrue/report/record.h"

namespace accrue {

/// The records of a metrics.jsonl, in the file's order. Blank lines are skipped; a broken last line, which a
/// killed run leaves, is skipped and said in `notes`. Throws StateError with file:line for any other line
/// that is no record, and for a file that cannot be read. Fields that the line lacks are empty.
std::vector<Record> read_records(const std::string& path, std::vector<std::string>& notes);

/// The same for an eval.jsonl; every number that is not one of the named fields is a metric.
std::vector<EvalRecord> read_evaluations(const std::string& path, std::vector<std::string>& notes);

}  // namespace accrue
