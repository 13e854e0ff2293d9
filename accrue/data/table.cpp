// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/table.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/data.h"
#include "accrue/base/nearest.h"
#include "accrue/data/numbers.h"
#include "accrue/data/table_columns.h"

namespace accrue {
namespace {

constexpr int64_t kMostListed = 20;
constexpr double kExactInFp32 = 16777216;  // 2^24: above it not every whole number is one of fp32

using Places = std::unordered_map<std::string_view, int64_t>;

Places places_of(const std::vector<std::string>& names) {
  Places places;
  for (const std::string& name : names) places.emplace(name, static_cast<int64_t>(places.size()));
  return places;
}

// Fills arrays column by column and gathers every wrong cell.
class Applier {
 public:
  Applier(const TableTransform& transform, const CsvTable& table, std::span<const int64_t> rows,
          std::span<float> features)
      : transform_(transform), table_(table), rows_(rows), features_(features) {}

  TableTargets apply() {
    std::vector<std::string> names;
    for (const ColumnTransform& input : transform_.inputs) names.push_back(input.name);
    names.push_back(transform_.target);
    const std::vector<size_t> columns = find_columns(table_, names);
    size_t feature = 0;
    for (size_t index = 0; index < transform_.inputs.size(); ++index) {
      const ColumnTransform& input = transform_.inputs[index];
      if (input.numeric) {
        fill_numbers(input, columns[index], feature);
      } else {
        fill_categories(input, columns[index], feature);
      }
      feature += static_cast<size_t>(input.width());
    }
    if (transform_.classification()) {
      fill_classes(columns.back());
    } else {
      fill_targets(columns.back());
    }
    if (num_wrong_ > kMostListed)
      problems_.add(message::table_more_cells, {{"number", num_wrong_ - kMostListed}});
    problems_.throw_if_any();
    return std::move(targets_);
  }

 private:
  float& feature_at(size_t index, size_t feature) { return features_[index * width_ + feature]; }

  void wrong(const Message& message, size_t index, size_t column) {
    if (++num_wrong_ > kMostListed) return;
    problems_.add(message, {{"path", table_.path()},
                            {"line", table_.line(rows_[index])},
                            {"column", column + 1},
                            {"name", table_.columns()[column]},
                            {"cell", shown(table_.cell(rows_[index], column))}});
  }

  void fill_numbers(const ColumnTransform& input, size_t column, size_t feature) {
    std::unordered_map<float, std::string_view> large;
    bool told = false;
    for (size_t index = 0; index < rows_.size(); ++index) {
      const std::string_view cell = table_.cell(rows_[index], column);
      const CellNumber number = parse_number(cell);
      double value = number.value;
      if (cell.empty() && transform_.missing == Missing::mean) {
        value = input.mean;
      } else if (number.kind != CellNumber::Kind::finite) {
        wrong(cell.empty()                            ? message::table_empty_cell
              : number.kind == CellNumber::Kind::text ? message::table_no_number
                                                      : message::table_not_finite,
              index, column);
        continue;
      }
      const float result = standardized(input, value);
      feature_at(index, feature) = result;
      if (!told && std::abs(value) >= kExactInFp32 && is_integer_text(cell))
        told = tell_if_merged(large, result, cell, input.name);
    }
  }

  float standardized(const ColumnTransform& input, double value) const {
    if (!transform_.standardize) return static_cast<float>(value);
    if (input.deviation == 0) return 0;
    return static_cast<float>((value - input.mean) / input.deviation);
  }

  static bool tell_if_merged(std::unordered_map<float, std::string_view>& seen, float value,
                             std::string_view cell, const std::string& name) {
    const std::string_view before = seen.emplace(value, cell).first->second;
    if (before == cell) return false;
    warn(message::table_merged_numbers, {{"name", name}, {"first", before}, {"second", cell}});
    return true;
  }

  void fill_categories(const ColumnTransform& input, size_t column, size_t feature) {
    const Places places = places_of(input.categories);
    for (size_t index = 0; index < rows_.size(); ++index) {
      const std::string_view cell = table_.cell(rows_[index], column);
      if (cell.empty() && transform_.missing == Missing::mean) continue;
      const auto found = places.find(cell);
      if (cell.empty() || found == places.end()) {
        wrong(cell.empty() ? message::table_empty_cell : message::table_unknown_category, index, column);
      } else {
        feature_at(index, feature + static_cast<size_t>(found->second)) = 1;
      }
    }
  }

  void fill_classes(size_t column) {
    const Places places = places_of(transform_.classes);
    for (size_t index = 0; index < rows_.size(); ++index) {
      const std::string_view cell = table_.cell(rows_[index], column);
      const auto found = places.find(cell);
      if (found == places.end())
        wrong(cell.empty() ? message::table_empty_target : message::table_unknown_class, index, column);
      targets_.class_ids.push_back(found == places.end() ? 0 : found->second);
    }
  }

  void fill_targets(size_t column) {
    for (size_t index = 0; index < rows_.size(); ++index) {
      const std::string_view cell = table_.cell(rows_[index], column);
      const CellNumber number = parse_number(cell);
      if (number.kind != CellNumber::Kind::finite)
        wrong(cell.empty()                            ? message::table_empty_target
              : number.kind == CellNumber::Kind::text ? message::table_no_number
                                                      : message::table_not_finite,
              index, column);
      targets_.numbers.push_back(static_cast<float>(number.value));
    }
  }

  const TableTransform& transform_;
  const CsvTable& table_;
  std::span<const int64_t> rows_;
  std::span<float> features_;
  size_t width_ = static_cast<size_t>(transform_.width());
  TableTargets targets_;
  Problems problems_;
  int64_t num_wrong_ = 0;
};

}  // namespace

std::vector<size_t> find_columns(const CsvTable& table, std::span<const std::string> names) {
  std::vector<size_t> columns;
  Problems problems;
  for (const std::string& name : names) {
    const auto place = std::find(table.columns().begin(), table.columns().end(), name);
    columns.push_back(static_cast<size_t>(place - table.columns().begin()));
    if (place == table.columns().end())
      problems.add(message::table_column_missing, {{"path", table.path()},
                                                   {"name", name},
                                                   {"columns", shown_names(table.columns())},
                                                   {"hint", did_you_mean(name, table.columns())}});
  }
  problems.throw_if_any();
  return columns;
}

std::string shown(std::string_view cell) {
  constexpr size_t kMost = 40;
  if (cell.size() <= kMost) return std::string(cell);
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(cell[end]) & 0xC0) == 0x80) --end;  // not inside a character
  return std::string(cell.substr(0, end)) + "...";
}

std::string shown_names(std::span<const std::string> names) {
  constexpr size_t kMost = 20;
  if (names.size() <= kMost) return join(names);
  return join(names.first(kMost)) + " and " + std::to_string(names.size() - kMost) + " more";
}

int64_t TableTransform::width() const noexcept {
  int64_t sum = 0;
  for (const ColumnTransform& input : inputs) sum += input.width();
  return sum;
}

TableTargets apply_table(const TableTransform& transform, const CsvTable& table,
                         std::span<const int64_t> rows, std::span<float> features) {
  return Applier(transform, table, rows, features).apply();
}

std::vector<std::string> unused_columns(const TableTransform& transform, const CsvTable& table) {
  std::vector<std::string> unused;
  for (const std::string& name : table.columns()) {
    const bool input = std::any_of(transform.inputs.begin(), transform.inputs.end(),
                                   [&](const ColumnTransform& column) { return column.name == name; });
    if (!input && name != transform.target) unused.push_back(name);
  }
  return unused;
}

}  // namespace accrue
