// SPDX-License-Identifier: Apache-2.0
#include "accrue/batch/batch.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace accrue {
namespace {

using Ids = std::vector<int64_t>;

Batch made() {
  return Batch({{"x", at::arange(24, at::kFloat).reshape({8, 3})}, {"y", at::arange(8, at::kLong)}});
}

TEST(Batch, CountsSamplesAndBytes) {
  const Batch batch = made();
  EXPECT_EQ(batch.size(), 8);
  EXPECT_EQ(batch.ids(), (Ids{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(batch.bytes(), 24 * 4 + 8 * 8);
  EXPECT_EQ(Batch().size(), 0);
  EXPECT_EQ(Batch({{"x", at::zeros({2})}}, {7, 7}).ids(), (Ids{7, 7}));
}

TEST(Batch, RowsAreViewsOfEveryField) {
  const Batch batch = made();
  const Batch part = batch.rows(2, 2);
  EXPECT_EQ(part.size(), 2);
  EXPECT_EQ(part.ids(), (Ids{2, 3}));
  EXPECT_EQ(part["x"][0][0].item<float>(), 6);
  EXPECT_EQ(part["x"][1][2].item<float>(), 11);
  EXPECT_EQ(part["y"][1].item<int64_t>(), 3);
  EXPECT_EQ(part["x"].const_data_ptr<float>(), batch["x"].const_data_ptr<float>() + 6);
  EXPECT_EQ(batch.rows(7, 1).ids(), Ids{7});
  EXPECT_EQ(batch.rows(0, 8).size(), 8);
  EXPECT_EQ(part.rows(1, 1).ids(), Ids{3});
}

TEST(Batch, RemembersWhetherItsIdsWereGiven) {
  EXPECT_FALSE(made().has_own_ids());
  EXPECT_FALSE(made().rows(2, 3).has_own_ids());
  const Batch own(made().fields(), {5, 4, 3, 2, 1, 0, 7, 6});
  EXPECT_TRUE(own.has_own_ids());
  EXPECT_TRUE(own.rows(2, 3).has_own_ids());
}

TEST(Batch, NumbersTheOccurrencesOfAnIdOnceForAllParts) {
  EXPECT_TRUE(made().occurrences().empty());
  const NamedTensors fields = {{"x", at::arange(6, at::kFloat)}};
  EXPECT_TRUE(Batch(fields, {5, 4, 3, 2, 1, 0}).occurrences().empty());
  const Batch batch(fields, {4, 7, 4, 4, 7, 1});
  EXPECT_EQ(batch.occurrences(), (Ids{0, 0, 1, 2, 1, 0}));
  EXPECT_EQ(batch.rows(2, 3).occurrences(), (Ids{1, 2, 1}));
  EXPECT_EQ(batch.rows(2, 3).rows(1, 1).occurrences(), Ids{2});
}

TEST(Batch, OtherFieldsOfTheSameSamples) {
  const NamedTensors fields = {{"z", at::zeros({2})}};
  const Batch part = Batch({{"x", at::arange(4, at::kFloat)}}, {4, 7, 4, 7}).rows(2, 2);
  const Batch other = part.with_fields(fields);
  EXPECT_EQ(other.ids(), (Ids{4, 7}));
  EXPECT_EQ(other.occurrences(), (Ids{1, 1}));
  EXPECT_TRUE(other.has_own_ids());
  EXPECT_TRUE(other.fields().contains("z"));
  const Batch bare = made().rows(3, 2).with_fields(fields);
  EXPECT_EQ(bare.ids(), (Ids{3, 4}));
  EXPECT_FALSE(bare.has_own_ids());
  EXPECT_ERROR(made().with_fields(fields), ArgumentError,
               "8 ids were given for 2 samples; give one for each, or none");
}

TEST(Batch, RefusesRowsOutsideOfIt) {
  const Batch batch = made();
  const auto text = [](const std::string& range) {
    return "rows [" + range + ") were asked for of a batch of 8; at least one row inside the batch is needed";
  };
  EXPECT_ERROR(batch.rows(0, 0), IndexError, text("0, 0 + 0"));
  EXPECT_ERROR(batch.rows(-1, 2), IndexError, text("-1, -1 + 2"));
  EXPECT_ERROR(batch.rows(7, 2), IndexError, text("7, 7 + 2"));
  EXPECT_ERROR(batch.rows(9, 1), IndexError, text("9, 9 + 1"));
  EXPECT_ERROR(batch.rows(1, INT64_MAX), IndexError, text("1, 1 + 9223372036854775807"));
}

TEST(Batch, RefusesFieldsThatAreNoBatch) {
  EXPECT_ERROR(Batch(NamedTensors()), ArgumentError,
               "a batch without a field was given; at least one tensor is needed");
  EXPECT_ERROR(Batch({{"x", at::scalar_tensor(1.0)}}), ArgumentError,
               "field \"x\" has no first dimension that counts the samples; every field needs one");
  EXPECT_ERROR(Batch({{"x", at::zeros({2})}, {"y", at::Tensor()}}), ArgumentError,
               "field \"y\" has no first dimension that counts the samples; every field needs one");
  EXPECT_ERROR(Batch({{"x", at::zeros({2})}, {"y", at::zeros({3})}}), ArgumentError,
               "field \"x\" has 2 samples and field \"y\" has 3; all fields need the same first dimension");
  EXPECT_ERROR(Batch({{"x", at::zeros({0, 3})}}), ArgumentError,
               "field \"x\" has no samples; a batch needs at least 1");
  EXPECT_ERROR(Batch({{"x", at::zeros({2})}}, {1, 2, 3}), ArgumentError,
               "3 ids were given for 2 samples; give one for each, or none");
}

at::Tensor longs(std::initializer_list<int64_t> values) {
  return at::tensor(at::ArrayRef<int64_t>(values), at::kLong);
}

/// Four sequences of 2, 1, 3 and 2 tokens.
Batch sequences(Ids ids = {}) {
  return Batch({{"input_ids", at::arange(8, at::kLong)},
                {kOffsets, longs({0, 2, 3, 6, 8})},
                {"features", at::arange(16, at::kFloat).reshape({8, 2})}},
               std::move(ids));
}

Ids offsets_of(const Batch& batch) {
  return {batch.offsets().begin(), batch.offsets().end()};
}

TEST(RaggedBatch, CountsSequencesAndTokens) {
  const Batch batch = sequences();
  EXPECT_TRUE(batch.is_ragged());
  EXPECT_EQ(batch.size(), 4);
  EXPECT_EQ(batch.num_tokens(), 8);
  EXPECT_EQ(batch.ids(), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(offsets_of(batch), (Ids{0, 2, 3, 6, 8}));
  EXPECT_EQ(batch.bytes(), 8 * 8 + 5 * 8 + 16 * 4);
  EXPECT_FALSE(made().is_ragged());
  EXPECT_EQ(made().num_tokens(), 0);
  EXPECT_TRUE(made().offsets().empty());
}

TEST(RaggedBatch, RowsAreViewsWhoseOffsetsBeginAtZero) {
  const Batch batch = sequences({7, 5, 9, 5});
  const Batch part = batch.rows(1, 2);
  EXPECT_TRUE(part.is_ragged());
  EXPECT_EQ(part.ids(), (Ids{5, 9}));
  EXPECT_EQ(offsets_of(part), (Ids{0, 1, 4}));
  EXPECT_EQ(part.num_tokens(), 4);
  EXPECT_EQ(part["input_ids"].const_data_ptr<int64_t>(), batch["input_ids"].const_data_ptr<int64_t>() + 2);
  EXPECT_EQ(part["features"].const_data_ptr<float>(), batch["features"].const_data_ptr<float>() + 4);
  EXPECT_EQ(part["features"].size(0), 4);
  EXPECT_EQ(offsets_of(part.rows(1, 1)), (Ids{0, 3}));
  EXPECT_EQ(part.rows(1, 1)["input_ids"][0].item<int64_t>(), 3);
  EXPECT_EQ(offsets_of(batch.rows(0, 4)), offsets_of(batch));
  EXPECT_EQ(offsets_of(batch.rows(3, 1)), (Ids{0, 2}));
  EXPECT_EQ(offsets_of(batch), (Ids{0, 2, 3, 6, 8}));  // the parts' offsets are their own
}

TEST(RaggedBatch, RefusesRowsOutsideOfIt) {
  const std::string rest = ") were asked for of a batch of 4; at least one row inside the batch is needed";
  EXPECT_ERROR(sequences().rows(3, 2), IndexError, "rows [3, 3 + 2" + rest);
  EXPECT_ERROR(sequences().rows(4, 1), IndexError, "rows [4, 4 + 1" + rest);
}

TEST(RaggedBatch, RefusesOffsetsOfAnotherForm) {
  const auto text = [](const std::string& got) {
    return "the field \"offsets\" is " + got +
           "; a contiguous int64 tensor [samples + 1] on the CPU is needed";
  };
  const auto with = [](const at::Tensor& offsets) {
    return Batch({{"x", at::zeros({4})}, {kOffsets, offsets}});
  };
  EXPECT_ERROR(with(at::Tensor()), ArgumentError, text("an undefined tensor"));
  EXPECT_ERROR(with(at::zeros({2}, at::kInt)), ArgumentError, text("Int [2]"));
  EXPECT_ERROR(with(at::zeros({2}, at::kDouble)), ArgumentError, text("Double [2]"));
  EXPECT_ERROR(with(at::zeros({1, 2}, at::kLong)), ArgumentError, text("Long [1, 2]"));
  EXPECT_ERROR(with(at::zeros({}, at::kLong)), ArgumentError, text("Long []"));
  EXPECT_ERROR(with(longs({0})), ArgumentError, text("Long [1]"));
  EXPECT_ERROR(with(at::zeros({0}, at::kLong)), ArgumentError, text("Long [0]"));
  EXPECT_ERROR(with(longs({0, 9, 4, 9}).slice(0, 0, 4, 2)), ArgumentError, text("Long [2] with gaps"));
}

TEST(RaggedBatch, RefusesOffsetsThatDoNotFitTheTokens) {
  const auto with = [](const at::Tensor& offsets) {
    return Batch({{"x", at::zeros({4})}, {kOffsets, offsets}, {"y", at::zeros({4, 2})}});
  };
  EXPECT_ERROR(with(longs({1, 4})), ArgumentError,
               "the field \"offsets\" begins with 1; it must begin with 0");
  EXPECT_ERROR(with(longs({0, 2, 2, 4})), ArgumentError,
               "the field \"offsets\" gives sample 1 the tokens from 2 to 2; each sample needs at least one "
               "token, in rising order");
  EXPECT_ERROR(with(longs({0, 3, 1, 4})), ArgumentError,
               "the field \"offsets\" gives sample 1 the tokens from 3 to 1; each sample needs at least one "
               "token, in rising order");
  EXPECT_ERROR(with(longs({0, -1})), ArgumentError,
               "the field \"offsets\" gives sample 0 the tokens from 0 to -1; each sample needs at least one "
               "token, in rising order");
  for (const int64_t end : {3, 5}) {
    EXPECT_ERROR(with(longs({0, 2, end})), ArgumentError,
                 "field \"x\" has 4 tokens and \"offsets\" ends at " + std::to_string(end) +
                     "; give every field one row a token");
  }
  EXPECT_ERROR(Batch({{"x", at::zeros({4})}, {"y", at::zeros({3})}, {kOffsets, longs({0, 4})}}),
               ArgumentError,
               "field \"y\" has 3 tokens and \"offsets\" ends at 4; give every field one row a token");
}

TEST(RaggedBatch, RefusesFieldsAndIdsThatAreNoBatch) {
  EXPECT_ERROR(Batch({{kOffsets, longs({0, 2})}}), ArgumentError,
               "a batch without a field was given; at least one tensor is needed");
  EXPECT_ERROR(Batch({{kOffsets, longs({0, 2})}, {"x", at::scalar_tensor(1.0)}}), ArgumentError,
               "field \"x\" has no first dimension that counts the samples; every field needs one");
  EXPECT_ERROR(sequences({1, 2, 3}), ArgumentError,
               "3 ids were given for 4 samples; give one for each, or none");
}

}  // namespace
}  // namespace accrue
