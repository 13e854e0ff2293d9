// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/token_file.h"

#include <gtest/gtest.h>

#include "tests/formats/bad_data_files.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/resident.h"

namespace accrue {
namespace {

std::vector<int64_t> tokens_of(const TokenFile& file) {
  std::vector<int64_t> tokens(static_cast<size_t>(file.size()));
  file.copy(0, file.size(), tokens.data());
  return tokens;
}

class TokenFileTest : public testing::Test {
 protected:
  std::string write(const std::string& bytes) { return test::write_file(folder_ + "/f.bin", bytes); }
  std::string folder_ = test::fresh_folder();
};

TEST_F(TokenFileTest, BareIdsAreOfTheTypeThatTheVocabularyNeeds) {
  const std::string path = write(test::numbers_bytes({1, 65535, 0, 7}, 2));
  const TokenFile narrow(path, TokenType::automatic, 65536);
  EXPECT_EQ(narrow.path(), path);
  EXPECT_EQ(narrow.type(), TokenType::uint16);
  EXPECT_EQ(tokens_of(narrow), (std::vector<int64_t>{1, 65535, 0, 7}));
  const TokenFile wide(write(test::numbers_bytes({1, 65536, 70000}, 4)), TokenType::automatic, 70001);
  EXPECT_EQ(wide.type(), TokenType::uint32);
  EXPECT_EQ(tokens_of(wide), (std::vector<int64_t>{1, 65536, 70000}));
}

TEST_F(TokenFileTest, AHeaderDecides) {
  const TokenFile narrow(write(test::token_header(20240520, 1, 3) + test::numbers_bytes({5, 6, 50256}, 2)),
                         TokenType::automatic, 70000);
  EXPECT_EQ(narrow.type(), TokenType::uint16);
  EXPECT_EQ(tokens_of(narrow), (std::vector<int64_t>{5, 6, 50256}));
  const TokenFile wide(write(test::token_header(20240801, 7, 2) + test::numbers_bytes({5, 128000}, 4)),
                       TokenType::uint32, 0);
  EXPECT_EQ(tokens_of(wide), (std::vector<int64_t>{5, 128000}));
}

TEST_F(TokenFileTest, CheckingIdsKeepsLittleOfTheFileInTheProcess) {
  std::string bytes(size_t{64} << 20, '\1');
  for (size_t i = 1; i < bytes.size(); i += 2) bytes[i] = '\0';
  bytes.back() = '\1';  // the last id alone is 257
  const std::string path = write(bytes);
  const test::ResidentGrowth growth;
  const TokenFile file(path, TokenType::uint16, 258);
  EXPECT_THROW(TokenFile(path, TokenType::uint16, 257), DataError);
  EXPECT_LT(growth.mebibytes(), 16);  // pieces of 1 MiB, of a file of 64
}

TEST_F(TokenFileTest, CopiesAnyPart) {
  const TokenFile file(write(test::numbers_bytes({1, 2, 3, 0xFFFFFFFF, 5}, 4)), TokenType::uint32, 0);
  std::vector<int64_t> part(2);
  file.copy(2, 2, part.data());
  EXPECT_EQ(part, (std::vector<int64_t>{3, 4294967295}));
  file.copy(5, 0, nullptr);
}

TEST_F(TokenFileTest, IdsThatBeginAsGzipDoesAreIds) {
  const std::vector<uint32_t> ids{35615, 9, 40000, 3, 65535, 1};
  const TokenFile file(write(test::numbers_bytes(ids, 2)), TokenType::uint16, 0);
  EXPECT_EQ(tokens_of(file), std::vector<int64_t>(ids.begin(), ids.end()));
}

TEST_F(TokenFileTest, TheLastIdOfEveryBlockIsChecked) {
  for (const size_t size : {1u, 4095u, 4096u, 4097u, 8192u}) {
    std::vector<uint32_t> ids(size, 49);
    EXPECT_EQ(TokenFile(write(test::numbers_bytes(ids, 2)), TokenType::uint16, 50).size(),
              static_cast<int64_t>(size));
    ids.back() = 50;
    for (const size_t width : {2u, 4u}) {
      const std::string path = write(test::numbers_bytes(ids, width));
      const std::string type = width == 2 ? "uint16" : "uint32";
      EXPECT_ERROR(
          TokenFile(path, width == 2 ? TokenType::uint16 : TokenType::uint32, 50), DataError,
          path + ": token " + std::to_string(size - 1) + " (from 0) is 50 as " + type +
              "; the vocabulary has 50 ids from 0: use the tokenizer of the model, and the type that "
              "the ids were written in");
    }
  }
}

TEST_F(TokenFileTest, ATypeAgainstTheHeaderIsRefused) {
  const std::string path = write(test::token_header(20240520, 1, 2) + test::numbers_bytes({5, 6}, 2));
  EXPECT_ERROR(TokenFile(path, TokenType::uint32, 0), DataError,
               path +
                   ": was to be read as uint32 and its header says uint16; ask for uint16 or leave the type "
                   "open");
}

TEST_F(TokenFileTest, EveryBadFileIsExplainedWithoutMemoryForItsClaims) {
  for (const test::BadFile& bad : test::bad_token_files()) {
    SCOPED_TRACE(bad.id);
    const std::string path = write(bad.bytes);
    const test::ResidentGrowth growth;
    EXPECT_ERROR(TokenFile(path, TokenType::automatic, 100), DataError,
                 test::replaced(bad.text, "FILE", path));
    EXPECT_LT(growth.mebibytes(), 16);
  }
  EXPECT_GE(test::bad_token_files().size(), 8u);
}

}  // namespace
}  // namespace accrue
