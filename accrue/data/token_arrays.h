// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "accrue/data/named_tensors.h"
#include "accrue/formats/token_rows.h"

namespace accrue {

/// Sequences from arrays of a file called `path`, for messages. Either rectangles "input_ids" [n, T] with
/// "attention_mask" [n, T] (0 or 1; left out: all 1) and "labels" [n, T] (left out: the ids): positions with
/// mask 0 are left out, and a label there is not counted. Or laid end to end: "input_ids" [tokens], "offsets"
/// [n + 1], "labels" [tokens]. Integers of any type. Limits as for `read_token_rows`. DataErrors name field
/// and row.
TokenRows rows_of_arrays(const NamedTensors& fields, const std::string& path, const TokenRowOptions& options);

}  // namespace accrue
