// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/mapped_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "accrue/memory/pressure.h"
#include "accrue/memory/resident.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"

namespace accrue {
namespace {

TEST(MappedFile, ShowsTheBytesAndMoves) {
  const std::string path = test::write_file(test::fresh_folder() + "/f", "abc");
  MappedFile file(path, Purpose::data);
  EXPECT_EQ(file.text(), "abc");
  MappedFile other(std::move(file));
  EXPECT_EQ(other.text(), "abc");
  MappedFile third(test::write_file(path + "2", ""), Purpose::data);
  EXPECT_EQ(third.text(), "");
  third = std::move(other);
  EXPECT_EQ(third.text(), "abc");
}

TEST(MappedFile, SaysTheFullPathOfAMissingFile) {
  const std::string path = (std::filesystem::current_path() / "no/such.csv").string();
  EXPECT_ERROR(MappedFile("no/such.csv", Purpose::data), DataError,
               path + ": there is no such file; check the path");
  EXPECT_ERROR(MappedFile("no/such.csv", Purpose::model), ModelError,
               path + ": there is no such file; check the path");
  EXPECT_ERROR(MappedFile("no/such.csv", Purpose::checkpoint), CheckpointError,
               path + ": there is no such file; check the path");
}

TEST(MappedFile, RefusesWhatIsNoPlainFile) {
  const std::string folder = test::fresh_folder();
  EXPECT_ERROR(MappedFile(folder, Purpose::data), DataError, folder + ": is a folder; a file is needed");
  EXPECT_ERROR(MappedFile("/dev/null", Purpose::data), DataError,
               "/dev/null: is a device or a pipe; a plain file is needed");
  const std::string inside = test::write_file(folder + "/f", "x") + "/g";
  EXPECT_ERROR(MappedFile(inside, Purpose::data), DataError,
               inside + ": cannot be read: Not a directory; check its permissions");
}

TEST(MappedFile, LetsItsPagesGoWhenMemoryIsShortAlsoAfterMoves) {
  if (!memory::resident_bytes()) GTEST_SKIP() << "this system does not tell";
  constexpr size_t kBytes = size_t{32} << 20;
  const std::string path = test::write_file(test::fresh_folder() + "/f", std::string(kBytes, 'a'));
  MappedFile first(path, Purpose::data);
  MappedFile file(std::move(first));
  std::optional<MappedFile> other(MappedFile(path, Purpose::data));
  *other = std::move(file);
  const auto sum = [&] {
    int64_t total = 0;
    for (const char letter : other->text()) total += letter;
    return total;
  };
  EXPECT_EQ(sum(), static_cast<int64_t>(kBytes) * 'a');
  const int64_t full = *memory::resident_bytes();
  memory::relieve_pressure();
  EXPECT_LT(*memory::resident_bytes(), full - static_cast<int64_t>(kBytes / 2));
  EXPECT_EQ(sum(), static_cast<int64_t>(kBytes) * 'a') << "they are read again";
  other.reset();
  memory::relieve_pressure();
}

}  // namespace
}  // namespace accrue
