// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/data/data_options.h"
#include "accrue/formats/csv.h"

namespace accrue {

/// What one input column becomes: a number, or one 0/1 feature a category.
struct ColumnTransform {
  std::string name;
  bool numeric = true;
  double mean = 0;                      ///< of the training rows; stands for an empty cell
  double deviation = 1;                 ///< of the training rows, population form
  std::vector<std::string> categories;  ///< sorted by text; empty for a numeric column

  int64_t width() const noexcept { return numeric ? 1 : static_cast<int64_t>(categories.size()); }
  bool operator==(const ColumnTransform&) const = default;
};

/// How a table becomes arrays. Fitted on the training file, kept with the checkpoint, applied to every file.
struct TableTransform {
  std::vector<ColumnTransform> inputs;
  std::string target;
  bool standardize = true;
  Missing missing = Missing::error;
  std::vector<std::string> classes;  ///< class i is the text classes[i]; empty for regression

  bool classification() const noexcept { return !classes.empty(); }
  /// Features of one sample.
  int64_t width() const noexcept;
  bool operator==(const TableTransform&) const = default;
};

/// Kinds, categories and classes come from all rows, means and deviations from `training_rows` alone. Throws
/// DataError for columns that are missing, cells that are no finite fp32 number, more than 64 categories, one
/// class.
TableTransform fit_table(const CsvTable& table, std::span<const int64_t> training_rows,
                         const DataOptions& options, bool classification);

/// What the samples are to give.
struct TableTargets {
  std::vector<float> numbers;      ///< regression: [rows, 1]
  std::vector<int64_t> class_ids;  ///< classification: [rows]
};

/// Writes the features into `features`, [rows, width] zeros of the caller's, row-major. Throws DataError that
/// lists every wrong cell (20 at most, then their number) with line and column, and for a missing column.
/// Columns that the transformation does not know are left out.
TableTargets apply_table(const TableTransform& transform, const CsvTable& table,
                         std::span<const int64_t> rows, std::span<float> features);

/// The columns of `table` that the transformation does not use.
std::vector<std::string> unused_columns(const TableTransform& transform, const CsvTable& table);

std::string to_json(const TableTransform& transform);
/// Reads what `to_json` wrote; CheckpointError otherwise.
TableTransform table_transform_from_json(std::string_view text);

}  // namespace accrue
