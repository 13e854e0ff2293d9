// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace accrue {

/// How the ids of a token shard are stored.
enum class TokenType {
  automatic,  ///< a known header decides; without one uint16, or uint32 where the vocabulary needs it
  uint16,
  uint32,
};

enum class CifarKind { automatic, cifar10, cifar100 };

}  // namespace accrue
