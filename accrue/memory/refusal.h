// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace accrue::memory {

/// Whether `error` is a refusal of memory: by its type (c10::OutOfMemoryError, std::bad_alloc), or since our
/// allocator has refused something after it had refused `num_refusals_before` times: some layers of LibTorch
/// turn a refusal into another error.
bool is_refusal(const std::exception_ptr& error, int64_t num_refusals_before);

/// The first line of an exception's text, without a library's backtrace.
std::string first_line_of(const std::exception_ptr& error);

}  // namespace accrue::memory
