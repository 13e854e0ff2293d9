// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/interrupt.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace accrue {
namespace {

int handled = 0;

void count(int) {
  ++handled;
}

/// The exit code of a child process that runs `call`, or minus the signal that ended it.
template <typename Call>
int in_child(Call call) {
  const pid_t child = ::fork();
  if (child == 0) {
    call();
    ::_exit(7);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(Interrupt, TheFirstSignalOnlySetsTheFlag) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const InterruptGuard guard;
    EXPECT_FALSE(guard.requested());
    ::raise(signal);
    EXPECT_TRUE(guard.requested());
  }
}

TEST(Interrupt, TheSecondSignalOfEitherKindEndsTheProcessAtOnce) {
  for (const auto& [first, second] : {std::pair(SIGINT, SIGINT), std::pair(SIGTERM, SIGINT),
                                      std::pair(SIGINT, SIGTERM), std::pair(SIGTERM, SIGTERM)}) {
    EXPECT_EQ(in_child([first = first, second = second] {
                const InterruptGuard guard;
                ::raise(first);
                ::raise(second);
              }),
              130);
  }
}

TEST(Interrupt, ASecondGuardBeginsWithoutARequest) {
  {
    const InterruptGuard guard;
    ::raise(SIGTERM);
  }
  const InterruptGuard guard;
  EXPECT_FALSE(guard.requested());
  ::raise(SIGTERM);
  EXPECT_TRUE(guard.requested());
}

TEST(Interrupt, WhatTheSignalDidBeforeComesBack) {
  const auto before = std::signal(SIGTERM, count);
  {
    const InterruptGuard guard;
    ::raise(SIGTERM);
  }
  EXPECT_EQ(handled, 0);
  ::raise(SIGTERM);
  EXPECT_EQ(handled, 1);
  std::signal(SIGTERM, before);
}

TEST(Interrupt, AnIgnoredSignalIsHeardWhileTheGuardLives) {
  const auto before = std::signal(SIGINT, SIG_IGN);
  {
    const InterruptGuard guard;
    ::raise(SIGINT);
    EXPECT_TRUE(guard.requested());
  }
  ::raise(SIGINT);
  std::signal(SIGINT, before);
}

}  // namespace
}  // namespace accrue
