// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/token_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "accrue/base/messages/formats.h"
#include "accrue/formats/foreign.h"
#include "accrue/formats/gzip.h"

namespace accrue {
namespace {

static_assert(std::endian::native == std::endian::little, "the ids of token files are little-endian");

constexpr size_t kHeaderBytes = 256 * sizeof(int32_t);

// The headers that llm.c writes: https://github.com/karpathy/llm.c, dev/data/data_common.py.
struct KnownHeader {
  int32_t magic;
  int32_t version;
  TokenType type;
};
constexpr std::array<KnownHeader, 2> kHeaders{
    {{20240520, 1, TokenType::uint16}, {20240801, 7, TokenType::uint32}}};

std::string_view type_name(TokenType type) {
  return type == TokenType::uint16 ? "uint16" : "uint32";
}

size_t bytes_of(TokenType type) noexcept {
  return type == TokenType::uint16 ? sizeof(uint16_t) : sizeof(uint32_t);
}

int32_t number_at(std::span<const std::byte> bytes, size_t index) {
  int32_t number = 0;
  std::memcpy(&number, bytes.data() + index * sizeof(number), sizeof(number));
  return number;
}

const KnownHeader* find_header(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(int32_t)) return nullptr;
  for (const KnownHeader& header : kHeaders)
    if (number_at(bytes, 0) == header.magic) return &header;
  return nullptr;
}

// Ids may begin as another kind of file does by chance, so gzip must unpack to be taken for it.
void refuse_other_kinds(const MappedFile& file, const std::string& path) {
  if (file.text().starts_with("\x93NUMPY")) fail(message::token_numpy, {{"path", path}});
  if (is_gzip(file.bytes())) {
    try {
      unpack_gzip(file.bytes(), 64, path);
    } catch (const DataError&) {
      return;
    }
  }
  refuse_foreign(file.text(), path, Purpose::data);
}

void check_header(std::span<const std::byte> bytes, const KnownHeader& header, TokenType asked,
                  const std::string& path) {
  if (bytes.size() < kHeaderBytes)
    fail(message::token_header_cut, {{"path", path}, {"got", bytes.size()}, {"needed", kHeaderBytes}});
  const int32_t version = number_at(bytes, 1);
  if (version != header.version)
    fail(message::token_version,
         {{"path", path}, {"magic", header.magic}, {"got", version}, {"needed", header.version}});
  if (asked != TokenType::automatic && asked != header.type)
    fail(message::token_type,
         {{"path", path}, {"got", type_name(asked)}, {"needed", type_name(header.type)}});
}

// The place of the first id that is at least `vocabulary`. Blocks are first looked at without a branch.
template <typename Id>
std::optional<int64_t> find_large_id(const MappedFile& file, std::span<const std::byte> bytes,
                                     int64_t vocabulary) {
  if (vocabulary > static_cast<int64_t>(std::numeric_limits<Id>::max())) return std::nullopt;
  const auto bound = static_cast<Id>(vocabulary);
  constexpr size_t block = 4096;
  std::array<Id, block> ids;
  const size_t count = bytes.size() / sizeof(Id);
  ForgetBehind behind(&file, bytes.data());
  for (size_t begin = 0; begin < count; begin += block) {
    const size_t size = std::min(block, count - begin);
    const std::byte* const place = bytes.data() + begin * sizeof(Id);
    behind.passed(place);
    std::memcpy(ids.data(), place, size * sizeof(Id));
    std::fill(ids.begin() + static_cast<ptrdiff_t>(size), ids.end(), Id{0});
    Id largest = 0;
    for (const Id id : ids) largest = std::max(largest, id);
    if (largest < bound) continue;
    for (size_t i = 0; i < size; ++i)
      if (ids[i] >= bound) return static_cast<int64_t>(begin + i);
  }
  return std::nullopt;
}

template <typename Id>
void widen(std::span<const std::byte> bytes, int64_t* out) noexcept {
  for (size_t i = 0; i < bytes.size() / sizeof(Id); ++i) {
    Id id = 0;
    std::memcpy(&id, bytes.data() + i * sizeof(Id), sizeof(Id));
    out[i] = static_cast<int64_t>(id);
  }
}

}  // namespace

TokenFile::TokenFile(const std::string& path, TokenType type, int64_t vocabulary)
    : path_(path), file_(std::make_unique<MappedFile>(path, Purpose::data)), type_(type) {
  ids_ = file_->bytes();
  if (ids_.empty()) fail(message::token_empty, {{"path", path}});
  const KnownHeader* const header = find_header(ids_);
  int64_t claimed = -1;
  if (header != nullptr) {
    check_header(ids_, *header, type, path);
    type_ = header->type;
    claimed = number_at(ids_, 2);
    ids_ = ids_.subspan(kHeaderBytes);
  } else {
    refuse_other_kinds(*file_, path);
    if (type_ == TokenType::automatic)
      type_ = vocabulary > int64_t{1} << 16 ? TokenType::uint32 : TokenType::uint16;
  }
  if (ids_.size() % bytes_of(type_) != 0)
    fail(message::token_half,
         {{"path", path}, {"got", ids_.size()}, {"type", type_name(type_)}, {"needed", bytes_of(type_)}});
  size_ = static_cast<int64_t>(ids_.size() / bytes_of(type_));
  if (header != nullptr && claimed != size_)
    fail(message::token_count, {{"path", path}, {"got", size_}, {"needed", claimed}});
  if (size_ == 0) fail(message::token_empty, {{"path", path}});
  if (vocabulary <= 0) return;
  const std::optional<int64_t> place = type_ == TokenType::uint16
                                           ? find_large_id<uint16_t>(*file_, ids_, vocabulary)
                                           : find_large_id<uint32_t>(*file_, ids_, vocabulary);
  if (!place) return;
  int64_t id = 0;
  copy(*place, 1, &id);
  fail(message::token_id, {{"path", path},
                           {"place", *place},
                           {"got", id},
                           {"type", type_name(type_)},
                           {"vocabulary", vocabulary}});
}

void TokenFile::copy(int64_t begin, int64_t count, int64_t* out) const noexcept {
  const size_t width = bytes_of(type_);
  const auto bytes = ids_.subspan(static_cast<size_t>(begin) * width, static_cast<size_t>(count) * width);
  if (type_ == TokenType::uint16)
    widen<uint16_t>(bytes, out);
  else
    widen<uint32_t>(bytes, out);
}

}  // namespace accrue
