// SPDX-License-Identifier: Apache-2.0
// Pointwise passes over tensors, dealt to threads by rows.
#pragma once

#include <ATen/core/Tensor.h>

#include "accrue/base/activation.h"

namespace accrue::nn {

/// value = activation(x + bias), slope = its derivative there. All contiguous in one compute type, x [...,
/// width]; bias [width] or undefined, slope undefined where it is not wanted, value may be x.
void activate_rows(Activation activation, const at::Tensor& x, const at::Tensor& bias,
                   const at::Tensor& value, const at::Tensor& slope = {});

/// rows [n, width] += bias [width] + addend [n, width]; either may be undefined. All contiguous in one
/// compute type.
void add_to_rows(const at::Tensor& rows, const at::Tensor& bias, const at::Tensor& addend = {});

/// Adds the columns' sums of rows [n, width] to `sums` [width]; does nothing where that is undefined.
void add_columns(const at::Tensor& rows, const at::Tensor& sums);

}  // namespace accrue::nn
