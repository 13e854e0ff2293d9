// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "accrue/formats/purpose.h"

namespace accrue {

/// Throws an error of the purpose's kind if `text` is what a failed download or a packer leaves in place of a
/// file: a Git LFS pointer, a web page, a gzip file.
void refuse_foreign(std::string_view text, const std::string& path, Purpose purpose);

}  // namespace accrue
