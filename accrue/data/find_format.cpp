// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "accrue/base/error.h"
#include "accrue/base/messages/data.h"
#include "accrue/config/words.h"
#include "accrue/data/load_parts.h"
#include "accrue/data/pixel_files.h"
#include "accrue/formats/mapped_file.h"

namespace accrue {
namespace {

std::vector<DataFormat> allowed_for(Learned learned) {
  if (learned == Learned::tokens) return {DataFormat::tokens, DataFormat::jsonl, DataFormat::safetensors};
  if (learned == Learned::image_classes)
    return {DataFormat::idx, DataFormat::cifar, DataFormat::image_folder, DataFormat::safetensors};
  return {DataFormat::csv, DataFormat::safetensors};
}

bool is_safetensors(std::string_view text) {
  // A header's length stands in eight bytes; below 16 MiB its upper five are zero, which no text has.
  return text.size() > 8 && text[8] == '{' && text.substr(3, 5) == std::string_view("\0\0\0\0\0", 5);
}

bool has_folder(const std::filesystem::path& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && !entry->path().filename().string().starts_with('.')) return true;
  }
  return false;
}

bool has_suffix(const std::filesystem::path& folder, const char* suffix) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == suffix) return true;
  return false;
}

DataFormat format_of_folder(const std::string& path, Learned learned) {
  if (learned == Learned::tokens) return DataFormat::tokens;
  if (learned == Learned::image_classes) {
    if (!IdxPixels::images_in(path, Share::train).empty()) return DataFormat::idx;
    if (has_suffix(path, ".bin")) return DataFormat::cifar;
    if (has_folder(path)) return DataFormat::image_folder;
    fail(message::format_folder_unknown, {{"path", path}});
  }
  return DataFormat::csv;  // which is a file, and says so
}

DataFormat format_of_file(const std::string& path, Learned learned) {
  const MappedFile file(path, Purpose::data);
  const std::string suffix = std::filesystem::path(path).extension().string();
  if (is_safetensors(file.text()) || suffix == ".safetensors") return DataFormat::safetensors;
  if (learned == Learned::image_classes)
    return suffix == ".bin" && !IdxFile::matches(path) ? DataFormat::cifar : DataFormat::idx;
  if (learned == Learned::tokens) {
    const size_t first = file.text().find_first_not_of(" \t\r\n\xef\xbb\xbf");
    const bool object = first != std::string_view::npos && file.text()[first] == '{';
    const bool named = suffix == ".jsonl" || suffix == ".json";
    return named || (object && suffix != ".bin") ? DataFormat::jsonl : DataFormat::tokens;
  }
  return DataFormat::csv;
}

}  // namespace

DataFormat find_format(const std::string& path, DataFormat asked, Learned learned) {
  DataFormat format = asked;
  if (format == DataFormat::automatic) {
    std::error_code ignored;
    const bool folder = std::filesystem::is_directory(path, ignored);
    format = folder ? format_of_folder(path, learned) : format_of_file(path, learned);
  }
  const std::vector<DataFormat> allowed = allowed_for(learned);
  if (std::find(allowed.begin(), allowed.end(), format) != allowed.end()) return format;
  std::string names;
  for (const DataFormat one : allowed) {
    if (!names.empty()) names += ", ";
    names += config::word_of(one);
  }
  fail(message::format_of_task, {{"path", path}, {"got", config::word_of(format)}, {"allowed", names}});
}

}  // namespace accrue
