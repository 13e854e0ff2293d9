// SPDX-License-Identifier: Apache-2.0
// Our optimizers against PyTorch's own over 100 updates: golden/optimizers.json, made by
// golden/make_optimizers.py.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/update/windows.h"

namespace accrue {
namespace {

using Json = nlohmann::json;

// The closed forms of make_optimizers.py.
double golden_start(int64_t parameter, int64_t index) {
  return static_cast<double>((5 * index + 3 * parameter) % 17 - 8) / 8;
}
double golden_gradient(int64_t parameter, int64_t index, int64_t update) {
  return static_cast<double>((7 * index + 13 * update + 5 * parameter) % 23 - 11) / 16;
}

const Json& golden() {
  static const Json file = Json::parse(std::ifstream(ACCRUE_SOURCE_DIR "/tests/golden/optimizers.json"));
  return file;
}

template <class AnyAdam>
AnyAdam adam_options(const Json& options) {
  const auto betas = options.value("betas", std::vector<double>{0.9, 0.999});
  return {.lr = options["lr"],
          .beta1 = betas[0],
          .beta2 = betas[1],
          .eps = options.value("eps", 1e-8),
          .weight_decay = options.value("weight_decay", 0.0)};
}

OptimizerOptions optimizer_options(const Json& options) {
  if (options["optimizer"] == "Adam") return adam_options<Adam>(options);
  if (options["optimizer"] == "AdamW") return adam_options<AdamW>(options);
  return Sgd{.lr = options["lr"],
             .momentum = options.value("momentum", 0.0),
             .nesterov = options.value("nesterov", false),
             .weight_decay = options.value("weight_decay", 0.0)};
}

UpdateOptions update_options(const Json& options) {
  UpdateOptions update;
  if (options.contains("clip_norm")) update.clip_norm = options["clip_norm"].get<double>();
  if (options.contains("clip_value")) update.clip_value = options["clip_value"].get<double>();
  if (options.contains("bias")) {
    update.groups = {{.match = {"*.bias"},
                      .lr = options["bias"]["lr"].get<double>(),
                      .weight_decay = options["bias"]["weight_decay"].get<double>()}};
  }
  return update;
}

template <class Value>
at::Tensor filled(const std::vector<int64_t>& shape, at::ScalarType type, const Value& value) {
  at::Tensor tensor = at::empty(shape, at::kDouble);
  for (int64_t i = 0; i < tensor.numel(); ++i) tensor.data_ptr<double>()[i] = value(i);
  return tensor.to(type);
}

void run_case(const std::string& name, at::ScalarType type, double tolerance) {
  const Json& golden_case = golden()["cases"][name];
  const Json& kept = golden_case[type == at::kDouble ? "float64" : "float32"];
  std::vector<NamedTensor> parameters;
  std::vector<std::vector<int64_t>> shapes;
  for (const char* parameter : {"0.weight", "0.bias", "1.weight", "1.bias"}) {
    const auto p = static_cast<int64_t>(parameters.size());
    shapes.push_back(golden()["shapes"][parameter]);
    at::Tensor tensor = filled(shapes.back(), type, [&](int64_t i) { return golden_start(p, i); });
    parameters.push_back({parameter, tensor.set_requires_grad(true), {}});
  }
  GradientBuffer gradients(parameters);
  Updater updater(gradients, optimizer_options(golden_case["options"]),
                  update_options(golden_case["options"]));
  for (int64_t update = 1; update <= 100; ++update) {
    // Two micro-steps of weights 1 and 2 whose sums are three times the mean gradient.
    Window window(gradients);
    for (const double share : {1.0, 2.0}) {
      std::vector<at::Tensor> sums;
      for (size_t p = 0; p < parameters.size(); ++p) {
        sums.push_back(filled(shapes[p], type, [&](int64_t i) {
          return share * golden_gradient(static_cast<int64_t>(p), i, update);
        }));
      }
      test::add(window, sums, share);
    }
    ASSERT_TRUE(updater.apply(window).applied);
    if (!kept.contains(std::to_string(update))) continue;
    for (const NamedTensor& parameter : parameters) {
      const auto expected = kept[std::to_string(update)][parameter.name].get<std::vector<double>>();
      const at::Tensor got = parameter.tensor.detach().to(at::kDouble).contiguous();
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(got.data_ptr<double>()[i], expected[i], tolerance)
            << name << ' ' << parameter.name << '[' << i << "] after " << update << " updates";
      }
    }
  }
}

TEST(Golden, Float64EqualsPyTorchOver100Updates) {
  // Each update rounds a handful of times at 1e-16 of values near 1; Adam divides by moments above 1e-2.
  for (const auto& [name, golden_case] : golden()["cases"].items()) run_case(name, at::kDouble, 1e-12);
}

TEST(Golden, Float32EqualsPyTorchOver100Updates) {
  // Parameters stay below 2, so one rounding is at most 6e-8; 100 updates of one rounding each, all in one
  // direction.
  for (const auto& [name, golden_case] : golden()["cases"].items()) run_case(name, at::kFloat, 6e-6);
}

}  // namespace
}  // namespace accrue
