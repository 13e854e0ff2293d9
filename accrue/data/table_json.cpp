// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "accrue/base/messages/data.h"
#include "accrue/data/table.h"
#include "accrue/formats/strict_json.h"

namespace accrue {
namespace {

constexpr const char* kFormat = "accrue-table/1";

ColumnTransform column_from_json(const nlohmann::ordered_json& value) {
  ColumnTransform column;
  value.at("name").get_to(column.name);
  if (value.contains("categories")) {
    column.numeric = false;
    value.at("categories").get_to(column.categories);
    return column;
  }
  value.at("mean").get_to(column.mean);
  value.at("deviation").get_to(column.deviation);
  return column;
}

}  // namespace

std::string to_json(const TableTransform& transform) {
  nlohmann::ordered_json value = {{"format", kFormat},
                                  {"target", transform.target},
                                  {"standardize", transform.standardize},
                                  {"missing", transform.missing == Missing::mean ? "mean" : "error"},
                                  {"classes", transform.classes},
                                  {"inputs", nlohmann::ordered_json::array()}};
  for (const ColumnTransform& input : transform.inputs) {
    if (input.numeric) {
      value["inputs"].push_back({{"name", input.name}, {"mean", input.mean}, {"deviation", input.deviation}});
    } else {
      value["inputs"].push_back({{"name", input.name}, {"categories", input.categories}});
    }
  }
  return value.dump(2);
}

TableTransform table_transform_from_json(std::string_view text) {
  const std::string where = "data transformation";
  const nlohmann::ordered_json value = parse_json(text, where, Purpose::checkpoint);
  try {
    TableTransform transform;
    if (value.at("format").get<std::string>() != kFormat) fail(message::table_json, {{"where", where}});
    value.at("target").get_to(transform.target);
    value.at("standardize").get_to(transform.standardize);
    transform.missing = value.at("missing").get<std::string>() == "mean" ? Missing::mean : Missing::error;
    value.at("classes").get_to(transform.classes);
    for (const auto& input : value.at("inputs")) transform.inputs.push_back(column_from_json(input));
    return transform;
  } catch (const nlohmann::json::exception&) {
    fail(message::table_json, {{"where", where}});
  }
}

}  // namespace accrue
