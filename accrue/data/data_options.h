// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace accrue {

enum class DataFormat { automatic, csv, safetensors };

/// What an empty cell of a CSV input column does.
enum class Missing {
  error,  ///< a DataError with row and column
  mean,   ///< the training column's mean (0 after standardisation)
};

struct DataOptions {
  std::string train;  ///< file
  std::string valid;  ///< file, or empty
  std::optional<double>
      valid_fraction;  ///< in (0, 1): this share of `train` is kept for validation, chosen by the seed
  DataFormat format = DataFormat::automatic;  ///< by content, then by suffix
  std::vector<std::string> inputs;            ///< fields or columns; empty: all but the target
  std::string target;       ///< field or column; safetensors default "y", CSV default the last column
  bool standardize = true;  ///< CSV numeric inputs: (value - mean) / deviation of the training samples
  Missing missing = Missing::error;
};

}  // namespace accrue
