// SPDX-License-Identifier: Apache-2.0
#include "accrue/data/pixel_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "accrue/base/error.h"
#include "accrue/base/messages/data.h"
#include "accrue/base/nearest.h"

namespace accrue {
namespace {

/// The plain files of a folder whose name `wanted` accepts, by name.
template <class Wanted>
std::vector<std::string> files_in(const std::string& folder, const Wanted& wanted) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_directory(ignored) && wanted(entry->path().filename().string()))
      paths.push_back(entry->path().string());
  }
  if (error) fail(message::folder_unreadable, {{"path", folder}, {"reason", error.message()}});
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

bool belongs_to(const std::string& name, Share share) {
  const bool tests = name.starts_with("t10k") || name.starts_with("test") || name.starts_with("valid");
  return tests == (share == Share::valid);
}

std::string images_path(const std::string& path, Share share) {
  if (!is_folder(path)) return path;
  const std::vector<std::string> found = IdxPixels::images_in(path, share);
  if (found.size() != 1)
    fail(message::idx_folder,
         {{"path", path},
          {"got", found.empty() ? "none" : join(found)},
          {"names", share == Share::train ? "train-images*" : "t10k-images* or test-images*"}});
  return found[0];
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t place = text.rfind(from);
  if (place != std::string::npos) text.replace(place, from.size(), to);
  return text;
}

/// The labels' file beside a file of pictures.
std::string labels_path(const std::string& images) {
  const std::filesystem::path path(images);
  const std::string name = path.filename().string();
  if (name.find("images") == std::string::npos) fail(message::idx_labels_name, {{"path", images}});
  const std::string wanted = replaced(replaced(name, "images", "labels"), "idx3", "idx1");
  std::string other = wanted.ends_with(".gz") ? wanted.substr(0, wanted.size() - 3) : wanted + ".gz";
  std::error_code ignored;
  for (const std::string& candidate : {wanted, other}) {
    const std::string place = (path.parent_path() / candidate).string();
    if (std::filesystem::exists(place, ignored)) return place;
  }
  fail(message::idx_labels_missing, {{"path", images}, {"wanted", (path.parent_path() / wanted).string()}});
}

std::vector<std::string> cifar_paths(const std::string& path, Share share) {
  if (!is_folder(path)) return {path};
  const bool train = share == Share::train;
  std::vector<std::string> found = files_in(path, [train](const std::string& name) {
    if (!name.ends_with(".bin")) return false;
    return train ? name.starts_with("data_batch") || name == "train.bin" : name.starts_with("test");
  });
  if (found.empty())
    fail(message::cifar_folder,
         {{"path", path}, {"names", train ? "data_batch_*.bin or train.bin" : "test_batch.bin or test.bin"}});
  return found;
}

}  // namespace

std::vector<std::string> IdxPixels::images_in(const std::string& folder, Share share) {
  return files_in(folder, [share](const std::string& name) {
    return name.find("images") != std::string::npos && belongs_to(name, share);
  });
}

IdxPixels::IdxPixels(const std::string& path, Share share) {
  images_ = std::make_unique<IdxFile>(images_path(path, share));
  const std::vector<int64_t>& shape = images_->shape();
  const bool planes = shape.size() == 4 && (shape[1] == 1 || shape[1] == 3);
  if (shape.size() != 3 && !planes)
    fail(message::idx_images_shape, {{"path", images_->path()}, {"got", shape.size()}});
  labels_ = std::make_unique<IdxFile>(labels_path(images_->path()));
  if (labels_->shape().size() != 1)
    fail(message::idx_labels_shape, {{"path", labels_->path()}, {"got", labels_->shape().size()}});
  if (labels_->shape()[0] != shape[0])
    fail(message::idx_counts, {{"path", labels_->path()},
                               {"labels", labels_->shape()[0]},
                               {"images_path", images_->path()},
                               {"images", shape[0]}});
}

int64_t IdxPixels::label(int64_t index) const {
  return std::to_integer<int64_t>(labels_->values()[static_cast<size_t>(index)]);
}

void IdxPixels::read(int64_t index, uint8_t* out) const {
  const size_t bytes = images_->values().size() / static_cast<size_t>(size());
  std::memcpy(out, images_->values().data() + static_cast<size_t>(index) * bytes, bytes);
}

std::vector<int64_t> IdxPixels::shape() const {
  const std::vector<int64_t>& shape = images_->shape();
  if (shape.size() == 3) return {1, shape[1], shape[2]};
  return {shape[1], shape[2], shape[3]};
}

CifarPixels::CifarPixels(const std::string& path, Share share, CifarKind kind) {
  for (const std::string& file : cifar_paths(path, share)) {
    files_.emplace_back(file, kind);
    if (files_.back().kind() != files_[0].kind()) fail(message::cifar_mixed, {{"path", file}});
    starts_.push_back(starts_.back() + files_.back().size());
  }
}

size_t CifarPixels::file_of(int64_t index) const {
  return static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), index) - starts_.begin()) - 1;
}

int64_t CifarPixels::label(int64_t index) const {
  const size_t file = file_of(index);
  return files_[file].label(index - starts_[file]);
}

void CifarPixels::read(int64_t index, uint8_t* out) const {
  const size_t file = file_of(index);
  const std::span<const std::byte> pixels = files_[file].pixels(index - starts_[file]);
  std::memcpy(out, pixels.data(), pixels.size());
}

}  // namespace accrue
