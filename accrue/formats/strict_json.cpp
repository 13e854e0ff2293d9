// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/strict_json.h"

#include <set>
#include <vector>
#include "accrue/base/messages/formats.h"

namespace accrue {
namespace {

// Printing and copying a value recurse, so its depth is bounded.
constexpr int kMostDepth = 64;

}  // namespace

nlohmann::ordered_json parse_json(std::string_view text, const std::string& where, Purpose purpose) {
  using Json = nlohmann::ordered_json;
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMostDepth)
      fail(for_purpose(message::json_too_deep, purpose), {{"where", where}, {"limit", kMostDepth}});
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      fail(for_purpose(message::json_duplicate_key, purpose),
           {{"where", where}, {"key", value.get<std::string>()}});
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), check);
  } catch (const Json::parse_error& error) {
    fail(for_purpose(message::json_broken, purpose), {{"where", where}, {"byte", error.byte}});
  } catch (const Json::exception&) {
    fail(for_purpose(message::json_out_of_range, purpose), {{"where", where}});
  }
}

}  // namespace accrue
