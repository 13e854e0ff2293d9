// SPDX-License-Identifier: Apache-2.0
// A program of its own: the allocator that it puts in place stays.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include "accrue/memory/allocator.h"
#include "tests/support/errors.h"

namespace accrue::memory {
namespace {

class OtherAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override { return c10::GetDefaultCPUAllocator()->allocate(bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return c10::GetDefaultCPUAllocator()->raw_deleter(); }
  void copy_data(void* target, const void* source, size_t bytes) const override {
    c10::GetDefaultCPUAllocator()->copy_data(target, source, bytes);
  }
};

TEST(Install, RefusesToReplaceAnothersAllocator) {
  static OtherAllocator other;
  c10::SetCPUAllocator(&other, 1);
  EXPECT_ERROR(install({.budget = 5}), StateError,
               "another CPU allocator than LibTorch's own stands already; call accrue::memory::install first "
               "thing in main, in a program that installs no other one");
  EXPECT_FALSE(is_installed());
  EXPECT_EQ(budget(), std::nullopt);
  EXPECT_EQ(c10::GetCPUAllocator(), &other);
}

}  // namespace
}  // namespace accrue::memory
