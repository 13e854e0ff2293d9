// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "accrue/base/messages/cli.h"
#include "accrue/base/nearest.h"
#include "accrue/config/schema.h"

namespace accrue::cli {
namespace {

constexpr const char* kResumeFrom = "--resume-from";

/// Takes `--set` assignments out (their text may hold anything, and messages need their position) and tells a
/// bare
/// `--resume` from `--resume=DIR`, whose folder is optional.
std::vector<std::string> take_special(const std::vector<std::string>& words, config::Overrides& overrides) {
  std::vector<std::string> rest;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--set") {
      if (i + 1 == words.size()) fail(message::set_without_value);
      overrides.set(words[i + 1], static_cast<int>(i) + 2);
      ++i;
    } else if (word.starts_with("--set=")) {
      overrides.set(std::string_view(word).substr(6), static_cast<int>(i) + 1);
    } else if (word.starts_with("--resume=")) {
      rest.emplace_back(kResumeFrom);
      rest.push_back(word.substr(9));
    } else {
      rest.push_back(word);
    }
  }
  return rest;
}

struct Flags {
  bool quiet = false;
  bool verbose = false;
  bool resume = false;
  std::string resume_from;
  std::string seed;
  std::string threads;
  std::string output_dir;
  std::string overfit;
};

CLI::App* add_command(CLI::App& app, const char* name, const char* help, Arguments& arguments) {
  CLI::App* command = app.add_subcommand(name, help);
  command->callback([&arguments, name] { arguments.command = name; });
  return command;
}

void add_configuration(CLI::App* command, Arguments& arguments, Flags& flags, std::string& shown_set) {
  command->add_option("CONFIG", arguments.config, "YAML or JSON file")->required();
  command->add_option("--set", shown_set, "KEY=VALUE: one value of the configuration; may be repeated");
  command->add_option("--seed", flags.seed, "the same as --set seed=");
  command->add_option("--threads", flags.threads, "the same as --set threads=");
  command->add_option("--output-dir", flags.output_dir, "the same as --set output_dir=");
  command->add_flag("-q,--quiet", flags.quiet, "errors and warnings alone");
  command->add_flag("-v,--verbose", flags.verbose, "a line a micro-step");
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  const auto add = [&names](const CLI::App& from) {
    for (const CLI::Option* option : from.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        if (name != "resume-from") names.push_back("--" + name);
      }
    }
  };
  add(app);
  for (const CLI::App* used : app.get_subcommands()) add(*used);
  return names;
}

std::vector<std::string> command_names(CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

/// What an unknown word may have been meant as: an option, or a key of the configuration.
std::string hint(const std::string& word, const std::vector<std::string>& options) {
  const std::string name = word.substr(0, word.find('='));
  if (const std::string near = did_you_mean(name, options); !near.empty()) return near;
  const std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  for (const config::Key& key : config::schema()) {
    if (bare == key.path || (bare == key.name() && name != bare)) {
      return "; a value of the configuration is given as --set " + std::string(key.path) + "=VALUE";
    }
  }
  return "";
}

[[noreturn]] void fail_usage(CLI::App& app, const std::vector<std::string>& words,
                             const CLI::ParseError& error) {
  const std::vector<std::string> commands = command_names(app);
  if (app.get_subcommands().empty()) {
    const auto first = std::find_if(words.begin(), words.end(),
                                    [](const std::string& word) { return !word.starts_with("-"); });
    if (first == words.end()) fail(message::no_command, {{"commands", join(commands)}});
    fail(message::unknown_command,
         {{"got", *first}, {"commands", join(commands)}, {"hint", did_you_mean(*first, commands)}});
  }
  const std::string command = app.get_subcommands().front()->get_name();
  const std::vector<std::string> extras = app.remaining(true);
  if (!extras.empty()) {
    const auto resume = std::find(words.begin(), words.end(), "--resume");
    if (resume != words.end() && resume + 1 != words.end() && resume[1] == extras.back())
      fail(message::resume_folder_apart, {{"got", extras.back()}});
    const auto option = std::find_if(extras.begin(), extras.end(),
                                     [](const std::string& word) { return word.starts_with("-"); });
    const std::string& got = option == extras.end() ? extras.front() : *option;
    fail(message::unknown_argument,
         {{"got", got}, {"hint", hint(got, option_names(app))}, {"command", command}});
  }
  if (error.get_name() == "RequiredError") fail(message::no_configuration, {{"command", command}});
  if (error.get_name() == "ArgumentMismatch") {
    const std::string what = error.what();
    fail(message::option_without_value, {{"option", what.substr(0, what.find(':'))}, {"command", command}});
  }
  fail(message::usage, {{"what", error.what()}, {"command", command}});
}

void add_fresh(CLI::App* command, Arguments& arguments) {
  command->add_flag("--fresh", arguments.fresh,
                    "choose the micro-batch by measuring anew, not from the kept choices");
}

/// An empty value is most often a variable of the shell that is not set: left out, it would be a default that
/// nobody asked for.
void check_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string>& values = option->results();
    if (std::find(values.begin(), values.end(), "") == values.end()) continue;
    const bool resume = option->check_lname(kResumeFrom + 2);
    fail(message::option_empty, {{"option", resume ? "--resume=" : option->get_name()}});
  }
}

void finish(Arguments& arguments, const Flags& flags) {
  if (flags.quiet && flags.verbose) fail(message::quiet_and_verbose);
  if (flags.quiet) arguments.verbosity = Verbosity::quiet;
  if (flags.verbose) arguments.verbosity = Verbosity::verbose;
  if (flags.resume) arguments.resume = "";
  if (!flags.resume_from.empty()) arguments.resume = flags.resume_from;
  if (arguments.resume && arguments.overwrite) fail(message::resume_and_overwrite);
  const auto add = [&arguments](const char* path, const std::string& value, const char* flag) {
    if (!value.empty()) arguments.overrides.flags.push_back({path, value, flag});
  };
  add("seed", flags.seed, "--seed");
  add("threads", flags.threads, "--threads");
  add("output_dir", flags.output_dir, "--output-dir");
  add("train.overfit", flags.overfit, "--overfit");
}

}  // namespace

Arguments parse(const std::vector<std::string>& words) {
  Arguments arguments;
  Flags flags;
  std::string shown_set;
  CLI::App app("Accrue: the update of a large batch within a small memory, proved equal on your own model.",
               "accrue");
  app.set_version_flag("--version", "accrue " ACCRUE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "A smaller micro-batch needs less memory and makes more passes over the same batch: no gain in\n"
      "throughput is promised, and the learning rate stays as configured.\n\n"
      "Exit codes: 0 done (verify: equal), 1 failed (verify: different), 2 usage or configuration, 3 data,\n"
      "4 model files, 5 budget, 6 verify: not claimed, 130 interrupted after saving.");

  CLI::App* train = add_command(app, "train", "train from a configuration", arguments);
  add_configuration(train, arguments, flags, shown_set);
  add_fresh(train, arguments);
  train->add_flag("--dry-run", arguments.dry_run, "make one update in memory and show it, write nothing");
  train->add_option("--overfit", flags.overfit,
                    "the same as --set train.overfit=: train and validate on N samples alone");
  train->add_flag("--resume", flags.resume,
                  "go on from the latest checkpoint in output_dir; --resume=DIR from another");
  train->add_option(kResumeFrom, flags.resume_from, "")->group("");
  train->add_flag("--overwrite", arguments.overwrite, "remove what an earlier run left in output_dir");
  train->add_flag("--json", arguments.json, "print the summary as JSON, with -q as well");

  CLI::App* plan = add_command(app, "plan", "show how the batch is cut and what it needs", arguments);
  add_configuration(plan, arguments, flags, shown_set);
  add_fresh(plan, arguments);
  plan->add_flag("--json", arguments.json, "print one JSON object");

  CLI::App* verify = add_command(
      app, "verify", "compare the whole batch with the split one on this model and data", arguments);
  add_configuration(verify, arguments, flags, shown_set);
  add_fresh(verify, arguments);
  verify->add_flag("--json", arguments.json, "print one JSON object");
  verify->add_option("--export", arguments.export_dir,
                     "write batch, parameters and both gradients to this folder");
  verify->add_option("--memory", arguments.memory,
                     "compare the largest part whose tensors fit in this size (512MiB)");

  CLI::App* eval = add_command(app, "eval", "measure what a run has learned, on any of its data", arguments);
  add_configuration(eval, arguments, flags, shown_set);
  eval->add_option("--split", arguments.split, "valid or train")->check(CLI::IsMember({"valid", "train"}));
  eval->add_option("--weights", arguments.weights,
                   "safetensors file; default: what the run saved in output_dir");
  eval->add_flag("--average", arguments.average, "the averaged weights (train.ema)");
  eval->add_flag("--best", arguments.best, "the weights of the best checkpoint");
  eval->add_option("--batch-size", arguments.batch_size, "samples of one forward; the numbers stay the same")
      ->check(CLI::Range(int64_t{1}, int64_t{2147483647}));
  eval->add_flag("--json", arguments.json, "print one JSON object");

  CLI::App* compare = add_command(
      app, "compare", "set two runs of equal batches side by side: memory, time, loss", arguments);
  compare->add_option("RUN", arguments.runs, "output folders: the baseline, the candidate")
      ->required()
      ->expected(2);
  compare->add_option("--min-ms", arguments.thresholds.milliseconds, "gain of time an update that counts");
  compare->add_option("--min-mb", arguments.thresholds.megabytes, "gain of peak memory that counts");
  compare->add_flag("--json", arguments.json, "print one JSON object");

  CLI::App* check =
      add_command(app, "check", "find every mistake of configuration, data and model", arguments);
  add_configuration(check, arguments, flags, shown_set);
  check->add_flag("--print", arguments.print, "print the resolved configuration");

  CLI::App* init = add_command(app, "init", "list ready configurations, or write one", arguments);
  init->add_option("NAME", arguments.config, "which one");
  init->add_flag("--list", arguments.list, "list them");
  init->add_option("-o,--output", arguments.file, "file to write; default NAME.yaml");

  add_command(app, "schema", "print the JSON Schema of the configuration", arguments);
  CLI::App* doctor = add_command(
      app, "doctor", "show versions, threads, memory and speed, and what slows it down", arguments);
  doctor->add_flag("--no-speed", arguments.no_speed, "measure nothing; the measurements take two seconds");
  doctor->add_option("--threads", flags.threads, "measure with so many; default: as a run would");
  doctor->add_flag("--json", arguments.json, "print one JSON object");

  std::vector<std::string> rest = take_special(words, arguments.overrides);
  std::reverse(rest.begin(), rest.end());
  try {
    app.parse(rest);
  } catch (const CLI::CallForHelp&) {
    arguments.output = app.help();
  } catch (const CLI::CallForVersion& version) {
    arguments.output = std::string(version.what()) + "\n";
  } catch (const CLI::ParseError& error) {
    fail_usage(app, words, error);
  }
  if (!arguments.output.empty()) {
    arguments.command.clear();
    return arguments;
  }
  check_values(*app.get_subcommands().front());
  finish(arguments, flags);
  return arguments;
}

}  // namespace accrue::cli
