// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace accrue {

/// The pointwise functions between layers. `gelu` is x Phi(x) (Hendrycks and Gimpel 2016), `gelu_tanh` its
/// tanh form, `silu` x sigmoid(x).
enum class Activation { relu, gelu, gelu_tanh, tanh, silu };

}  // namespace accrue
