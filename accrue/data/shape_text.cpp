// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/shape_text.h"

#include <sstream>

namespace accrue {

std::string shape_text(const at::Tensor& tensor) {
  return shape_text(tensor.sizes());
}

std::string shape_text(at::IntArrayRef sizes) {
  std::ostringstream text;
  text << sizes;
  return text.str();
}

}  // namespace accrue
