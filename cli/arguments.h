// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accrue/config/load.h"
#include "accrue/report/compare.h"
#include "accrue/report/console.h"

namespace accrue::cli {

/// The command line, parsed.
struct Arguments {
  std::string command;                 ///< "train", ...; empty if `output` is all there is to say
  std::string config;                  ///< CONFIG of the command, or NAME of `init`
  std::vector<std::string> runs = {};  ///< compare: two output folders
  config::Overrides overrides;
  bool dry_run = false;
  bool overwrite = false;
  bool json = false;
  bool fresh = false;                 ///< kept choices of micro-batches are not taken
  bool print = false;                 ///< check: the resolved configuration
  bool list = false;                  ///< init
  std::optional<std::string> resume;  ///< empty text: the latest in output_dir
  std::string export_dir;             ///< verify
  std::string memory;                 ///< verify: a size
  std::string file;                   ///< init: where to write
  std::string split = "valid";        ///< eval: "valid" or "train"
  std::string weights;                ///< eval: a safetensors file; empty: what the run saved
  bool average = false;               ///< eval: the averaged weights
  bool best = false;                  ///< eval: the best checkpoint
  int64_t batch_size = 0;             ///< eval: samples of one forward; 0: as configured
  CompareThresholds thresholds = {};  ///< compare
  bool no_speed = false;              ///< doctor: nothing is measured
  Verbosity verbosity = Verbosity::normal;
  std::string output;  ///< help or version text asked for
};

/// Parses what comes after the program's name. Throws ConfigError for everything that is wrong (exit code 2).
Arguments parse(const std::vector<std::string>& words);

}  // namespace accrue::cli
