// SPDX-License-Identifier: Apache-2.0
#include "models/size.h"

#include <unistd.h>

#include <algorithm>

#include "accrue/base/error.h"
#include "accrue/base/messages/models.h"
#include "accrue/base/units.h"

namespace accrue::models {

void check_size(std::string_view what, int64_t got) {
  if (got < 1) fail(message::model_size, {{"what", what}, {"got", got}});
}

void check_memory(double parameters) {
  const double bytes = parameters * sizeof(float);
  const double memory =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (bytes <= memory) return;
  fail(message::model_too_large, {{"parameters", parameters},
                                  {"bytes", format_bytes(static_cast<uint64_t>(std::min(bytes, 9e18)))},
                                  {"memory", format_bytes(static_cast<uint64_t>(memory))}});
}

}  // namespace accrue::models
