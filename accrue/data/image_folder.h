// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "accrue/data/pixels.h"

namespace accrue {

/// A folder with one folder of pictures for each class. Class folders and pictures are taken in the order of
/// their names' bytes; hidden entries, and files that are no picture by
/// content and not called one, are left out and counted; one that is called .png or .jpg and is none is an
/// error.
class ImageFolder : public PixelSource {
 public:
  /// `classes`: the names that the labels count, or empty for the folders' own. Pictures are decoded when
  /// they are read. DataError with the path for a folder that is missing, has no class folder, has a class
  /// without a picture (own names only) or one that `classes` does not name; each picture that cannot be
  /// decoded, or whose size is another than the first one's and no `resize` is given, is one when it is read.
  ImageFolder(std::string path, const DataOptions& options, std::vector<std::string> classes = {});

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  int64_t label(int64_t index) const override { return files_[static_cast<size_t>(index)].label; }
  void read(int64_t index, uint8_t* out) const override;

  const std::vector<std::string>& classes() const noexcept { return classes_; }
  int64_t num_skipped() const noexcept { return num_skipped_; }
  /// [channels, height, width], by the first picture and the options; may be set to another folder's.
  const std::vector<int64_t>& shape() const noexcept { return shape_; }
  void set_shape(std::vector<int64_t> shape) { shape_ = std::move(shape); }

 private:
  struct File {
    std::string path;
    int64_t label = 0;
  };
  void list_class(const std::string& name, int64_t label);
  void find_shape(const DataOptions& options);

  std::string path_;
  bool resize_ = false;
  bool any_channels_ = false;  // colour may become gray
  std::vector<std::string> classes_;
  std::vector<File> files_;
  int64_t num_skipped_ = 0;
  std::vector<int64_t> shape_;
};

}  // namespace accrue
