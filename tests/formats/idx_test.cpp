// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/idx.h"

#include <gtest/gtest.h>

#include "tests/formats/bad_data_files.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/resident.h"

namespace accrue {
namespace {

std::string values_of(const IdxFile& file) {
  return {reinterpret_cast<const char*>(file.values().data()), file.values().size()};
}

TEST(Idx, ReadsPlainAndPackedUnderAnyName) {
  const std::string folder = test::fresh_folder();
  const std::string bytes = test::idx_header(8, {2, 1, 3}) + "abcdef";
  for (const std::string& path :
       {test::write_file(folder + "/plain.gz", bytes),
        test::write_file(folder + "/packed-idx3-ubyte", test::gzip_bytes(bytes)),
        test::write_file(folder + "/joined",
                         test::gzip_bytes(bytes.substr(0, 9)) + test::gzip_bytes(bytes.substr(9)))}) {
    SCOPED_TRACE(path);
    const IdxFile file(path);
    EXPECT_EQ(file.path(), path);
    EXPECT_EQ(file.shape(), (std::vector<int64_t>{2, 1, 3}));
    EXPECT_EQ(values_of(file), "abcdef");
    EXPECT_TRUE(IdxFile::matches(path));
  }
}

TEST(Idx, ReadsLabelsAndEightDimensions) {
  const std::string folder = test::fresh_folder();
  const IdxFile labels(test::write_file(folder + "/labels", test::idx_header(8, {3}) + "\x01\xFF\x07"));
  EXPECT_EQ(labels.shape(), (std::vector<int64_t>{3}));
  EXPECT_EQ(values_of(labels), "\x01\xFF\x07");
  const IdxFile deep(
      test::write_file(folder + "/deep", test::idx_header(8, std::vector<uint32_t>(8, 1)) + "x"));
  EXPECT_EQ(deep.shape().size(), 8u);
  EXPECT_EQ(values_of(deep), "x");
}

TEST(Idx, AMagicNumberOfAnyTypeMatches) {
  const std::string folder = test::fresh_folder();
  const auto matches = [&](const std::string& bytes) {
    return IdxFile::matches(test::write_file(folder + "/f", bytes));
  };
  EXPECT_TRUE(matches(test::idx_header(0x0D, {1})));
  EXPECT_TRUE(matches(test::gzip_bytes(test::idx_header(8, {1}))));
  EXPECT_FALSE(matches(test::idx_header(7, {1})));
  EXPECT_FALSE(matches(test::idx_header(8, {})));
  EXPECT_FALSE(matches(""));
  EXPECT_FALSE(matches("a,b\n1,2\n"));
}

TEST(Idx, EveryBadFileIsExplainedWithoutMemoryForItsClaims) {
  const std::string folder = test::fresh_folder();
  for (const auto& files : {test::bad_idx(), test::bad_idx_gz()}) {
    EXPECT_GE(files.size(), 8u);
    for (const test::BadFile& bad : files) {
      SCOPED_TRACE(bad.id);
      const std::string path = test::write_file(folder + "/" + bad.id, bad.bytes);
      const test::ResidentGrowth growth;
      EXPECT_ERROR(IdxFile(path), DataError, test::replaced(bad.text, "FILE", path));
      EXPECT_LT(growth.mebibytes(), 16);  // the smallest of the large claims is 47 MB
    }
  }
}

TEST(Idx, APackedFileThatIsCutAtHalfSaysSo) {
  std::string bytes = test::idx_header(8, {10, 28, 28});
  for (uint32_t i = 0; i < 7840; ++i) bytes += static_cast<char>(i * i * 2654435761u >> 24);
  const std::string packed = test::gzip_bytes(bytes);
  const std::string path = test::write_file(test::fresh_folder() + "/f", packed.substr(0, packed.size() / 2));
  try {
    IdxFile file(path);
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_EQ(error.code(), "formats.gzip_cut");
    EXPECT_TRUE(std::string(error.what())
                    .starts_with(path + ": its gzip data go on behind its " +
                                 std::to_string(packed.size() / 2) + " bytes, which hold "));
  }
}

}  // namespace
}  // namespace accrue
