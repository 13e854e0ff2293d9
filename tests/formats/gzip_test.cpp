// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/gzip.h"

#include <gtest/gtest.h>

#include "tests/formats/gzip_bytes.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/resident.h"

namespace accrue {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string unpacked(const std::string& packed, size_t limit = size_t{1} << 30) {
  const std::vector<std::byte> bytes = unpack_gzip(bytes_of(packed), limit, "f");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Gzip, UnpacksWhatWasPacked) {
  std::string content;
  for (uint32_t i = 0; i < 300000; ++i) content += static_cast<char>(i * i >> 3);
  EXPECT_EQ(unpacked(test::gzip_bytes(content)), content);
  EXPECT_EQ(unpacked(test::gzip_bytes("")), "");
}

TEST(Gzip, JoinedMembersAreOneContentAndZerosBehindThemPadding) {
  const std::string packed = test::gzip_bytes("one, ") + test::gzip_bytes("") + test::gzip_bytes("two");
  EXPECT_EQ(unpacked(packed), "one, two");
  EXPECT_EQ(unpacked(packed + std::string(512, '\0')), "one, two");
}

TEST(Gzip, NothingBehindTheLimitIsLookedAt) {
  const std::string packed = test::gzip_bytes("0123456789");
  EXPECT_EQ(unpacked(packed, 4), "0123");
  EXPECT_EQ(unpacked(packed, 10), "0123456789");
  EXPECT_EQ(unpacked(packed, 0), "");
}

TEST(Gzip, EveryCutIsToldFromTheWholeFile) {
  const std::string packed = test::gzip_bytes("some content, some content");
  const std::string joined = packed + packed;
  for (size_t size = 2; size < joined.size(); ++size) {
    SCOPED_TRACE(size);
    if (size == packed.size()) continue;
    EXPECT_THROW(unpacked(joined.substr(0, size)), DataError);
  }
  EXPECT_ERROR(unpacked(packed.substr(0, packed.size() - 1)), DataError,
               "f: its gzip data go on behind its " + std::to_string(packed.size() - 1) +
                   " bytes, which hold 26 bytes of content; the file is cut: fetch it again");
}

TEST(Gzip, ContentDecidesAndNotTheName) {
  const std::string folder = test::fresh_folder();
  const FileBytes plain(test::write_file(folder + "/plain.gz", "plain"));
  EXPECT_FALSE(plain.packed());
  EXPECT_EQ(plain.text(), "plain");
  const FileBytes packed(test::write_file(folder + "/packed", test::gzip_bytes("content")), 100);
  EXPECT_TRUE(packed.packed());
  EXPECT_EQ(packed.text(), "content");
  EXPECT_EQ(FileBytes(test::write_file(folder + "/nothing", test::gzip_bytes(""))).text(), "");
  EXPECT_ERROR(FileBytes(folder + "/none"), DataError,
               folder + "/none: there is no such file; check the path");
}

TEST(Gzip, MemoryGrowsWithTheContentThatIsAskedFor) {
  const std::string bomb = test::gzip_bytes("", size_t{1} << 26);
  const test::ResidentGrowth growth;
  EXPECT_EQ(unpacked(bomb, 1000).size(), 1000u);
  EXPECT_LT(growth.mebibytes(), 16);  // a quarter of what is packed
}

}  // namespace
}  // namespace accrue
