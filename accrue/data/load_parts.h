// SPDX-License-Identifier: Apache-2.0
// What the sources of load_data share.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "accrue/data/load.h"
#include "accrue/data/tensor_data.h"

namespace accrue {

/// Which samples of the training file are trained on and which are kept, both ascending.
struct Shares {
  std::vector<int64_t> train;
  std::vector<int64_t> valid;  ///< empty without a fraction
};
Shares share_out(int64_t num_samples, const DataOptions& options, uint64_t seed);

/// What one file gives, before it is shared out.
struct LoadRequest {
  const DataOptions& options;
  Learned learned;
  bool classification;  ///< the target is a class number
  uint64_t seed;
  const std::string& transform_json;
};
Dataset load_csv(const LoadRequest& request);
Dataset load_fields(const LoadRequest& request);
Dataset load_images(const LoadRequest& request, DataFormat format);
Dataset load_tokens(const LoadRequest& request, DataFormat format);

/// The format that was asked for, or by content, then by suffix. DataError for one that the task cannot learn
/// from.
DataFormat find_format(const std::string& path, DataFormat asked, Learned learned);

/// Turns the fields of a data set for images into pictures: bytes become what the pixel options say, floats
/// stay.
void make_pictures(Dataset& dataset, const LoadRequest& request);

/// Fills train and, with a fraction, valid of `dataset` from the samples of one file.
void share(Dataset& dataset, const std::shared_ptr<Data>& all, const LoadRequest& request);

/// The field's shape and type, from all samples of it.
FieldSpec spec_of(const std::string& name, const at::Tensor& tensor);

}  // namespace accrue
