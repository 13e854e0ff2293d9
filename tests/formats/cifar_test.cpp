// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/cifar.h"

#include <gtest/gtest.h>

#include "tests/formats/bad_data_files.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"

namespace accrue {
namespace {

std::string pixels_of(const CifarFile& file, int64_t row) {
  return {reinterpret_cast<const char*>(file.pixels(row).data()), file.pixels(row).size()};
}

TEST(Cifar, ReadsTenClassesPlainAndPacked) {
  const std::string folder = test::fresh_folder();
  std::string bytes = test::cifar_row("\x09", 'a') + test::cifar_row(std::string(1, '\0'), 'b');
  bytes[3073 + 1 + 1024] = 'g';
  for (const std::string& path : {test::write_file(folder + "/plain", bytes),
                                  test::write_file(folder + "/packed", test::gzip_bytes(bytes))})
    for (const CifarKind kind : {CifarKind::automatic, CifarKind::cifar10}) {
      const CifarFile file(path, kind);
      EXPECT_EQ(file.kind(), CifarKind::cifar10);
      EXPECT_EQ(file.size(), 2);
      EXPECT_EQ(file.num_classes(), 10);
      EXPECT_EQ(file.label(0), 9);
      EXPECT_EQ(file.label(1), 0);
      EXPECT_EQ(pixels_of(file, 0), std::string(3072, 'a'));
      EXPECT_EQ(pixels_of(file, 1), std::string(1024, 'b') + "g" + std::string(2047, 'b'));
    }
}

TEST(Cifar, ReadsTheFineLabelsOfAHundredClasses) {
  std::string bytes;
  for (char row = 0; row < 10; ++row)
    bytes += test::cifar_row({static_cast<char>(19 - row), static_cast<char>(99 - row)}, row);
  const CifarFile file(test::write_file(test::fresh_folder() + "/f", bytes), CifarKind::automatic);
  EXPECT_EQ(file.kind(), CifarKind::cifar100);
  EXPECT_EQ(file.size(), 10);
  EXPECT_EQ(file.num_classes(), 100);
  EXPECT_EQ(file.label(0), 99);
  EXPECT_EQ(file.label(9), 90);
  EXPECT_EQ(pixels_of(file, 9), std::string(3072, 9));
}

TEST(Cifar, EveryBadFileIsExplained) {
  const std::string folder = test::fresh_folder();
  for (const test::BadFile& bad : test::bad_cifar()) {
    SCOPED_TRACE(bad.id);
    const std::string path = test::write_file(folder + "/" + bad.id, bad.bytes);
    EXPECT_ERROR(CifarFile(path, CifarKind::automatic), DataError, test::replaced(bad.text, "FILE", path));
  }
  EXPECT_GE(test::bad_cifar().size(), 8u);
}

TEST(Cifar, AKindThatIsAskedForDecides) {
  std::string bytes;
  for (int row = 0; row < 3074; ++row) bytes += test::cifar_row("\x03", 4);
  const std::string both = test::write_file(test::fresh_folder() + "/both", bytes);
  EXPECT_EQ(CifarFile(both, CifarKind::cifar10).size(), 3074);
  const std::string hundred = test::write_file(both + "-100", test::cifar_row("\x01\x02"));
  EXPECT_ERROR(CifarFile(hundred, CifarKind::cifar10), DataError,
               hundred +
                   ": has 3074 bytes, 1 rows of CIFAR-10 (3073) and 1 bytes left over; its length is that "
                   "of CIFAR-100: read it as that");
  const std::string rest = test::write_file(both + "-rest", test::cifar_row("\x01\x02") + "xy");
  EXPECT_ERROR(CifarFile(rest, CifarKind::cifar100), DataError,
               rest +
                   ": has 3076 bytes, 1 rows of CIFAR-100 (3074) and 2 bytes left over; the file is cut or "
                   "of another kind: fetch it again");
}

}  // namespace
}  // namespace accrue
