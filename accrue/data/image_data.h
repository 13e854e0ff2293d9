// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "accrue/data/data.h"
#include "accrue/data/pixels.h"

namespace accrue {

/// Pictures and their classes: "x" float [n, channels, height, width] and the target int64 [n].
class ImageData : public Data {
 public:
  ImageData(std::shared_ptr<const PixelSource> source, PixelTransform transform, std::string input = "x",
            std::string target = "y");

  int64_t size() const override { return source_->size(); }
  /// Throws IndexError for an id out of range, and what the source throws for a file that cannot be read.
  NamedTensors gather(std::span<const int64_t> ids) const override;
  NamedTensors gather_for_training(std::span<const int64_t> ids,
                                   std::span<const int64_t> epochs) const override;
  int64_t label(int64_t id) const { return source_->label(id); }

 private:
  NamedTensors read(std::span<const int64_t> ids, std::span<const int64_t> epochs) const;

  std::shared_ptr<const PixelSource> source_;
  PixelTransform transform_;
  std::string input_;
  std::string target_;
};

}  // namespace accrue
