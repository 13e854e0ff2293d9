// SPDX-License-Identifier: Apache-2.0
#include "accrue/checkpoint/state_json.h"

#include <torch/version.h>

#include <limits>

#include "accrue/nn/products.h"
#include "accrue/update/kernels.h"

namespace accrue {
namespace {

using Json = nlohmann::ordered_json;

Json names_of(const NamedTensors& tensors) {
  Json names = Json::array();
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

Json numbers_of(const OptimizerState& optimizer) {
  Json numbers = Json::object();
  for (const auto& [name, number] : optimizer.numbers) numbers[name] = number;
  return numbers;
}

/// Checkpoints of before there were any have none.
void read_numbers(const Json& optimizer, OptimizerState& state) {
  const auto numbers = optimizer.find("numbers");
  if (numbers == optimizer.end()) return;
  for (const auto& [name, number] : numbers->items()) state.numbers.emplace_back(name, number.get<double>());
}

Best best_from(const Json& json) {
  const Json& value = json.at("value");
  return {.update = json.at("update").get<int64_t>(),
          .metric = json.at("metric").get<std::string>(),
          .value = value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>(),
          .weights = json.value("weights", "model"),
          .evaluations_since = json.value("evaluations_since", int64_t{0})};
}

}  // namespace

std::string torch_version() {
  return TORCH_VERSION;
}

Json to_json(const Best& best) {
  return {{"update", best.update},
          {"metric", best.metric},
          {"value", best.value},
          {"weights", best.weights},
          {"evaluations_since", best.evaluations_since}};
}

Json to_json(const TrainingState& state) {
  const SamplerPosition& sampler = state.sampler;
  return {
      {"update", state.update},
      {"epoch", state.epoch},
      {"samples", state.samples},
      {"data_size", state.data_size},
      {"sampler", {{"epoch", sampler.epoch}, {"offset", sampler.offset}, {"dropped", sampler.dropped}}},
      {"optimizer",
       {{"updates", state.optimizer.num_updates},
        {"windows", state.optimizer.num_windows},
        {"numbers", numbers_of(state.optimizer)}}},
      {"micro_sizes", state.micro_sizes},
      {"open_micro_steps", state.open_micro_steps},
      {"best", state.best ? to_json(*state.best) : Json()},
      {"parameters", names_of(state.parameters)},
      {"buffers", names_of(state.buffers)},
      {"versions",
       {{"torch", torch_version()}, {"products", nn::products_in_use()}, {"kernels", kernels_in_use()}}},
  };
}

StateEntries from_json(const Json& json) {
  StateEntries entries;
  TrainingState& state = entries.state;
  json.at("update").get_to(state.update);
  json.at("epoch").get_to(state.epoch);
  json.at("samples").get_to(state.samples);
  json.at("data_size").get_to(state.data_size);
  const Json& sampler = json.at("sampler");
  sampler.at("epoch").get_to(state.sampler.epoch);
  sampler.at("offset").get_to(state.sampler.offset);
  sampler.at("dropped").get_to(state.sampler.dropped);
  json.at("optimizer").at("updates").get_to(state.optimizer.num_updates);
  json.at("optimizer").at("windows").get_to(state.optimizer.num_windows);
  read_numbers(json.at("optimizer"), state.optimizer);
  json.at("micro_sizes").get_to(state.micro_sizes);
  json.at("open_micro_steps").get_to(state.open_micro_steps);
  if (const Json& best = json.at("best"); !best.is_null()) state.best = best_from(best);
  json.at("parameters").get_to(entries.parameters);
  json.at("buffers").get_to(entries.buffers);
  json.at("versions").at("torch").get_to(entries.torch_version);
  entries.products = json.at("versions").value("products", "LibTorch");
  entries.kernels = json.at("versions").value("kernels", "");
  return entries;
}

}  // namespace accrue
