// SPDX-License-Identifier: Apache-2.0
#include "accrue/update/chunks.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "accrue/base/error.h"
#include "accrue/base/messages/update.h"

namespace accrue {
namespace {

constexpr int64_t kChunkElements = 16 * 1024;

std::string layout_text(at::ScalarType type, at::IntArrayRef sizes, at::IntArrayRef strides) {
  std::ostringstream text;
  text << c10::toString(type) << ' ' << sizes << " with strides " << strides;
  return text.str();
}

SquaredNorm squared_norm_of(const Kernels& kernels, at::ScalarType sum_type) {
  switch (sum_type) {
    case at::kDouble:
      return kernels.squared_norm_fp64;
    case at::kBFloat16:
      return kernels.squared_norm_bf16;
    case at::kHalf:
      return kernels.squared_norm_fp16;
    default:
      return kernels.squared_norm_fp32;
  }
}

}  // namespace

Chunks::Chunks(const GradientBuffer& gradients) : gradients_(gradients) {
  const auto& entries = gradients.entries();
  for (size_t entry = 0; entry < entries.size(); ++entry) {
    const at::Tensor& parameter = entries[entry].parameter;
    if (!parameter.device().is_cpu()) {
      fail(message::device_not_cpu, {{"name", entries[entry].name}, {"device", parameter.device().str()}});
    }
    types_.push_back(parameter.scalar_type());
    any_float64_ = any_float64_ || parameter.scalar_type() == at::kDouble;
    for (int64_t begin = 0; begin < parameter.numel(); begin += kChunkElements) {
      const int64_t size = std::min(kChunkElements, parameter.numel() - begin);
      chunks_.push_back({entry, begin, size, num_elements_});
      num_elements_ += size;
    }
  }
  partial_sums_.resize(chunks_.size());
  gradients_at_.resize(entries.size());
  parameters_at_.resize(entries.size());
}

void Chunks::locate() {
  for (size_t i = 0; i < types_.size(); ++i) {
    const GradientBuffer::Entry& entry = gradients_.entries()[i];
    const at::Tensor& parameter = entry.parameter;
    if (!parameter.device().is_cpu()) {
      fail(message::device_not_cpu, {{"name", entry.name}, {"device", parameter.device().str()}});
    }
    if (parameter.scalar_type() != types_[i] || parameter.sizes() != entry.view.sizes() ||
        parameter.strides() != entry.view.strides()) {
      fail(message::parameter_replaced,
           {{"name", entry.name},
            {"was", layout_text(types_[i], entry.view.sizes(), entry.view.strides())},
            {"is", layout_text(parameter.scalar_type(), parameter.sizes(), parameter.strides())}});
    }
    gradients_at_[i] = {static_cast<char*>(entry.view.data_ptr()),
                        static_cast<int64_t>(entry.view.element_size())};
    parameters_at_[i] = {static_cast<char*>(parameter.data_ptr()),
                         static_cast<int64_t>(parameter.element_size())};
  }
}

size_t Chunks::boundary(int64_t part, int64_t parts) const {
  const int64_t start = num_elements_ / parts * part + num_elements_ % parts * part / parts;
  const auto found = std::partition_point(chunks_.begin(), chunks_.end(),
                                          [&](const Chunk& chunk) { return chunk.start < start; });
  return static_cast<size_t>(found - chunks_.begin());
}

double Chunks::sum_of_squares(const Kernels& kernels, double factor) {
  for_each([&](const Chunk& chunk) {
    const SquaredNorm kernel = squared_norm_of(kernels, gradients_.entries()[chunk.entry].view.scalar_type());
    partial_sums_[static_cast<size_t>(&chunk - chunks_.data())] = kernel(gradient(chunk), chunk.size, factor);
  });
  double sum = 0;
  for (const double partial : partial_sums_) sum += partial;
  return sum;
}

Chunks::Reading Chunks::read(const Kernels& kernels) {
  double sum = sum_of_squares(kernels, 1);
  if (std::isfinite(sum) && (sum > 1e-280 || !any_float64_)) return {std::sqrt(sum), true};
  if (!any_float64_) return {std::numeric_limits<double>::quiet_NaN(), false};
  // Squares of float64 leave the range long before the values do: look again, scaled into the middle of it.
  const double scale = std::isfinite(sum) ? 0x1p+500 : 0x1p-600;
  sum = sum_of_squares(kernels, scale);
  if (std::isfinite(sum)) return {std::sqrt(sum) / scale, true};
  return {std::numeric_limits<double>::quiet_NaN(), false};
}

std::string Chunks::non_finite_names() const {
  constexpr size_t kMostNames = 5;
  std::vector<size_t> found;
  for (size_t i = 0; i < chunks_.size(); ++i) {
    const bool known = !found.empty() && found.back() == chunks_[i].entry;
    if (!std::isfinite(partial_sums_[i]) && !known) found.push_back(chunks_[i].entry);
  }
  std::string names;
  for (size_t i = 0; i < std::min(kMostNames, found.size()); ++i) {
    names += (i == 0 ? "" : ", ") + gradients_.entries()[found[i]].name;
  }
  if (found.size() > kMostNames) names += " and " + std::to_string(found.size() - kMostNames) + " more";
  return names;
}

}  // namespace accrue
