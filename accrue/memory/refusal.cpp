// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/refusal.h"

#include <c10/util/Exception.h>

#include <new>

#include "accrue/memory/allocator.h"

namespace accrue::memory {

bool is_refusal(const std::exception_ptr& error, int64_t num_refusals_before) {
  if (statistics().num_refusals > num_refusals_before) return true;
  try {
    std::rethrow_exception(error);
  } catch (const c10::OutOfMemoryError&) {
    return true;
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::string first_line_of(const std::exception_ptr& error) {
  const auto first = [](std::string text) { return text.substr(0, text.find('\n')); };
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& refused) {
    return first(refused.what_without_backtrace());
  } catch (const std::exception& other) {
    return first(other.what());
  } catch (...) {
    return "something that is no std::exception";
  }
}

}  // namespace accrue::memory
