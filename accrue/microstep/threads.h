// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace accrue {

/// Gives LibTorch's operations `count` threads and starts them, so that a limit of the system is met here and
/// as an error: OpenMP, which would start them with the first operation, ends the process. BudgetError where
/// there is no room for their stacks, StateError where the system allows no more threads.
void use_threads(int count);

}  // namespace accrue
