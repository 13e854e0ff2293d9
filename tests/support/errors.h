// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "accrue/base/error.h"

namespace accrue::test {

/// Runs `call` and compares class and whole text of the error that it throws.
template <typename Kind, typename Call>
testing::AssertionResult throws_error(Call&& call, const std::string& text) {
  try {
    call();
  } catch (const Kind& error) {
    if (error.what() == text) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "text is\n  " << error.what() << "\ninstead of\n  " << text;
  } catch (const Error& error) {
    return testing::AssertionFailure() << "a " << kind_name(error.kind()) << ": " << error.what();
  }
  return testing::AssertionFailure() << "nothing was thrown";
}

}  // namespace accrue::test

/// The statement throws an error of class `kind` whose whole text is `text`.
#define EXPECT_ERROR(statement, kind, text) \
  EXPECT_TRUE((::accrue::test::throws_error<kind>([&] { static_cast<void>(statement); }, text)))
