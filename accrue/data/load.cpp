// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/load.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "accrue/base/error.h"
#include "accrue/base/messages/data.h"
#include "accrue/base/random.h"
#include "accrue/data/load_parts.h"
#include "accrue/formats/mapped_file.h"

namespace accrue {
namespace {

// No epoch has this number, so the choice of the validation samples tells nothing about any order.
constexpr uint64_t kShareStream = ~uint64_t{0};

DataFormat find_format(const DataOptions& options) {
  if (options.format != DataFormat::automatic) return options.format;
  const MappedFile file(options.train, Purpose::data);
  const std::string_view text = file.text();
  // A header's length stands in eight bytes; below 16 MiB its upper five are zero, which no text has.
  if (text.size() > 8 && text[8] == '{' && text.substr(3, 5) == std::string_view("\0\0\0\0\0", 5))
    return DataFormat::safetensors;
  const std::string suffix = std::filesystem::path(options.train).extension().string();
  return suffix == ".safetensors" ? DataFormat::safetensors : DataFormat::csv;
}

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

Dataset load_data(const DataOptions& options, Learned learned, uint64_t seed,
                  const std::string& transform_json) {
  if (!options.valid.empty() && options.valid_fraction)
    fail(message::load_valid_twice, {{"path", options.valid}, {"fraction", *options.valid_fraction}});
  const DataFormat format = find_format(options);
  const LoadRequest request{options, learned != Learned::numbers, seed, transform_json};
  Dataset dataset = format == DataFormat::csv ? load_csv(request) : load_fields(request);
  dataset.format = format;
  if (options.valid_fraction)
    dataset.notes.push_back("validation keeps " + std::to_string(dataset.valid->size()) + " of " +
                            std::to_string(dataset.train->size() + dataset.valid->size()) +
                            " samples, chosen by seed " + std::to_string(seed));
  return dataset;
}

}  // namespace accrue
