// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace accrue {

/// Of a budget of the process, the bytes that the allocator does not give out: scratch of kernels, files and
/// code that is run for the first time (some 4 MiB in a small run, up to 11 with another size of convolution)
/// may come between two looks at the process. 1.5 %, at least 10 MiB, at most half.
int64_t guard_of(int64_t budget);

/// Of what a budget leaves to give out, the bytes that no plan counts on, for what moves between
/// measurements: stacks, small blocks, the library's own objects. 1 %, at least 4 MiB; what trying sizes left
/// in the process may have taken half of it.
int64_t reserve_of(int64_t usable);

/// The smallest number of bytes to give out that holds a peak of so many bytes beside its reserve.
int64_t usable_for(int64_t peak);

/// The smallest budget of the process that leaves so many bytes to give out.
int64_t budget_for(int64_t usable);

}  // namespace accrue
