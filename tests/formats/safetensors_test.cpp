// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/safetensors.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>

#include "tests/formats/bad_files.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"

namespace accrue {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(const TensorView& tensor) {
  return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
}

TEST(Safetensors, EveryBadFileIsExplained) {
  const std::string folder = test::fresh_folder();
  for (const test::BadFile& bad : test::bad_safetensors()) {
    SCOPED_TRACE(bad.id);
    const std::string path = test::write_file(folder + "/" + bad.id, bad.bytes);
    EXPECT_ERROR(SafetensorsFile(path, Purpose::model), ModelError, test::replaced(bad.text, "FILE", path));
    EXPECT_EQ(bad.kind, "ModelError");
  }
  EXPECT_GE(test::bad_safetensors().size(), 15u);
}

TEST(Safetensors, ThePurposeDecidesTheKind) {
  EXPECT_ERROR(parse_safetensors({}, "f", Purpose::data), DataError,
               "f: the file is empty; a safetensors file is needed: fetch it again");
  EXPECT_ERROR(parse_safetensors({}, "f", Purpose::checkpoint), CheckpointError,
               "f: the file is empty; a safetensors file is needed: fetch it again");
}

TEST(Safetensors, ReadsUnalignedDataScalarsAndEmptyTensors) {
  std::string file =
      test::safetensors_bytes(R"({"__metadata__":{"format":"pt","by":"hand"},)"
                              R"("odd":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                              R"("none":{"dtype":"I64","shape":[0,5],"data_offsets":[3,3]},)"
                              R"("f":{"dtype":"F32","shape":[2,2],"data_offsets":[3,19]},)"
                              R"("scalar":{"dtype":"BF16","shape":[],"data_offsets":[19,21]}}  )",
                              0);
  const float values[] = {1.5f, -2.0f, 3e-40f, 4.0f};
  file += "abc" + std::string(reinterpret_cast<const char*>(values), sizeof(values)) + "\x80\x3f";
  const Safetensors content = parse_safetensors(bytes_of(file), "f", Purpose::data);
  ASSERT_EQ(content.tensors.size(), 4u);
  EXPECT_EQ(content.tensors[0].name, "odd");
  EXPECT_EQ(text_of(content.tensors[0]), "abc");
  EXPECT_EQ(content.tensors[1].shape, (std::vector<int64_t>{0, 5}));
  EXPECT_TRUE(content.tensors[1].data.empty());
  float read[4];
  std::memcpy(read, content.tensors[2].data.data(), sizeof(read));
  EXPECT_EQ(std::memcmp(read, values, sizeof(read)), 0);
  EXPECT_TRUE(content.tensors[3].shape.empty());
  EXPECT_EQ(content.metadata.at("by"), "hand");
}

TEST(Safetensors, NamesOfTypesComeBack) {
  for (const char* name : {"BOOL", "U8", "I8", "I16", "U16", "I32", "U32", "I64", "U64", "F16", "BF16", "F32",
                           "F64", "C64", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"})
    EXPECT_EQ(dtype_name(dtype_from_name(name).value()), name);
  EXPECT_EQ(dtype_from_name("F6"), std::nullopt);
  EXPECT_EQ(dtype_bytes(Dtype::bf16), 2);
  EXPECT_EQ(dtype_bytes(Dtype::i64), 8);
}

TEST(Safetensors, WritesBigElementsFirstAndPadsTheHeader) {
  const std::string path = test::fresh_folder() + "/f.safetensors";
  const std::string data = "0123456789abcdef";
  const std::vector<TensorView> tensors = {{"u", Dtype::u8, {3}, bytes_of(data).subspan(0, 3)},
                                           {"b", Dtype::f32, {2}, bytes_of(data).subspan(3, 8)},
                                           {"a", Dtype::f32, {}, bytes_of(data).subspan(11, 4)}};
  write_safetensors(path, tensors, {{"update", "7"}});
  const std::string header =
      R"({"__metadata__":{"format":"pt","update":"7"},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},"u":{"dtype":"U8","shape":[3],"data_offsets":[12,15]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(test::read_file(path), test::safetensors_bytes(padded, 0) + "bcde" + "3456789a" + "012");
  const SafetensorsFile file(path, Purpose::model);
  EXPECT_EQ(text_of(*file.find("b")), "3456789a");
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_EQ(file.metadata().at("update"), "7");
}

TEST(Safetensors, RefusesToWriteWhatCouldNotBeRead) {
  const std::string data(4, 'x');
  const TensorView good{"w", Dtype::f32, {1}, bytes_of(data)};
  EXPECT_ERROR(
      layout_safetensors(std::vector{good, good}), ArgumentError,
      "a file cannot hold a tensor called \"w\" (given twice, or reserved); give each tensor a name of its "
      "own");
  TensorView reserved = good;
  reserved.name = "__metadata__";
  EXPECT_ERROR(
      layout_safetensors(std::vector{reserved}), ArgumentError,
      "a file cannot hold a tensor called \"__metadata__\" (given twice, or reserved); give each tensor a "
      "name of its own");
  TensorView large = good;
  large.shape = {2};
  EXPECT_ERROR(layout_safetensors(std::vector{large}), ArgumentError,
               "tensor \"w\" was given with 4 bytes and its shape needs 8");
  TensorView broken = good;
  broken.name = "\xE6";
  EXPECT_ERROR(layout_safetensors(std::vector{broken}), ArgumentError,
               "a tensor's name or a metadata text is not valid UTF-8; use valid UTF-8");
}

RC_GTEST_PROP(SafetensorsProperty, WhatIsWrittenIsRead, ()) {
  const auto names = *rc::gen::container<std::set<std::string>>(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab.\"\\ {}:,0"))));
  std::vector<std::string> buffers;
  std::vector<TensorView> tensors;
  for (const std::string& name : names) {
    TensorView& tensor = tensors.emplace_back();
    tensor.name = name;
    tensor.dtype = static_cast<Dtype>(*rc::gen::inRange(0, 19));
    tensor.shape = *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 4));
    if (tensor.shape.size() > 4) tensor.shape.resize(4);
    size_t size = static_cast<size_t>(dtype_bytes(tensor.dtype));
    for (const int64_t length : tensor.shape) size *= static_cast<size_t>(length);
    buffers.push_back(*rc::gen::container<std::string>(size, rc::gen::arbitrary<char>()));
  }
  for (size_t index = 0; index < tensors.size(); ++index) tensors[index].data = bytes_of(buffers[index]);
  const SafetensorsLayout layout = layout_safetensors(tensors);
  RC_ASSERT(layout.header.size() % 8 == 0u);
  std::string file = layout.header;
  for (const size_t index : layout.order) file += buffers[index];
  const Safetensors read = parse_safetensors(bytes_of(file), "f", Purpose::data);
  RC_ASSERT(read.tensors.size() == tensors.size());
  for (size_t place = 0; place < read.tensors.size(); ++place) {
    const TensorView& expected = tensors[layout.order[place]];
    RC_ASSERT(read.tensors[place].name == expected.name);
    RC_ASSERT(read.tensors[place].dtype == expected.dtype);
    RC_ASSERT(read.tensors[place].shape == expected.shape);
    RC_ASSERT(text_of(read.tensors[place]) == text_of(expected));
  }
}

// A file with one byte changed or cut off is read or refused; it never reads past its end.
RC_GTEST_PROP(SafetensorsProperty, DamagedFilesAreReadOrRefused, ()) {
  std::string file = test::safetensors_bytes(
      R"({"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})",
      11);
  const auto place = *rc::gen::inRange<size_t>(0, file.size());
  if (*rc::gen::arbitrary<bool>()) {
    file[place] = *rc::gen::arbitrary<char>();
  } else {
    file.resize(place);
  }
  try {
    for (const TensorView& tensor : parse_safetensors(bytes_of(file), "f", Purpose::data).tensors)
      RC_ASSERT(tensor.data.data() + tensor.data.size() <= bytes_of(file).data() + file.size());
  } catch (const DataError&) {
  }
}

}  // namespace
}  // namespace accrue
