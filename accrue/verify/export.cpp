// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/export.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "accrue/base/error.h"
#include "accrue/base/messages/verify.h"
#include "accrue/data/tensor_file.h"
#include "accrue/formats/atomic_file.h"

namespace accrue {
namespace {

using Json = nlohmann::ordered_json;

NamedTensors as_fp32(const NamedTensors& tensors) {
  NamedTensors list;
  for (const auto& [name, tensor] : tensors) list.add(name, tensor.to(at::kFloat));
  return list;
}

Json manifest(const Verdict& verdict, const ExportDescription& description) {
  Json loss = {{"kind", description.loss}, {"label_smoothing", description.label_smoothing}};
  if (description.loss == "huber") loss["delta"] = description.huber_delta;
  Json model = {{"kind", description.model}};
  if (!description.sizes.empty()) model["sizes"] = description.sizes;
  if (!description.activation.empty()) model["activation"] = description.activation;
  if (!description.norm.empty()) {
    model["norm"] = description.norm;
    model["groups"] = description.groups;
  }
  if (description.heads > 0) {
    model["layers"] = description.layers;
    model["heads"] = description.heads;
    model["dropout"] = description.dropout;
  }
  return {{"format", 1},
          {"task", description.task},
          {"loss", std::move(loss)},
          {"model", std::move(model)},
          {"inputs", description.inputs},
          {"target", description.target},
          {"samples", verdict.scope.samples},
          {"samples_in_batch", verdict.scope.samples_in_batch},
          {"seed", verdict.scope.seed},
          {"device", verdict.scope.device},
          {"micro_sizes", verdict.micro_sizes},
          {"loss_full", verdict.loss_full},
          {"loss_accumulated", verdict.loss_accumulated},
          {"compute_type", verdict.compute_type},
          {"verdict", outcome_name(verdict.outcome)}};
}

}  // namespace

void export_verification(const std::string& folder, const Evidence& evidence, const Verdict& verdict,
                         const ExportDescription& description) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) fail(message::export_folder, {{"path", folder}, {"why", problem.message()}});
  const std::string place = folder + "/";
  save_tensors(place + "batch.safetensors", evidence.batch.fields());
  save_tensors(place + "parameters.safetensors", evidence.parameters);
  save_tensors(place + "gradients_whole.safetensors", as_fp32(evidence.gradients_whole));
  save_tensors(place + "gradients_split.safetensors", as_fp32(evidence.gradients_split));
  // Last, so that a manifest means that the rest is there.
  write_file_atomically(place + "manifest.json", manifest(verdict, description).dump(2) + "\n");
}

}  // namespace accrue
