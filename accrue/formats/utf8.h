// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace accrue {

/// The place of the first byte that cannot stand there in UTF-8 (overlong forms, surrogates and code points
/// above U+10FFFF among them), or npos.
size_t find_broken_utf8(std::string_view text) noexcept;

/// Code points of valid UTF-8; a last one that is cut counts.
size_t count_characters(std::string_view text) noexcept;

/// Valid UTF-8 cut to at most `limit` bytes between two characters, with "..." behind if anything is gone.
std::string shortened_text(std::string_view text, size_t limit);

}  // namespace accrue
