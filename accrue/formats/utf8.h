// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace accrue {

/// The place of the first byte that cannot stand there in UTF-8 (overlong forms, surrogates and code points
/// above U+10FFFF among them), or npos.
size_t find_broken_utf8(std::string_view text) noexcept;

}  // namespace accrue
