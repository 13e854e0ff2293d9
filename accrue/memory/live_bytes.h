// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

namespace accrue::memory {

/// Counts the bytes of CPU tensors that come and go on this thread (backward included) while it lives, from
/// LibTorch's own memory reports. Tensors from before it do not count, nor does their end. One inside another
/// hides the outer one for its time; so does the profiler.
class PeakBytes {
 public:
  PeakBytes();
  ~PeakBytes();
  PeakBytes(const PeakBytes&) = delete;
  PeakBytes& operator=(const PeakBytes&) = delete;

  int64_t live_bytes() const noexcept;  ///< of tensors made since and still there
  int64_t peak_bytes() const noexcept;  ///< the largest value of live_bytes so far
  /// The peak is counted anew from what is live now.
  void reset_peak() noexcept;

 private:
  class Reports;
  struct Scope;
  std::shared_ptr<Reports> reports_;
  std::unique_ptr<Scope> scope_;
};

}  // namespace accrue::memory
