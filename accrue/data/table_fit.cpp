// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/data.h"
#include "accrue/base/nearest.h"
#include "accrue/data/numbers.h"
#include "accrue/data/table.h"
#include "accrue/data/table_columns.h"

namespace accrue {
namespace {

constexpr size_t kMostCategories = 64;

std::vector<std::string> input_names(const CsvTable& table, const DataOptions& options,
                                     const std::string& target) {
  if (!options.inputs.empty()) {
    if (std::find(options.inputs.begin(), options.inputs.end(), target) != options.inputs.end())
      fail(message::table_target_is_input, {{"path", table.path()}, {"name", target}});
    std::set<std::string> seen;
    for (const std::string& name : options.inputs)
      if (!seen.insert(name).second)
        fail(message::table_input_twice, {{"path", table.path()}, {"name", name}});
    return options.inputs;
  }
  std::vector<std::string> names;
  for (const std::string& name : table.columns())
    if (name != target) names.push_back(name);
  if (names.empty()) fail(message::table_no_input, {{"path", table.path()}, {"name", target}});
  return names;
}

// What the cells of a column are; the pointers are into the table.
struct Survey {
  int64_t num_numbers = 0;
  int64_t num_texts = 0;
  int64_t first_text_row = -1;
  std::set<std::string_view> texts;  // distinct cells, no more than one above the limit
};

Survey survey(const CsvTable& table, size_t column) {
  Survey found;
  for (int64_t row = 0; row < table.num_rows(); ++row) {
    const std::string_view cell = table.cell(row, column);
    if (cell.empty()) continue;
    const bool text = parse_number(cell).kind == CellNumber::Kind::text;
    ++(text ? found.num_texts : found.num_numbers);
    if (text && found.first_text_row < 0) found.first_text_row = row;
    if (found.texts.size() <= kMostCategories) found.texts.insert(cell);
  }
  return found;
}

void fit_categories(const CsvTable& table, size_t column, const Survey& found, ColumnTransform& transform) {
  const int64_t line = table.line(found.first_text_row);
  const std::string_view text = table.cell(found.first_text_row, column);
  if (found.texts.size() > kMostCategories)
    fail(message::table_too_many_categories, {{"path", table.path()},
                                              {"line", line},
                                              {"name", transform.name},
                                              {"cell", shown(text)},
                                              {"limit", kMostCategories}});
  // A single typing error must not turn a column of numbers into categories without a word.
  if (found.num_numbers > found.num_texts)
    warn(message::table_mostly_numbers, {{"path", table.path()},
                                         {"line", line},
                                         {"name", transform.name},
                                         {"cell", shown(text)},
                                         {"numbers", found.num_numbers},
                                         {"cells", found.num_numbers + found.num_texts}});
  transform.numeric = false;
  transform.categories.assign(found.texts.begin(), found.texts.end());
}

// Two passes: the deviation of large numbers close together must not cancel away.
void fit_numbers(const CsvTable& table, size_t column, std::span<const int64_t> rows,
                 ColumnTransform& transform) {
  std::vector<double> values;
  bool all_empty = true;
  for (const int64_t row : rows) {
    all_empty = all_empty && table.cell(row, column).empty();
    const CellNumber number = parse_number(table.cell(row, column));
    if (number.kind == CellNumber::Kind::finite) values.push_back(number.value);
  }
  // Cells beyond fp32 are listed with all others, when the table is applied.
  if (values.empty() && !all_empty) return;
  if (values.empty()) fail(message::table_no_values, {{"path", table.path()}, {"name", transform.name}});
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  transform.mean = sum / count;
  double squares = 0;
  for (const double value : values) squares += (value - transform.mean) * (value - transform.mean);
  transform.deviation = std::sqrt(squares / count);
  // The mean of equal numbers may differ from them by rounding.
  if (std::all_of(values.begin(), values.end(), [&](double value) { return value == values[0]; })) {
    transform.mean = values[0];
    transform.deviation = 0;
  }
}

std::vector<std::string> fit_classes(const CsvTable& table, size_t column) {
  std::set<std::string_view> seen;
  for (int64_t row = 0; row < table.num_rows(); ++row)
    if (!table.cell(row, column).empty()) seen.insert(table.cell(row, column));
  if (seen.size() < 2)
    fail(message::table_one_class,
         {{"path", table.path()}, {"name", table.columns()[column]}, {"classes", seen.size()}});
  std::vector<std::string> classes(seen.begin(), seen.end());
  if (std::all_of(classes.begin(), classes.end(), is_integer_text))
    std::sort(classes.begin(), classes.end(), integer_text_less);
  return classes;
}

}  // namespace

TableTransform fit_table(const CsvTable& table, std::span<const int64_t> training_rows,
                         const DataOptions& options, bool classification) {
  TableTransform transform;
  transform.target = options.target.empty() ? table.columns().back() : options.target;
  transform.standardize = options.standardize;
  transform.missing = options.missing;
  std::vector<std::string> names = input_names(table, options, transform.target);
  names.push_back(transform.target);
  const std::vector<size_t> columns = find_columns(table, names);
  for (size_t index = 0; index + 1 < names.size(); ++index) {
    ColumnTransform& input = transform.inputs.emplace_back();
    input.name = names[index];
    const Survey found = survey(table, columns[index]);
    if (found.num_texts > 0) {
      fit_categories(table, columns[index], found, input);
    } else {
      fit_numbers(table, columns[index], training_rows, input);
    }
  }
  if (classification) transform.classes = fit_classes(table, columns.back());
  return transform;
}

}  // namespace accrue
