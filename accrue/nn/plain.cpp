// SPDX-License-Identifier: Apache-2.0
#include "accrue/nn/plain.h"

#include <atomic>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"

namespace accrue::nn {
namespace {

bool asked_by_environment() {
  const char* const value = std::getenv("ACCRUE_NN");
  const std::string_view word = value == nullptr ? "" : value;
  if (word.empty() || word == "fast") return false;
  if (word != "plain") fail(message::nn_plain, {{"got", word}});
  return true;
}

// Of the process, not of a thread: backward may run on another one. -1: as the environment says.
std::atomic<int> forced = -1;

}  // namespace

bool is_plain() {
  static const bool asked = asked_by_environment();
  const int now = forced.load(std::memory_order_relaxed);
  return now < 0 ? asked : now == 1;
}

PlainScope::PlainScope(bool plain) : outer_(forced.exchange(plain ? 1 : 0)) {}

PlainScope::~PlainScope() {
  forced = outer_;
}

}  // namespace accrue::nn
