// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accrue/formats/data_kinds.h"

namespace accrue {

enum class DataFormat { automatic, csv, safetensors, idx, cifar, image_folder, tokens, jsonl };

/// What an empty cell of a CSV input column does.
enum class Missing {
  error,  ///< a DataError with row and column
  mean,   ///< the training column's mean (0 after standardisation)
};

/// What is learned from the samples; it decides how fields are read.
enum class Learned { numbers, classes, image_classes, tokens };

struct DataOptions {
  std::string train;  ///< file, or folder (idx, cifar, image-folder, token shards)
  std::string valid;  ///< file or folder, or empty
  std::optional<double> valid_fraction =
      {};  ///< in (0, 1): this share of `train` is kept for validation, chosen by the seed
  DataFormat format = DataFormat::automatic;  ///< by content, then by suffix
  std::vector<std::string> inputs = {};       ///< fields or columns; empty: all but the target
  std::string target = {};  ///< field or column; safetensors default "y", CSV default the last column
  bool standardize = true;  ///< CSV numeric inputs: (value - mean) / deviation of the training samples
  Missing missing = Missing::error;

  /// Images: pixels become value / 255, then (value - mean) / deviation of their channel.
  std::vector<double> mean = {};       ///< one a channel, or one for all; empty: 0
  std::vector<double> deviation = {};  ///< likewise; empty: 1
  std::vector<int64_t> resize =
      {};                ///< image folders: [side] or [height, width]; empty: all must have one size
  int64_t channels = 0;  ///< image folders: 1 or 3; 0: as the first training image
  bool flip = false;     ///< training images are mirrored, each with probability 1/2
  int64_t crop =
      0;  ///< training images are cut out of a frame that is wider by this many pixels on each side
  CifarKind cifar = CifarKind::automatic;

  /// Token data.
  int64_t vocabulary = 0;  ///< ids are below it; 0: not checked
  int64_t context = 0;     ///< tokens of one row of a shard; longer rows of other formats are an error
  int64_t max_length = 0;  ///< rows are cut after this many tokens; 0: never
  TokenType token_type = TokenType::automatic;
};

}  // namespace accrue
