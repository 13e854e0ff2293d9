// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/image_folder.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>

#include "accrue/base/error.h"
#include "accrue/base/messages/data.h"
#include "accrue/base/nearest.h"
#include "accrue/formats/foreign.h"
#include "accrue/formats/image.h"
#include "accrue/formats/mapped_file.h"
#include "accrue/formats/utf8.h"

namespace accrue {
namespace {

/// Names of a folder's entries of one kind, sorted by their bytes; hidden ones are counted.
std::vector<std::string> entries_of(const std::filesystem::path& folder, bool folders, int64_t& skipped) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    const bool is_folder = entry->is_directory(ignored);
    if (name.starts_with('.') || is_folder != folders) {
      ++skipped;
    } else {
      names.push_back(name);
    }
  }
  if (error) fail(message::folder_unreadable, {{"path", folder.string()}, {"reason", error.message()}});
  std::sort(names.begin(), names.end());
  return names;
}

bool is_called_picture(const std::string& name) {
  std::string suffix = std::filesystem::path(name).extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return suffix == ".png" || suffix == ".jpg" || suffix == ".jpeg";
}

Image decoded(const std::string& path) {
  const MappedFile file(path, Purpose::data);
  return decode_image(file.bytes(), path);
}

}  // namespace

ImageFolder::ImageFolder(std::string path, const DataOptions& options, std::vector<std::string> classes)
    : path_(std::move(path)),
      resize_(!options.resize.empty()),
      any_channels_(options.channels != 0),
      classes_(std::move(classes)) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path_, ignored)) fail(message::folder_missing, {{"path", path_}});
  const std::vector<std::string> names = entries_of(path_, /*folders=*/true, num_skipped_);
  if (names.empty()) fail(message::folder_no_class, {{"path", path_}});
  const bool own_names = classes_.empty();
  if (own_names) classes_ = names;
  Problems problems;
  for (const std::string& name : names) {
    if (const size_t byte = find_broken_utf8(name); byte != std::string::npos) {
      problems.add(message::folder_class_utf8, {{"path", path_}, {"byte", byte}});
      continue;
    }
    const auto place = std::find(classes_.begin(), classes_.end(), name);
    if (place == classes_.end()) {
      problems.add(message::folder_unknown_class, {{"path", path_},
                                                   {"name", name},
                                                   {"hint", did_you_mean(name, classes_)},
                                                   {"names", join(classes_)}});
      continue;
    }
    const size_t before = files_.size();
    list_class(name, place - classes_.begin());
    if (files_.size() == before && own_names)
      problems.add(message::folder_empty_class, {{"path", path_}, {"name", name}});
  }
  problems.throw_if_any();
  if (files_.empty()) fail(message::folder_no_image, {{"path", path_}});
  find_shape(options);
}

void ImageFolder::list_class(const std::string& name, int64_t label) {
  const std::filesystem::path folder = std::filesystem::path(path_) / name;
  for (const std::string& file : entries_of(folder, /*folders=*/false, num_skipped_)) {
    const std::string path = (folder / file).string();
    const MappedFile content(path, Purpose::data);
    if (is_image(content.bytes())) {
      files_.push_back({path, label});
      continue;
    }
    if (is_called_picture(file)) {
      refuse_foreign(content.text(), path, Purpose::data);
      fail(message::folder_no_picture, {{"path", path}});
    }
    ++num_skipped_;
  }
}

void ImageFolder::find_shape(const DataOptions& options) {
  const Image first = decoded(files_[0].path);
  shape_ = {options.channels != 0 ? options.channels : first.channels, first.height, first.width};
  if (resize_) {
    shape_[1] = options.resize.front();
    shape_[2] = options.resize.back();
  }
}

void ImageFolder::read(int64_t index, uint8_t* out) const {
  const std::string& path = files_[static_cast<size_t>(index)].path;
  Image image = decoded(path);
  if (image.channels != shape_[0]) {
    if (image.channels > shape_[0] && !any_channels_) fail(message::folder_colour, {{"path", path}});
    image = with_channels(image, shape_[0]);
  }
  if (image.height != shape_[1] || image.width != shape_[2]) {
    if (!resize_)
      fail(message::folder_other_size, {{"path", path},
                                        {"height", image.height},
                                        {"width", image.width},
                                        {"needed_height", shape_[1]},
                                        {"needed_width", shape_[2]}});
    image = resized(image, shape_[1], shape_[2]);
  }
  std::memcpy(out, image.pixels.data(), image.pixels.size());
}

}  // namespace accrue
