// SPDX-License-Identifier: Apache-2.0
// What golden/make_image_models.py has written, and its closed forms.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "accrue/microstep/losses.h"
#include "tests/support/models.h"

namespace accrue::test {

inline constexpr int64_t kImagesKey = 1000;
inline constexpr int64_t kWitnessKey = 2000;

inline const nlohmann::ordered_json& image_golden() {
  static const auto file =
      nlohmann::ordered_json::parse(std::ifstream(ACCRUE_SOURCE_DIR "/tests/golden/image_models.json"));
  return file;
}

inline at::Tensor golden_values(at::IntArrayRef shape, int64_t key) {
  const at::Tensor index = at::arange(c10::multiply_integers(shape), at::kLong);
  const at::Tensor mixed = index.mul(31).add(7919).mul(index).add(key * 104729 + 13).remainder(1000003);
  return mixed.to(at::kDouble).div(1000003).sub(0.5).reshape(shape);
}

/// Kept by the number of elements: the layers of a model have few shapes.
inline at::Tensor golden_witness(at::IntArrayRef shape) {
  static std::map<int64_t, at::Tensor> kept;
  at::Tensor& witness = kept[c10::multiply_integers(shape)];
  if (!witness.defined()) witness = golden_values(shape, kWitnessKey);
  return witness.reshape(shape);
}

/// Images of golden values and the classes 0, 1, ...
inline Batch golden_images(int64_t samples, const std::vector<int64_t>& image) {
  return Batch({{"x", golden_values({samples, image[0], image[1], image[2]}, kImagesKey)},
                {"y", at::arange(samples, at::kLong)}});
}

inline void fill_golden(const Model& model) {
  const c10::NoGradGuard no_grad;
  int64_t key = 0;
  for (const NamedTensor& entry : model.parameters()) {
    at::Tensor value = golden_values(entry.tensor.sizes(), key);
    if (value.dim() > 1) {
      value = value * (4 / std::sqrt(static_cast<double>(value[0].numel())));
    } else if (key % 2 == 1) {
      value = value + 1;
    }
    entry.tensor.copy_(value);
    ++key;
  }
}

/// Norm and product with the witness; both within `tolerance` of the norm.
inline void expect_two_numbers(const std::string& name, const at::Tensor& got,
                               const nlohmann::ordered_json& wanted, double tolerance) {
  const double scale = tolerance * wanted[0].get<double>();
  const at::Tensor witness = golden_witness(got.sizes());
  EXPECT_NEAR(got.norm().item<double>(), wanted[0].get<double>(), scale) << name;
  EXPECT_NEAR((got * witness).sum().item<double>(), wanted[1].get<double>(),
              scale * witness.norm().item<double>())
      << name;
}

/// Output, loss, gradients and running statistics of a float64 model against a case of the file.
inline void expect_golden(const Model& model, const std::string& name, double tolerance) {
  const nlohmann::ordered_json& wanted = image_golden()["cases"][name];
  fill_golden(model);
  const Batch batch =
      golden_images(wanted["samples"].get<int64_t>(), wanted["image"].get<std::vector<int64_t>>());
  const at::Tensor output = model.forward(batch).tensor();
  EXPECT_TRUE(close(output.flatten(), at::tensor(wanted["output"].get<std::vector<double>>(), at::kDouble),
                    tolerance * output.abs().max().item<double>()));
  const at::Tensor loss = at::cross_entropy_loss(output, batch["y"]);
  EXPECT_NEAR(loss.item<double>(), wanted["loss"].get<double>(), tolerance * wanted["loss"].get<double>());
  loss.backward();
  const std::vector<NamedTensor> parameters = model.parameters();
  EXPECT_EQ(parameters.size(), wanted["gradients"].size());
  for (const NamedTensor& entry : parameters) {
    ASSERT_TRUE(wanted["gradients"].contains(entry.name)) << entry.name;
    expect_two_numbers(entry.name, entry.tensor.grad(), wanted["gradients"][entry.name], tolerance);
    entry.tensor.mutable_grad() = at::Tensor();
  }
  if (!wanted.contains("statistics")) return;
  for (const NamedTensor& entry : model.buffers()) {
    if (!entry.tensor.is_floating_point()) continue;
    expect_two_numbers(entry.name, entry.tensor, wanted["statistics"][entry.name], tolerance);
  }
}

/// The divided gradient of a window over parts of the given sizes, flat.
inline at::Tensor gradient_in_parts(const Model& model, const Batch& batch,
                                    const std::vector<int64_t>& sizes) {
  GradientBuffer gradients(model);
  Window window(gradients, model);
  for (const MicroBatch& micro : parts(batch, sizes)) add(window, model, cross_entropy_loss(), micro);
  window.close();
  std::vector<at::Tensor> views;
  for (const GradientBuffer::Entry& entry : gradients.entries()) views.push_back(entry.view);
  return joined(views).div(window.weight());
}

/// How far the gradient of 11 images in micro-batches of these sizes is from that of the whole, relative.
inline double split_distance(const Model& model, const std::vector<int64_t>& image,
                             const std::vector<int64_t>& sizes = {1, 3, 7}) {
  Batch batch = golden_images(11, image);
  batch = Batch({{"x", batch["x"]}, {"y", batch["y"].remainder(5)}});
  const at::Tensor whole = gradient_in_parts(model, batch, {11});
  return relative_distance(gradient_in_parts(model, batch, sizes), whole);
}

inline std::map<std::string, at::Tensor> tensors_by_name(const Model& model) {
  std::map<std::string, at::Tensor> map;
  for (const NamedTensor& entry : model.parameters()) map.emplace(entry.name, entry.tensor.detach());
  for (const NamedTensor& entry : model.buffers()) map.emplace(entry.name, entry.tensor);
  return map;
}

}  // namespace accrue::test
