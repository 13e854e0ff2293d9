// SPDX-License-Identifier: Apache-2.0
#include "accrue/plan/cost_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "accrue/base/error.h"
#include "accrue/base/messages/plan.h"

namespace accrue {
namespace {

using Json = nlohmann::json;
using Column = std::vector<long double>;

constexpr size_t kMostPoints = 64;
// A column within this share of the others' span tells nothing that they do not: features are whole numbers,
// exact in double, and long double keeps 19 digits of them.
constexpr long double kDependent = 1e-14L;
// A term more has to lessen the sum of squares by this share.
constexpr long double kBetter = 1e-9L;
// Relative differences of this size are rounding: a value is a double, made of few sums.
constexpr long double kRounding = 1e-15L;
// Rounding times this, over at most 64 points, stays below 1e-8.
constexpr long double kFarthest = 1e6L;

std::array<double, 4> features(const GroupSize& size) {
  return {1, size.samples, size.total, size.squares};
}

long double dot(const Column& a, const Column& b) {
  long double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void subtract(Column& from, long double times, const Column& column) {
  for (size_t i = 0; i < from.size(); ++i) from[i] -= times * column[i];
}

/// Orthonormal columns of a matrix and the triangle that leads back to them.
struct Basis {
  std::vector<Column> columns;
  std::vector<size_t> kept;  // which of those that were tried
  std::array<std::array<long double, 4>, 4> triangle = {};

  /// False, and nothing changed, for a column that depends on those there.
  bool add(Column column, size_t index) {
    const long double whole = std::sqrt(dot(column, column));
    const size_t place = columns.size();
    std::array<long double, 4> shares = {};
    for (int pass = 0; pass < 2; ++pass) {  // the second takes out what rounding left
      for (size_t i = 0; i < place; ++i) {
        const long double share = dot(columns[i], column);
        shares[i] += share;
        subtract(column, share, columns[i]);
      }
    }
    const long double left = std::sqrt(dot(column, column));
    if (!(left > kDependent * whole)) return false;
    for (long double& value : column) value /= left;
    columns.push_back(std::move(column));
    kept.push_back(index);
    for (size_t i = 0; i < place; ++i) triangle[i][place] = shares[i];
    triangle[place][place] = left;
    return true;
  }

  /// How many times the rounding of the rows a prediction for `row` carries: the length of the shortest
  /// combination of them that makes it (the root of its leverage; Hoaglin and Welsch 1978).
  long double reach(const std::array<long double, 4>& row) const {
    std::array<long double, 4> shares = {};
    long double sum = 0;
    for (size_t j = 0; j < kept.size(); ++j) {
      shares[j] = row[kept[j]];
      for (size_t i = 0; i < j; ++i) shares[j] -= triangle[i][j] * shares[i];
      shares[j] /= triangle[j][j];
      sum += shares[j] * shares[j];
    }
    return std::sqrt(sum);
  }
};

struct Fit {
  std::array<double, 4> coefficients = {};
  long double residual = 0;
};

/// Least squares with these columns alone; nothing where they depend on each other or one would be below 0.
std::optional<Fit> fit_subset(const std::array<Column, 4>& matrix, Column target,
                              std::span<const size_t> subset) {
  Basis basis;
  for (const size_t column : subset)
    if (!basis.add(matrix[column], column)) return std::nullopt;
  std::array<long double, 4> solved = {};
  for (size_t i = 0; i < subset.size(); ++i) {
    solved[i] = dot(basis.columns[i], target);
    subtract(target, solved[i], basis.columns[i]);
  }
  Fit fit{.coefficients = {}, .residual = dot(target, target)};
  for (size_t i = subset.size(); i-- > 0;) {
    for (size_t j = i + 1; j < subset.size(); ++j) solved[i] -= basis.triangle[i][j] * solved[j];
    solved[i] /= basis.triangle[i][i];
    if (!(solved[i] >= 0)) return std::nullopt;
    fit.coefficients[subset[i]] = static_cast<double>(solved[i]);
  }
  return fit;
}

/// Columns 0 constant, 1 samples, 2 total, 3 squares; of equally good subsets the first stands.
const std::vector<std::vector<size_t>>& subsets() {
  static const std::vector<std::vector<size_t>> kSubsets = {
      {2},    {1},    {3},       {0},       {0, 2},    {0, 1},    {0, 3},      {2, 1},
      {2, 3}, {1, 3}, {0, 2, 1}, {0, 2, 3}, {0, 1, 3}, {2, 1, 3}, {0, 2, 1, 3}};
  return kSubsets;
}

[[noreturn]] void refuse(const std::string& reason) {
  fail(message::plan_cost_model, {{"reason", reason}});
}

}  // namespace

struct CostModel::Rows {
  std::array<Column, 4> matrix;
  Column target;
  long double smallest = 1;

  long double scale(double value) const noexcept { return value > 0 ? value : smallest; }
  Basis basis() const {
    Basis basis;
    for (size_t i = 0; i < matrix.size(); ++i) basis.add(matrix[i], i);
    return basis;
  }
};

CostModel::Rows CostModel::rows() const {
  // A relative difference needs a scale where 0 was measured.
  double smallest = 0;
  for (const Point& point : points_)
    if (point.value > 0 && (smallest == 0 || point.value < smallest)) smallest = point.value;
  Rows rows;
  if (smallest > 0) rows.smallest = smallest;
  for (const Point& point : points_) {
    const long double scale = rows.scale(point.value);
    const std::array<double, 4> row = features(point.size);
    for (size_t i = 0; i < row.size(); ++i) rows.matrix[i].push_back(row[i] / scale);
    rows.target.push_back(point.value / scale);
  }
  return rows;
}

bool CostModel::is_within_reach(const GroupSize& size, double value) const {
  const Rows all = rows();
  std::array<long double, 4> row = {};
  for (size_t i = 0; i < row.size(); ++i) row[i] = features(size)[i] / all.scale(value);
  return all.basis().reach(row) <= kFarthest;
}

void CostModel::fit() {
  const Rows all = rows();
  rank_ = static_cast<int>(all.basis().columns.size());
  is_line_ = points_.size() > 1 && std::all_of(points_.begin(), points_.end(),
                                               [this](const Point& point) { return is_on_line(point.size); });
  const long double rounding = static_cast<long double>(points_.size()) * kRounding * kRounding;
  Fit best{.coefficients = {}, .residual = dot(all.target, all.target)};
  for (const std::vector<size_t>& subset : subsets()) {
    const std::optional<Fit> fit = fit_subset(all.matrix, all.target, subset);
    if (fit && fit->residual < best.residual * (1 - kBetter) - rounding) best = *fit;
  }
  coefficients_ = best.coefficients;
}

void CostModel::fill_to(int64_t samples) {
  filled_to_ = static_cast<double>(std::max<int64_t>(samples, 1));
}

GroupSize CostModel::filled(const GroupSize& size) const noexcept {
  if (filled_to_ == 1 || size.samples < filled_to_) return size;
  const double samples = std::ceil(size.samples / filled_to_) * filled_to_;
  return {samples, samples * (size.total / size.samples), samples * (size.squares / size.samples)};
}

void CostModel::add(const GroupSize& given, double value) {
  const GroupSize size = filled(given);
  if (!std::isfinite(value) || value < 0) return;
  const double predicted = predict(size);
  const int known = rank_;
  const auto before =
      std::find_if(points_.begin(), points_.end(), [&](const Point& point) { return point.size == size; });
  double kept = value;
  bool is_news = true;
  bool is_told = known > 0;
  if (before != points_.end()) {
    kept = keep_smallest_ ? std::min(value, before->value) : std::max(value, before->value);
    is_news = kept != before->value;
    points_.erase(before);
  } else if (known > 0) {
    is_told = is_within_reach(size, value);
  }
  points_.push_back({size, kept});
  if (points_.size() > kMostPoints) {
    points_.pop_front();
    is_told = false;  // the rank may stay though another feature is told
  }
  if (is_news) fit();
  if (!is_told || rank_ > known || value == 0) return;
  const double error = std::abs(predicted - value) / value;
  largest_error_ = std::max(largest_error_, error);
  sum_errors_ += error;
  ++num_errors_;
}

/// Between the nearest two on a line through the origin; the slope of the largest two beyond them.
double CostModel::between(double samples) const noexcept {
  const Point* below = nullptr;
  const Point* above = nullptr;
  const Point* next = nullptr;  // the largest but one
  for (const Point& point : points_) {
    if (point.size.samples <= samples) {
      if (below == nullptr || point.size.samples > below->size.samples) {
        next = below;
        below = &point;
      } else if (next == nullptr || point.size.samples > next->size.samples) {
        next = &point;
      }
    } else if (above == nullptr || point.size.samples < above->size.samples) {
      above = &point;
    }
  }
  const Point* const low = above == nullptr ? next : below;
  const Point* const high = above == nullptr ? below : above;
  if (low == nullptr || high == nullptr) return -1;
  const double slope = (high->value - low->value) / (high->size.samples - low->size.samples);
  return low->value + std::max(slope, 0.0) * (samples - low->size.samples);
}

bool CostModel::is_on_line(const GroupSize& size) const noexcept {
  const GroupSize& first = points_.front().size;
  return first.samples > 0 && size.total * first.samples == first.total * size.samples &&
         size.squares * first.samples == first.squares * size.samples;
}

double CostModel::predict(const GroupSize& given) const noexcept {
  const GroupSize size = filled(given);
  if (is_line_ && is_on_line(size)) {
    if (const double value = between(size.samples); value >= 0) return value;
  }
  const std::array<double, 4> row = features(size);
  double sum = 0;
  for (size_t i = 0; i < row.size(); ++i) sum += coefficients_[i] * row[i];
  return sum;
}

std::string CostModel::to_json() const {
  Json points = Json::array();
  for (const Point& point : points_)
    points.push_back({point.size.samples, point.size.total, point.size.squares, point.value});
  return Json{{"keep_smallest", keep_smallest_},
              {"points", std::move(points)},
              {"largest_error", largest_error_},
              {"sum_errors", sum_errors_},
              {"num_errors", num_errors_}}
      .dump();
}

CostModel CostModel::from_json(const std::string& text) {
  CostModel model;
  try {
    const Json json = Json::parse(text);
    model.keep_smallest_ = json.at("keep_smallest").get<bool>();
    for (const Json& point : json.at("points")) {
      const auto values = point.get<std::array<double, 4>>();
      model.points_.push_back({{values[0], values[1], values[2]}, values[3]});
      if (*std::min_element(values.begin(), values.end()) < 0) refuse("a number is below 0");
    }
    model.largest_error_ = json.at("largest_error").get<double>();
    model.sum_errors_ = json.at("sum_errors").get<double>();
    model.num_errors_ = json.at("num_errors").get<int64_t>();
    // What was left out above, or taken for another type, shows when it is written again.
    if (Json::parse(model.to_json()) != json) refuse("it has other entries");
  } catch (const Json::exception& error) {
    refuse(error.what());
  }
  const bool errors_fit = model.num_errors_ >= 0 && model.largest_error_ >= 0 && model.sum_errors_ >= 0;
  if (!errors_fit || model.points_.size() > kMostPoints) refuse("a number is out of range");
  if (!model.points_.empty()) model.fit();
  return model;
}

}  // namespace accrue
