// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/tensor_file.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/formats/bad_files.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/resident.h"

namespace accrue {
namespace {

bool same_bits(const at::Tensor& left, const at::Tensor& right) {
  const at::Tensor first = left.contiguous();
  const at::Tensor second = right.contiguous();
  return first.scalar_type() == second.scalar_type() && first.sizes() == second.sizes() &&
         (first.nbytes() == 0 ||
          std::memcmp(first.const_data_ptr(), second.const_data_ptr(), first.nbytes()) == 0);
}

TEST(TensorFile, EveryTypeComesBackToTheBit) {
  const std::string path = test::fresh_folder() + "/all.safetensors";
  NamedTensors tensors;
  using at::ScalarType;
  for (const ScalarType type :
       {at::kBool, at::kByte, at::kChar, at::kShort, ScalarType::UInt16, at::kInt, ScalarType::UInt32,
        at::kLong, ScalarType::UInt64, at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kComplexFloat,
        ScalarType::Float8_e4m3fn, ScalarType::Float8_e5m2, ScalarType::Float8_e4m3fnuz,
        ScalarType::Float8_e5m2fnuz})
    tensors.add(at::toString(type), at::arange(6, at::kFloat).reshape({2, 3}).to(type));
  tensors.add("odd", at::tensor({std::numeric_limits<float>::quiet_NaN(), -0.0f, 1e-42f}));
  tensors.add("transposed", at::arange(6, at::kInt).reshape({2, 3}).t());
  tensors.add("empty", at::zeros({0, 4}));
  tensors.add("scalar", at::zeros({}, at::kLong).fill_(7));
  save_tensors(path, tensors, {{"update", "3"}});
  const NamedTensors read = load_tensors(path, Purpose::model);
  EXPECT_EQ(read.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(same_bits(tensor, read[name])) << name;
  EXPECT_EQ(SafetensorsFile(path, Purpose::model).metadata().at("update"), "3");
}

TEST(TensorFile, LoadingKeepsNoSecondCopyOfALargeTensorInTheProcess) {
  const std::string path = test::fresh_folder() + "/a.safetensors";
  save_tensors(path, {{"a", at::arange(int64_t{16} << 20, at::kFloat)}});
  const test::ResidentGrowth growth;
  const NamedTensors read = load_tensors(path, Purpose::model);
  EXPECT_LT(growth.mebibytes(), 64 + 16);  // the tensor of 64 MiB and pieces of 4 MiB of the file
  EXPECT_TRUE(at::equal(read["a"], at::arange(int64_t{16} << 20, at::kFloat)));
}

TEST(TensorFile, LoadedTensorsOwnTheirMemory) {
  const std::string path = test::fresh_folder() + "/a.safetensors";
  save_tensors(path, {{"a", at::arange(4, at::kFloat)}});
  const NamedTensors read = load_tensors(path, Purpose::data);
  test::write_file(path, std::string(200, 'x'));
  EXPECT_TRUE(at::equal(read["a"], at::arange(4, at::kFloat)));
}

TEST(TensorFile, RefusesTypesThatOneSideLacks) {
  const std::string path = test::fresh_folder() + "/a.safetensors";
  EXPECT_ERROR(
      save_tensors(path, {{"a", at::zeros({1}, at::kComplexDouble)}}), ArgumentError,
      "tensor \"a\" has the type ComplexDouble, which a safetensors file cannot hold; convert it first");
  test::write_file(
      path, test::safetensors_bytes(R"({"a":{"dtype":"F8_E8M0","shape":[1],"data_offsets":[0,1]}})", 1));
  EXPECT_ERROR(
      load_tensors(path, Purpose::model), ModelError,
      path +
          ": tensor \"a\": the type F8_E8M0 is not supported; save it as F32, BF16, F16, F64 or an integer "
          "type");
}

}  // namespace
}  // namespace accrue
