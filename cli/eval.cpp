// SPDX-License-Identifier: Apache-2.0
// The commands that look at what runs have left: eval, compare.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "accrue/base/error.h"
#include "accrue/base/messages/cli.h"
#include "accrue/checkpoint/checkpoint.h"
#include "accrue/data/tensor_file.h"
#include "accrue/formats/mapped_file.h"
#include "accrue/report/compare.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "models/models.h"

namespace accrue::cli {
namespace {

namespace fs = std::filesystem;

/// Where the weights come from, and what the run's data need before they go into the model.
struct Source {
  std::string path;       // for the report
  NamedTensors weights;   // parameters and buffers
  std::string transform;  // empty: fitted on the training data
};

NamedTensors joined(NamedTensors first, const NamedTensors& second) {
  for (const auto& [name, tensor] : second) first.add(name, tensor);
  return first;
}

/// The averages in the place of the parameters that have one.
NamedTensors averages_of(const TrainingState& state, const std::string& where) {
  NamedTensors list;
  bool any = false;
  for (const auto& [name, tensor] : state.parameters) {
    const at::Tensor* const average = state.optimizer.tensors.find(name + ".average");
    any = any || average != nullptr;
    list.add(name, average != nullptr ? *average : tensor);
  }
  if (!any) fail(message::eval_no_average, {{"path", where}});
  return list;
}

Source from_checkpoint(const fs::path& checkpoint, bool average) {
  TrainingState state = load_checkpoint(checkpoint);
  NamedTensors parameters = average ? averages_of(state, checkpoint.string()) : std::move(state.parameters);
  return {checkpoint.string(), joined(std::move(parameters), state.buffers), state.transform_json};
}

std::string saved_transform(const fs::path& output_dir) {
  const fs::path file = output_dir / "data.json";
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return "";
  return std::string(MappedFile(file.string(), Purpose::checkpoint).text());
}

Source find_source(const Arguments& arguments, const config::Run& run) {
  const fs::path output_dir = run.output_dir;
  if (!arguments.weights.empty()) {
    return {arguments.weights, map_tensors(arguments.weights, Purpose::model), saved_transform(output_dir)};
  }
  if (arguments.best) {
    const BestCheckpoint best = best_checkpoint(output_dir);
    return from_checkpoint(best.path, arguments.average || best.average);
  }
  const fs::path file = output_dir / (arguments.average ? "model-average.safetensors" : "model.safetensors");
  std::error_code ignored;
  if (fs::exists(file, ignored)) {
    return {file.string(), map_tensors(file.string(), Purpose::model), saved_transform(output_dir)};
  }
  if (!fs::exists(output_dir / "checkpoints", ignored))
    fail(message::eval_no_run, {{"path", output_dir.string()}});
  return from_checkpoint(find_checkpoint(output_dir), arguments.average);
}

void print_table(const EvalResult& result, const Source& source, const std::string& split) {
  std::cout << "weights: " << source.path << "\nsplit: " << split << ", " << result.samples
            << " samples, weight " << result.weight << '\n';
  const auto line = [](const std::string& name, double value) {
    std::ostringstream text;
    text.precision(8);
    text << name << ": " << value << '\n';
    std::cout << text.str();
  };
  line("loss", result.loss);
  for (const auto& [name, value] : result.metrics) line(name, value);
}

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

void print_json(const EvalResult& result, const Source& source, const std::string& split) {
  nlohmann::ordered_json metrics = {{"loss", number(result.loss)}};
  for (const auto& [name, value] : result.metrics) metrics[name] = number(value);
  const nlohmann::ordered_json report = {{"weights", source.path},    {"split", split},
                                         {"samples", result.samples}, {"weight", result.weight},
                                         {"metrics", metrics},        {"seconds", result.seconds}};
  std::cout << report.dump(2) << '\n';
}

}  // namespace

int eval(const Arguments& arguments) {
  config::Loaded loaded = load(arguments);
  loaded.run.model.weights.clear();
  if (arguments.best && !arguments.weights.empty()) fail(message::eval_best_and_weights);
  const Source source = find_source(arguments, loaded.run);
  Session session = build(std::move(loaded), source.transform);
  models::load_weights(session.model, source.weights, source.path);
  const std::shared_ptr<Data>& data = arguments.split == "train" ? session.data.train : session.data.valid;
  if (!data) fail(message::eval_no_valid);
  EvalOptions options = session.eval_options();
  if (arguments.batch_size > 0) options.batch_size = arguments.batch_size;
  const EvalResult result =
      evaluate(session.model, session.objective.loss, session.objective.metrics, *data, options);
  arguments.json ? print_json(result, source, arguments.split) : print_table(result, source, arguments.split);
  return 0;
}

int compare(const Arguments& arguments) {
  const Comparison comparison = compare_runs(arguments.runs[0], arguments.runs[1], arguments.thresholds);
  std::cout << (arguments.json ? to_json(comparison) + "\n" : to_text(comparison));
  return 0;
}

}  // namespace accrue::cli
