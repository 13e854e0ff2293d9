// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace accrue::nn {

/// Whether the environment variable ACCRUE_NN is "plain": layers are then torch's own operations and every
/// micro-step goes through autograd. Read once. Throws ConfigError for another word than "plain" and "fast".
bool is_plain();

/// Sets it for a scope, for tests that compare both ways.
class PlainScope {
 public:
  explicit PlainScope(bool plain = true);
  ~PlainScope();
  PlainScope(const PlainScope&) = delete;
  PlainScope& operator=(const PlainScope&) = delete;

 private:
  int outer_;
};

}  // namespace accrue::nn
