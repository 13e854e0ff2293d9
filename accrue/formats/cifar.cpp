// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/cifar.h"

#include <array>
#include <string_view>

#include "accrue/base/messages/formats.h"
#include "accrue/formats/foreign.h"

namespace accrue {
namespace {

// More than any file of these sets; only a packed one is bounded, since it is laid out in memory.
constexpr size_t kMostUnpackedBytes = size_t{1} << 30;

struct Label {
  std::string_view name;
  unsigned classes;
};

struct Layout {
  std::string_view name;
  size_t num_labels;
  std::array<Label, 2> labels;
  constexpr size_t row_bytes() const { return num_labels + static_cast<size_t>(CifarFile::kPixels); }
};

constexpr Layout kCifar10{"CIFAR-10", 1, {{{"label", 10}, {}}}};
constexpr Layout kCifar100{"CIFAR-100", 2, {{{"coarse label", 20}, {"fine label", 100}}}};

const Layout& layout_of(CifarKind kind) noexcept {
  return kind == CifarKind::cifar100 ? kCifar100 : kCifar10;
}

CifarKind kind_from_length(size_t length, const std::string& path) {
  const size_t rest_10 = length % kCifar10.row_bytes();
  const size_t rest_100 = length % kCifar100.row_bytes();
  if (rest_10 == 0 && rest_100 == 0) fail(message::cifar_both, {{"path", path}, {"got", length}});
  if (rest_10 != 0 && rest_100 != 0)
    fail(message::cifar_neither,
         {{"path", path}, {"got", length}, {"rest_10", rest_10}, {"rest_100", rest_100}});
  return rest_10 == 0 ? CifarKind::cifar10 : CifarKind::cifar100;
}

void check_length(size_t length, CifarKind kind, const std::string& path) {
  const Layout& layout = layout_of(kind);
  const Layout& other = &layout == &kCifar10 ? kCifar100 : kCifar10;
  const size_t rest = length % layout.row_bytes();
  if (rest == 0) return;
  const bool fits_other = length % other.row_bytes() == 0;
  fail(fits_other ? message::cifar_other : message::cifar_rest, {{"path", path},
                                                                 {"got", length},
                                                                 {"rows", length / layout.row_bytes()},
                                                                 {"rest", rest},
                                                                 {"row_bytes", layout.row_bytes()},
                                                                 {"other", other.name},
                                                                 {"kind", layout.name}});
}

void check_labels(const FileBytes& file, const Layout& layout, const std::string& path) {
  const std::span<const std::byte> bytes = file.bytes();
  ForgetBehind behind(file.mapped(), bytes.data());
  for (size_t row = 0; row < bytes.size() / layout.row_bytes(); ++row) {
    behind.passed(bytes.data() + row * layout.row_bytes());
    for (size_t place = 0; place < layout.num_labels; ++place) {
      const auto label = std::to_integer<unsigned>(bytes[row * layout.row_bytes() + place]);
      const Label& allowed = layout.labels[place];
      if (label < allowed.classes) continue;
      fail(message::cifar_label, {{"path", path},
                                  {"row", row},
                                  {"name", allowed.name},
                                  {"got", label},
                                  {"last", allowed.classes - 1},
                                  {"kind", layout.name}});
    }
  }
}

}  // namespace

CifarFile::CifarFile(const std::string& path, CifarKind kind)
    : file_(std::make_unique<FileBytes>(path, kMostUnpackedBytes + 1)), kind_(kind) {
  const std::span<const std::byte> bytes = file_->bytes();
  if (bytes.empty()) fail(message::cifar_empty, {{"path", path}});
  if (file_->packed() && bytes.size() > kMostUnpackedBytes)
    fail(message::gzip_large, {{"path", path}, {"limit", kMostUnpackedBytes}});
  refuse_foreign(file_->text(), path, Purpose::data);
  if (kind_ == CifarKind::automatic) kind_ = kind_from_length(bytes.size(), path);
  check_length(bytes.size(), kind_, path);
  check_labels(*file_, layout_of(kind_), path);
  size_ = static_cast<int64_t>(bytes.size() / layout_of(kind_).row_bytes());
}

int64_t CifarFile::label(int64_t row) const noexcept {
  const Layout& layout = layout_of(kind_);
  const size_t place = static_cast<size_t>(row) * layout.row_bytes() + layout.num_labels - 1;
  return std::to_integer<int64_t>(file_->bytes()[place]);
}

std::span<const std::byte> CifarFile::pixels(int64_t row) const noexcept {
  const Layout& layout = layout_of(kind_);
  const size_t place = static_cast<size_t>(row) * layout.row_bytes() + layout.num_labels;
  return file_->bytes().subspan(place, static_cast<size_t>(kPixels));
}

}  // namespace accrue
