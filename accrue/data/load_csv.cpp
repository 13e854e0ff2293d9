// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <numeric>

#include "accrue/base/log.h"
#include "accrue/base/messages/data.h"
#include "accrue/base/nearest.h"
#include "accrue/data/load_parts.h"
#include "accrue/data/table.h"
#include "accrue/data/table_columns.h"

namespace accrue {
namespace {

template <typename T>
at::Tensor copied(std::vector<T>& values, at::IntArrayRef shape, at::ScalarType type) {
  return at::from_blob(values.data(), shape, at::TensorOptions(type)).clone();
}

std::shared_ptr<TensorData> part(const TableTransform& transform, const CsvTable& table,
                                 const std::vector<int64_t>& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  const at::Tensor x = at::zeros({count, transform.width()}, at::kFloat);
  TableTargets targets =
      apply_table(transform, table, rows, {x.mutable_data_ptr<float>(), static_cast<size_t>(x.numel())});
  NamedTensors fields;
  fields.add("x", x);
  fields.add("y", transform.classification() ? copied(targets.class_ids, {count}, at::kLong)
                                             : copied(targets.numbers, {count, 1}, at::kFloat));
  return std::make_shared<TensorData>(std::move(fields), table.path());
}

void note_table(const CsvTable& table, std::vector<std::string>& notes) {
  if (table.num_blank_lines() > 0)
    notes.push_back(table.path() + ": " + std::to_string(table.num_blank_lines()) + " blank line(s) skipped");
}

/// Which columns are no numbers: one odd spelling (0x10, 1_000) makes a column into categories.
void note_categories(const TableTransform& transform, const std::string& path,
                     std::vector<std::string>& notes) {
  std::vector<std::string> columns;
  for (const ColumnTransform& input : transform.inputs)
    if (!input.numeric) columns.push_back(input.name + " (" + std::to_string(input.categories.size()) + ")");
  if (!columns.empty()) notes.push_back(path + ": read as categories: " + shown_names(columns));
}

std::shared_ptr<Data> load_valid(const TableTransform& transform, const std::string& path,
                                 std::vector<std::string>& notes) {
  const CsvTable table = read_csv(path);
  note_table(table, notes);
  const std::vector<std::string> unused = unused_columns(transform, table);
  if (!unused.empty()) warn(message::load_unused_columns, {{"path", path}, {"columns", shown_names(unused)}});
  std::vector<int64_t> rows(static_cast<size_t>(table.num_rows()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return part(transform, table, rows);
}

TableTransform saved_transform(const LoadRequest& request) {
  TableTransform transform = table_transform_from_json(request.transform_json);
  if (transform.classification() != request.classification) fail(message::load_other_task);
  return transform;
}

}  // namespace

Dataset load_csv(const LoadRequest& request) {
  const DataOptions& options = request.options;
  const CsvTable table = read_csv(options.train);
  const Shares shares = share_out(table.num_rows(), options, request.seed);
  const TableTransform transform = request.transform_json.empty()
                                       ? fit_table(table, shares.train, options, request.classification)
                                       : saved_transform(request);
  Dataset dataset;
  note_table(table, dataset.notes);
  note_categories(transform, options.train, dataset.notes);
  const std::vector<std::string> unused = unused_columns(transform, table);
  if (!unused.empty()) dataset.notes.push_back(options.train + ": not used: " + shown_names(unused));
  const std::shared_ptr<TensorData> train = part(transform, table, shares.train);
  dataset.inputs = {spec_of("x", train->fields()["x"])};
  dataset.target = spec_of("y", train->fields()["y"]);
  dataset.train = train;
  if (!shares.valid.empty()) dataset.valid = part(transform, table, shares.valid);
  if (!options.valid.empty()) dataset.valid = load_valid(transform, options.valid, dataset.notes);
  dataset.classes = transform.classes;
  dataset.num_classes = static_cast<int64_t>(transform.classes.size());
  dataset.transform_json = to_json(transform);
  return dataset;
}

}  // namespace accrue
