// SPDX-License-Identifier: Apache-2.0
// For sources only: it shows nlohmann::json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace accrue {

/// An object as strict JSON, indented. Numbers that are not finite become null and are named by their dotted
/// place in "non_finite" ("nan", "inf", "-inf"), which is null where there are none.
std::string strict_text(nlohmann::ordered_json object);

}  // namespace accrue
