// SPDX-License-Identifier: Apache-2.0
// Files of images and tokens with bytes changed, put in, left out or cut off are read or refused by a
// DataError; what is read keeps its promises.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "accrue/formats/cifar.h"
#include "accrue/formats/idx.h"
#include "accrue/formats/token_file.h"
#include "accrue/formats/token_rows.h"
#include "tests/formats/bad_data_files.h"
#include "tests/support/files.h"

namespace accrue {
namespace {

std::string damaged(std::string bytes) {
  for (int change = *rc::gen::inRange(0, 4); change > 0 && !bytes.empty(); --change) {
    const auto place = *rc::gen::inRange<size_t>(0, bytes.size());
    const int kind = *rc::gen::inRange(0, 4);
    if (kind == 0) bytes[place] = *rc::gen::arbitrary<char>();
    if (kind == 1) bytes.insert(place, 1, *rc::gen::arbitrary<char>());
    if (kind == 2) bytes.erase(place, 1);
    if (kind == 3) bytes.resize(place);
  }
  return bytes;
}

std::string scratch(const std::string& bytes) {
  return test::write_file((test::ProgramFolder::path() / "damaged").string(), bytes);
}

// Every byte is touched, for a sanitizer to see.
int64_t sum(std::span<const std::byte> bytes) {
  int64_t total = 0;
  for (const std::byte byte : bytes) total += std::to_integer<int64_t>(byte);
  return total;
}

RC_GTEST_PROP(DamagedFiles, Idx, ()) {
  const std::string plain = test::idx_header(8, {2, 3, 2}) + "abcdefghijkl";
  const bool packed = *rc::gen::arbitrary<bool>();
  const bool before = *rc::gen::arbitrary<bool>();
  const std::string bytes =
      packed ? before ? test::gzip_bytes(damaged(plain)) : damaged(test::gzip_bytes(plain)) : damaged(plain);
  try {
    const IdxFile file(scratch(bytes));
    int64_t product = 1;
    for (const int64_t size : file.shape()) product *= size;
    RC_ASSERT(product == static_cast<int64_t>(file.values().size()));
    RC_ASSERT(sum(file.values()) >= 0);
  } catch (const DataError&) {
  }
}

RC_GTEST_PROP(DamagedFiles, Cifar, ()) {
  const std::string plain =
      *rc::gen::arbitrary<bool>() ? test::cifar_row("\x03") : test::cifar_row("\x03\x09");
  const std::string bytes = *rc::gen::arbitrary<bool>() ? damaged(test::gzip_bytes(plain)) : damaged(plain);
  const CifarKind kind = *rc::gen::element(CifarKind::automatic, CifarKind::cifar10, CifarKind::cifar100);
  try {
    const CifarFile file(scratch(bytes), kind);
    for (int64_t row = 0; row < file.size(); ++row) {
      RC_ASSERT(file.label(row) >= 0 && file.label(row) < file.num_classes());
      RC_ASSERT(sum(file.pixels(row)) >= 0);
    }
  } catch (const DataError&) {
  }
}

RC_GTEST_PROP(DamagedFiles, TokenFile, ()) {
  const int header = *rc::gen::inRange(0, 3);
  const std::string bytes =
      damaged(header == 0   ? test::numbers_bytes({3, 99, 5, 0, 17}, 2)
              : header == 1 ? test::token_header(20240520, 1, 3) + test::numbers_bytes({3, 99, 5}, 2)
                            : test::token_header(20240801, 7, 2) + test::numbers_bytes({3, 99}, 4));
  const TokenType type = *rc::gen::element(TokenType::automatic, TokenType::uint16, TokenType::uint32);
  try {
    const TokenFile file(scratch(bytes), type, 100);
    std::vector<int64_t> tokens(static_cast<size_t>(file.size()));
    file.copy(0, file.size(), tokens.data());
    for (const int64_t token : tokens) RC_ASSERT(token >= 0 && token < 100);
  } catch (const DataError&) {
  }
}

RC_GTEST_PROP(DamagedFiles, TokenRows, ()) {
  const std::string row =
      "{\"ids\": [1, 22, 3], \"labels\": [-100, 4, 5], \"attention_mask\": [1, 1, 0], \"t\": "
      "\"\\ud83d\\ude00\"}\n";
  const std::string bytes =
      damaged(*rc::gen::arbitrary<bool>() ? row + row : "\xEF\xBB\xBF" + row + "\r\n" + row);
  try {
    const TokenRows rows = parse_token_rows(bytes, "f", {.vocabulary = 100, .context = 3, .max_length = 2});
    RC_ASSERT(rows.size() > 0);
    RC_ASSERT(rows.ids.size() == rows.labels.size());
    RC_ASSERT(rows.offsets.back() == static_cast<int64_t>(rows.ids.size()));
    for (const int32_t id : rows.ids) RC_ASSERT(id >= 0 && id < 100);
    for (const int32_t label : rows.labels) RC_ASSERT(label == -100 || (label >= 0 && label < 100));
  } catch (const DataError&) {
  }
}

}  // namespace
}  // namespace accrue
