// SPDX-License-Identifier: Apache-2.0
#include "accrue/report/strict_text.h"

#include <cmath>

namespace accrue {
namespace {

using Json = nlohmann::ordered_json;

void name_non_finite(const Json& value, const std::string& place, Json& names) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (!std::isfinite(number)) names[place] = std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  }
  if (!value.is_structured()) return;
  for (const auto& [key, part] : value.items()) {
    std::string inside = place;
    if (!inside.empty()) inside += '.';
    inside += key;
    name_non_finite(part, inside, names);
  }
}

}  // namespace

std::string strict_text(nlohmann::ordered_json object) {
  Json names;
  name_non_finite(object, "", names);
  object["non_finite"] = names;
  // A name that is not valid UTF-8 must not cost the record.
  return object.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace accrue
