// SPDX-License-Identifier: Apache-2.0
// Pictures in files of their own format: IDX pairs and CIFAR.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "accrue/data/pixels.h"
#include "accrue/formats/cifar.h"
#include "accrue/formats/idx.h"

namespace accrue {

/// Whose share of a data set a path stands for: it decides which files of a folder are meant.
enum class Share { train, valid };

/// An IDX file of pictures [n, height, width] or [n, channels, height, width] and one of labels [n].
class IdxPixels : public PixelSource {
 public:
  /// `path`: the file of pictures, whose labels lie beside it under the same name with "labels" for "images"
  /// and "idx1" for "idx3", packed or not; or a folder that holds such files (train-*, and t10k-* or test-*).
  /// DataError for files that are missing or do not belong together.
  IdxPixels(const std::string& path, Share share);

  int64_t size() const override { return images_->shape()[0]; }
  int64_t label(int64_t index) const override;
  void read(int64_t index, uint8_t* out) const override;
  std::vector<int64_t> shape() const;  ///< [channels, height, width]

  /// The files of pictures in a folder that belong to a share.
  static std::vector<std::string> images_in(const std::string& folder, Share share);

 private:
  std::unique_ptr<IdxFile> images_;
  std::unique_ptr<IdxFile> labels_;
};

/// CIFAR files one after the other, all of one kind: [3, 32, 32].
class CifarPixels : public PixelSource {
 public:
  /// `path`: a file, or a folder with data_batch_*.bin or train.bin (train), test_batch.bin or test.bin
  /// (valid).
  CifarPixels(const std::string& path, Share share, CifarKind kind);

  int64_t size() const override { return starts_.back(); }
  int64_t label(int64_t index) const override;
  void read(int64_t index, uint8_t* out) const override;
  CifarKind kind() const noexcept { return files_[0].kind(); }
  int64_t num_classes() const noexcept { return files_[0].num_classes(); }

 private:
  size_t file_of(int64_t index) const;

  std::vector<CifarFile> files_;
  std::vector<int64_t> starts_{0};
};

}  // namespace accrue
