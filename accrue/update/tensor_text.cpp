// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/tensor_text.h"

#include <sstream>

namespace accrue {

std::string tensor_text(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::ostringstream text;
  text << c10::toString(tensor.scalar_type()) << ' ' << tensor.sizes();
  return text.str();
}

}  // namespace accrue
