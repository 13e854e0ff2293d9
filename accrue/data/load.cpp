// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/load.h"

#include <algorithm>
#include <cmath>

#include "accrue/base/error.h"
#include "accrue/base/messages/data.h"
#include "accrue/base/random.h"
#include "accrue/data/load_parts.h"
#include "accrue/data/subset_data.h"

namespace accrue {
namespace {

// No epoch has this number, so the choice of the validation samples tells nothing about any order.
constexpr uint64_t kShareStream = ~uint64_t{0};

int64_t product(const std::vector<int64_t>& sizes) noexcept {
  int64_t result = 1;
  for (const int64_t size : sizes) result *= size;
  return result;
}

}  // namespace

int64_t FieldSpec::width() const noexcept {
  return product(shape);
}

int64_t Dataset::input_width() const noexcept {
  int64_t sum = 0;
  for (const FieldSpec& input : inputs) sum += input.width();
  return sum;
}

FieldSpec spec_of(const std::string& name, const at::Tensor& tensor) {
  return {name, tensor.sizes().slice(1).vec(), tensor.scalar_type()};
}

Shares share_out(int64_t num_samples, const DataOptions& options, uint64_t seed) {
  Shares shares;
  shares.train = permutation(num_samples, seed, kShareStream);
  int64_t num_valid = 0;
  if (options.valid_fraction) {
    const double fraction = *options.valid_fraction;
    if (!(fraction > 0 && fraction < 1)) fail(message::load_fraction, {{"got", fraction}});
    num_valid = std::llround(static_cast<double>(num_samples) * fraction);
    if (num_valid < 1 || num_valid >= num_samples)
      fail(message::load_share_empty, {{"path", options.train},
                                       {"fraction", fraction},
                                       {"samples", num_samples},
                                       {"train", num_samples - num_valid},
                                       {"valid", num_valid}});
  }
  shares.valid.assign(shares.train.end() - num_valid, shares.train.end());
  shares.train.resize(static_cast<size_t>(num_samples - num_valid));
  std::sort(shares.train.begin(), shares.train.end());
  std::sort(shares.valid.begin(), shares.valid.end());
  return shares;
}

void share(Dataset& dataset, const std::shared_ptr<Data>& all, const LoadRequest& request) {
  const Shares shares = share_out(all->size(), request.options, request.seed);
  if (shares.valid.empty()) {
    dataset.train = all;
    return;
  }
  dataset.train = std::make_shared<SubsetData>(all, shares.train);
  dataset.valid = std::make_shared<SubsetData>(all, shares.valid);
}

namespace {

Dataset load(const LoadRequest& request, DataFormat format) {
  if (request.learned == Learned::tokens) return load_tokens(request, format);
  if (format == DataFormat::csv) return load_csv(request);
  if (format == DataFormat::safetensors) return load_fields(request);
  return load_images(request, format);
}

}  // namespace

Dataset load_data(const DataOptions& options, Learned learned, uint64_t seed,
                  const std::string& transform_json) {
  if (!options.valid.empty() && options.valid_fraction)
    fail(message::load_valid_twice, {{"path", options.valid}, {"fraction", *options.valid_fraction}});
  const DataFormat format = find_format(options.train, options.format, learned);
  const LoadRequest request{options, learned, learned != Learned::numbers, seed, transform_json};
  Dataset dataset = load(request, format);
  dataset.format = format;
  if (options.valid_fraction)
    dataset.notes.push_back("validation keeps " + std::to_string(dataset.valid->size()) + " of " +
                            std::to_string(dataset.train->size() + dataset.valid->size()) +
                            " samples, chosen by seed " + std::to_string(seed));
  return dataset;
}

}  // namespace accrue
