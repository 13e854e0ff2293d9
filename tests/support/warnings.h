// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "accrue/base/log.h"

namespace accrue::test {

/// Collects the warnings that are given while it lives.
class Warnings {
 public:
  Warnings() : before_(set_warning_sink([this](const std::string& text) { texts.push_back(text); })) {}
  ~Warnings() { set_warning_sink(std::move(before_)); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;

  std::vector<std::string> texts;

 private:
  LogSink before_;
};

}  // namespace accrue::test
