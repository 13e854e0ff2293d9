// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "accrue/data/named_tensors.h"
#include "accrue/formats/safetensors.h"

namespace accrue {

/// The tensors of a safetensors file, copied, in the order of its header. Throws an error of the purpose's
/// kind.
NamedTensors load_tensors(const std::string& path, Purpose purpose);

/// The same, but the tensors lie in the mapped file: nothing is copied, and they must be read alone. The
/// mapping lives as long as they do.
NamedTensors map_tensors(const std::string& path, Purpose purpose);

/// Writes a safetensors file atomically, every tensor with its own type and exact bits, on the CPU and
/// contiguous. Throws ArgumentError for a type that the format does not have, StateError if the file cannot
/// be written.
void save_tensors(const std::string& path, const NamedTensors& tensors,
                  const std::map<std::string, std::string>& metadata = {});

}  // namespace accrue
