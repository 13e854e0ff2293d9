// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace accrue {

/// Whether the processor multiplies matrices in bf16 by itself (AVX-512 BF16, AMX or Arm's BF16), as
/// /proc/cpuinfo tells; without such units bf16 products are many times slower than fp32 ones. `root` stands
/// for "/".
bool has_bf16_units(const std::filesystem::path& root = "/");

}  // namespace accrue
