// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/shape_text.h"

#include <sstream>

namespace accrue {

std::string shape_text(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes();
  return text.str();
}

}  // namespace accrue
