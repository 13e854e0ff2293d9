// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace accrue {

/// The type of the gradient sums of bf16 and fp16 parameters. fp32 and float64 parameters have sums of their
/// own type either way.
enum class Accumulate {
  fp32,        ///< small gradients are not lost: 1024 additions of 1/1024 give 1
  parameters,  ///< the parameter's type: half the bytes, and 1024 additions of 1/1024 give 0.25 in bf16
};

}  // namespace accrue
