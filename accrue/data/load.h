// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "accrue/data/data.h"
#include "accrue/data/data_options.h"

namespace accrue {

/// One field of a sample.
struct FieldSpec {
  std::string name;
  std::vector<int64_t> shape;  ///< without the sample dimension
  at::ScalarType dtype = at::ScalarType::Float;

  int64_t width() const noexcept;  ///< elements of one sample
};

/// Samples that are ready to be trained on, and what is known about them.
struct Dataset {
  std::shared_ptr<Data> train;
  std::shared_ptr<Data> valid;                ///< null without validation
  DataFormat format = DataFormat::automatic;  ///< the one that was read
  std::vector<FieldSpec> inputs;              ///< CSV: one field "x" [features] float
                                              ///< images: "x" [channels, height, width] float
                                              ///< tokens: "input_ids" [] int64, one a token
  FieldSpec target;                           ///< CSV: "y", [1] float or [] int64; tokens: "labels" [] int64
  int64_t num_tokens = 0;                     ///< of the training samples; 0: not sequences
  int64_t num_classes = 0;                    ///< 0 for regression
  std::vector<std::string> classes;           ///< their names; empty for safetensors
  std::string transform_json;                 ///< goes with the checkpoint and back into `load_data`
  std::vector<std::string> notes;             ///< sentences for the header: conversions, columns left out

  int64_t input_width() const noexcept;  ///< elements of one sample, all inputs together
  /// What a model has to put out for one sample: classes, or elements of the target.
  int64_t output_width() const noexcept { return num_classes > 0 ? num_classes : target.width(); }
};

/// Reads the files of `options` (format by content, then by suffix). `transform_json` is empty,
/// or that of an earlier run, which is then applied instead of fitted. The share for validation depends on
/// seed, number of samples and fraction alone. Throws DataError with file, line or field.
Dataset load_data(const DataOptions& options, Learned learned, uint64_t seed,
                  const std::string& transform_json = "");
inline Dataset load_data(const DataOptions& options, bool classification, uint64_t seed,
                         const std::string& transform_json = "") {
  return load_data(options, classification ? Learned::classes : Learned::numbers, seed, transform_json);
}

}  // namespace accrue
