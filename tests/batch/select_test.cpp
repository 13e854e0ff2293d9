// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "accrue/batch/batch.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace accrue {
namespace {
namespace selecting {

using test::same_bits;
using Rows = std::vector<int64_t>;

/// Fields of several types and shapes, ragged or not; ids given (some twice) or not.
Batch any_batch() {
  const auto samples = *rc::gen::inRange<int64_t>(1, 12);
  const bool ragged = *rc::gen::arbitrary<bool>();
  Rows offsets = {0};
  for (int64_t i = 0; i < samples; ++i) offsets.push_back(offsets.back() + *rc::gen::inRange<int64_t>(1, 7));
  const int64_t n = ragged ? offsets.back() : samples;
  NamedTensors fields;
  fields.add("input_ids", at::arange(n, at::kLong));
  if (ragged) fields.add(kOffsets, at::tensor(offsets, at::kLong));
  fields.add("x", at::arange(n * 6, at::kFloat).reshape({n, 2, 3}));
  fields.add("turned", at::arange(n * 3, at::kDouble).reshape({3, n}).t());
  fields.add("narrow", at::arange(n, at::kInt).to(at::kUInt16));
  fields.add("half", at::arange(n, at::kFloat).to(at::kBFloat16));
  fields.add("flag", at::arange(n, at::kLong).remainder(2).to(at::kBool));
  Rows ids;
  if (*rc::gen::arbitrary<bool>())
    for (int64_t i = 0; i < samples; ++i) ids.push_back(*rc::gen::inRange<int64_t>(0, 5));
  return Batch(fields, ids);
}

void expect_equal(const Batch& got, const Batch& expected) {
  RC_ASSERT(got.ids() == expected.ids());
  RC_ASSERT(got.occurrences() == expected.occurrences());
  RC_ASSERT(got.has_own_ids() == expected.has_own_ids());
  RC_ASSERT(got.is_ragged() == expected.is_ragged());
  RC_ASSERT(got.fields().size() == expected.fields().size());
  for (const auto& [name, field] : expected.fields()) RC_ASSERT(same_bits(got[name], field));
}

/// What `rows(i, 1)` gives for each row, laid end to end by hand.
void expect_rows_one_by_one(const Batch& got, const Batch& batch, const Rows& rows) {
  Rows ids;
  Rows occurrences;
  Rows offsets = {0};
  for (const auto& [name, field] : batch.fields()) {
    if (name == kOffsets) continue;
    std::vector<at::Tensor> pieces;
    for (const int64_t row : rows) pieces.push_back(batch.rows(row, 1)[name]);
    RC_ASSERT(same_bits(got[name], at::cat(pieces)));
    RC_ASSERT(got[name].is_contiguous());
    RC_ASSERT(!got[name].is_alias_of(field));
  }
  for (const int64_t row : rows) {
    const Batch one = batch.rows(row, 1);
    ids.push_back(one.ids()[0]);
    if (!one.occurrences().empty()) occurrences.push_back(one.occurrences()[0]);
    offsets.push_back(offsets.back() + one.num_tokens());
  }
  RC_ASSERT(got.ids() == ids);
  RC_ASSERT(got.occurrences() == occurrences);
  RC_ASSERT(got.has_own_ids() == batch.has_own_ids());
  RC_ASSERT(got.is_ragged() == batch.is_ragged());
  if (batch.is_ragged()) RC_ASSERT(Rows(got.offsets().begin(), got.offsets().end()) == offsets);
}

RC_GTEST_PROP(Select, IsRowsOneByOne, ()) {
  const Batch batch = any_batch();
  const auto count = *rc::gen::inRange<size_t>(1, 15);
  const auto rows = *rc::gen::container<Rows>(count, rc::gen::inRange<int64_t>(0, batch.size()));
  const Batch selected = batch.select(rows);
  expect_rows_one_by_one(selected, batch, rows);
  // It is a whole batch: the constructor takes it, and parts of it can be taken.
  static_cast<void>(Batch(selected.fields(), selected.ids()));
  expect_equal(selected.rows(selected.size() - 1, 1), batch.select({{rows.back()}}));
}

RC_GTEST_PROP(Select, AllRowsInOrderAreTheBatch, ()) {
  const Batch batch = any_batch();
  Rows all(static_cast<size_t>(batch.size()));
  std::iota(all.begin(), all.end(), int64_t{0});
  expect_equal(batch.select(all), batch);
}

RC_GTEST_PROP(Select, SizesAreTheTokensOfEachSample, ()) {
  const Batch batch = any_batch();
  const Rows sizes = batch.sizes();
  RC_ASSERT(static_cast<int64_t>(sizes.size()) == batch.size());
  for (int64_t i = 0; i < batch.size(); ++i) {
    const int64_t tokens = batch.rows(i, 1).num_tokens();
    RC_ASSERT(sizes[static_cast<size_t>(i)] == (batch.is_ragged() ? tokens : 1));
  }
}

TEST(Select, RefusesNoRowAndRowsThatAreNotThere) {
  const Batch batch({{"x", at::zeros({4, 2})}});
  const auto text = [](const std::string& row) {
    return "row " + row + " was selected of a batch of 4; rows from 0 to below 4 are there";
  };
  EXPECT_ERROR(batch.select({}), ArgumentError,
               "no row was selected of a batch of 4; at least one is needed");
  EXPECT_ERROR(batch.select(Rows{0, 4}), IndexError, text("4"));
  EXPECT_ERROR(batch.select(Rows{-1}), IndexError, text("-1"));
}

TEST(Select, AnEmptyBatchHasNoSizes) {
  EXPECT_TRUE(Batch().sizes().empty());
}

}  // namespace selecting
}  // namespace
}  // namespace accrue
