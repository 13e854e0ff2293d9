// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/groups.h"

#include <algorithm>

#include "accrue/base/messages/update.h"
#include "accrue/base/nearest.h"

namespace accrue {
namespace {

struct Claim {
  size_t group;
  std::string pattern;
};

std::string place(size_t group) {
  return "optimizer.groups[" + std::to_string(group) + "]";
}

const std::string* matched_name(std::string_view pattern, const std::vector<std::string>& names) {
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const auto& name) { return matches(pattern, name); });
  return found == names.end() ? nullptr : &*found;
}

std::vector<std::string> all_names(std::span<const std::vector<std::string>> parameters) {
  std::vector<std::string> all;
  for (const auto& names : parameters) all.insert(all.end(), names.begin(), names.end());
  return all;
}

void add_unmatched(Problems& problems, size_t group, const std::string& pattern,
                   std::span<const std::vector<std::string>> parameters) {
  constexpr size_t kMostNames = 10;
  const std::vector<std::string> names = all_names(parameters);
  std::string plain = pattern;
  std::erase_if(plain, [](char c) { return c == '*' || c == '?'; });
  std::string listed = join(std::span(names).first(std::min(kMostNames, names.size())));
  if (names.size() > kMostNames) listed += " and " + std::to_string(names.size() - kMostNames) + " more";
  problems.add(message::group_without_match, {{"group", place(group)},
                                              {"pattern", pattern},
                                              {"hint", did_you_mean(plain, names)},
                                              {"names", listed}});
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  size_t p = 0;
  size_t n = 0;
  size_t star = std::string_view::npos;  // where the last `*` stands, and where in `name` it was met
  size_t retry = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++retry;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(p), pattern.end(),
                     [](char c) { return c == '*'; });
}

std::vector<std::optional<size_t>> assign_groups(Problems& problems, std::span<const ParameterGroup> groups,
                                                 std::span<const std::vector<std::string>> parameters) {
  std::vector<std::optional<Claim>> claims(parameters.size());
  for (size_t group = 0; group < groups.size(); ++group) {
    if (groups[group].match.empty()) problems.add(message::group_without_pattern, {{"group", place(group)}});
    for (const std::string& pattern : groups[group].match) {
      bool used = false;
      for (size_t i = 0; i < parameters.size(); ++i) {
        const std::string* name = matched_name(pattern, parameters[i]);
        if (name == nullptr) continue;
        used = true;
        if (!claims[i]) {
          claims[i] = Claim{group, pattern};
        } else if (claims[i]->group != group) {
          problems.add(message::parameter_in_two_groups, {{"name", *name},
                                                          {"first", claims[i]->pattern},
                                                          {"first_group", place(claims[i]->group)},
                                                          {"second", pattern},
                                                          {"second_group", place(group)}});
        }
      }
      if (!used) add_unmatched(problems, group, pattern, parameters);
    }
  }
  std::vector<std::optional<size_t>> assigned(parameters.size());
  for (size_t i = 0; i < claims.size(); ++i) {
    if (claims[i]) assigned[i] = claims[i]->group;
  }
  return assigned;
}

}  // namespace accrue
