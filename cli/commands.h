// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/arguments.h"

namespace accrue::cli {

/// The commands; each gives the program's exit code. Results go to stdout, progress and messages to stderr.
int train(const Arguments& arguments);
int plan(const Arguments& arguments);
int verify(const Arguments& arguments);
int eval(const Arguments& arguments);
int compare(const Arguments& arguments);
int check(const Arguments& arguments);
int init(const Arguments& arguments);
int schema(const Arguments& arguments);
int doctor(const Arguments& arguments);

/// The configuration of the arguments, with the environment and the overrides.
config::Loaded load(const Arguments& arguments);

}  // namespace accrue::cli
