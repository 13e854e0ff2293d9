// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/strict_json.h"

#include <set>
#include <vector>

#include "accrue/base/messages/formats.h"
#include "accrue/formats/utf8.h"

namespace accrue {
namespace {

// Printing and copying a value recurse, so its depth is bounded.
constexpr int kMostDepth = 64;

using Json = nlohmann::ordered_json;

// `on_broken` is given the library's error and throws ours.
template <typename OnBroken>
Json parse_strictly(std::string_view text, const std::string& where, Purpose purpose, OnBroken on_broken) {
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
    on_broken(error);
    throw;
  } catch (const Json::exception&) {
    fail(for_purpose(message::json_out_of_range, purpose), {{"where", where}});
  }
}

// What is wrong, where it can be told: the library's own words stay inside.
const char* reason_of(const Json::parse_error& error, std::string_view text) {
  if (error.byte > text.size()) return " (the line ends too early)";
  const bool surrogate = std::string_view(error.what()).find(" surrogate U+") != std::string_view::npos;
  return surrogate ? " (a \\u escape is half of a surrogate pair)" : "";
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where, Purpose purpose) {
  return parse_strictly(text, where, purpose, [&](const Json::parse_error& error) {
    fail(for_purpose(message::json_broken, purpose), {{"where", where}, {"byte", error.byte}});
  });
}

Json parse_json_line(std::string_view text, const std::string& path, int64_t line) {
  const std::string where = path + ":" + std::to_string(line);
  return parse_strictly(text, where, Purpose::data, [&](const Json::parse_error& error) {
    const size_t before = error.byte == 0 ? 0 : error.byte - 1;
    fail(message::json_line_broken, {{"where", where},
                                     {"column", count_characters(text.substr(0, before)) + 1},
                                     {"reason", reason_of(error, text)}});
  });
}

}  // namespace accrue
