// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accrue/base/error.h"
#include "accrue/config/run.h"

namespace accrue::config {

/// One value given outside the file.
struct Override {
  std::string path;   ///< dotted: "optimizer.lr"
  std::string value;  ///< YAML text
  std::string place;  ///< shown in messages and as origin: "--threads", "argument 3"
};

/// Everything that overrides the file; later entries win over earlier ones of their kind.
struct Overrides {
  std::vector<std::pair<std::string, std::string>> environment;  ///< weakest
  std::vector<Override> flags;
  std::vector<Override> sets;  ///< strongest

  /// Adds a `--set` assignment "a.b=value", of which only the first `=` splits. `argument` is its position on
  /// the command line (1-based). An assignment without `=` is a ConfigError.
  void set(std::string_view assignment, int argument);
};

/// This process's variables whose names begin with ACCRUE_, for Overrides::environment.
std::vector<std::pair<std::string, std::string>> process_environment();

/// A resolved value and where it came from.
struct Setting {
  std::string path;
  std::string value;  ///< YAML text
  std::string
      origin;  ///< "default", "derived", "run.yaml:3:7", "ACCRUE_OPTIMIZER_LR", "--threads", "argument 3"
};

/// A run beside the origin of its values, in the order of the schema; what is not set is not listed.
struct Loaded {
  Run run;
  std::vector<Setting> settings;
  std::string file;  ///< the configuration file as it was named
};

/// What is asked of the files that a configuration names as data and weights.
enum class InputFiles {
  unchecked,   ///< they need not exist yet
  must_exist,  ///< those that do not are listed with the other mistakes (see `check_paths`)
};

/// Reads, checks and resolves: default < file < environment < flags < sets. Throws one error, a ConfigError
/// unless files alone are wrong, that lists every mistake, a line each: `file:line:column: path: found,
/// allowed, hint`.
Loaded load(const std::string& path, const Overrides& overrides = {},
            InputFiles input_files = InputFiles::unchecked);

/// The same for a text that has been read; `name` stands for the file in messages.
Loaded load_text(std::string_view text, const std::string& name, const Overrides& overrides = {},
                 InputFiles input_files = InputFiles::unchecked);

/// The run of `load` alone.
Run load_run(const std::string& path, const Overrides& overrides = {});

/// Adds a problem (data or model) for each input file that is missing or is no file, with the full path
/// looked at and, where `config_file` is given, whether a file of that name lies beside it.
void check_paths(const Run& run, Problems& problems, const std::string& config_file = {});

}  // namespace accrue::config
