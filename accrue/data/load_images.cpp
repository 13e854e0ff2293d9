// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "accrue/base/error.h"
#include "accrue/base/messages/data.h"
#include "accrue/data/image_data.h"
#include "accrue/data/image_folder.h"
#include "accrue/data/load_parts.h"
#include "accrue/data/pixel_files.h"
#include "accrue/formats/strict_json.h"

namespace accrue {
namespace {

constexpr const char* kImagesFormat = "accrue-images/1";

/// Pictures of one share with what is known of them.
struct Pictures {
  std::shared_ptr<PixelSource> source;
  std::vector<int64_t> shape;        // [channels, height, width]
  int64_t num_classes = 0;           // 0: by the largest label
  std::vector<std::string> classes;  // their names, where they have any
};

Pictures open_folder(const std::string& path, const DataOptions& options,
                     const std::vector<std::string>& classes, std::vector<std::string>& notes) {
  auto folder = std::make_shared<ImageFolder>(path, options, classes);
  if (folder->num_skipped() > 0)
    notes.push_back(path + ": " + std::to_string(folder->num_skipped()) +
                    " hidden entries and files that are no picture left out");
  const auto num_classes = static_cast<int64_t>(folder->classes().size());
  return {folder, folder->shape(), num_classes, folder->classes()};
}

Pictures open(const std::string& path, Share share, DataFormat format, const DataOptions& options,
              const std::vector<std::string>& classes, std::vector<std::string>& notes) {
  if (format == DataFormat::image_folder) return open_folder(path, options, classes, notes);
  if (format == DataFormat::idx) {
    auto source = std::make_shared<IdxPixels>(path, share);
    return {source, source->shape(), 0, {}};
  }
  auto source = std::make_shared<CifarPixels>(path, share, options.cifar);
  if (source->kind() == CifarKind::cifar100)
    notes.push_back(path + ": CIFAR-100, of whose two labels the fine one is used");
  return {source, {3, 32, 32}, source->num_classes(), {}};
}

int64_t largest_label(const PixelSource& source) {
  int64_t largest = 0;
  for (int64_t i = 0; i < source.size(); ++i) largest = std::max(largest, source.label(i));
  return largest;
}

void check_labels(const PixelSource& source, const std::string& path, int64_t num_classes) {
  for (int64_t i = 0; i < source.size(); ++i)
    if (source.label(i) >= num_classes)
      fail(message::load_class_range, {{"path", path},
                                       {"name", "y"},
                                       {"sample", i},
                                       {"got", source.label(i)},
                                       {"last", num_classes - 1}});
}

std::string describe_pictures(const Pictures& pictures, const DataOptions& options) {
  return nlohmann::ordered_json{{"format", kImagesFormat},
                                {"shape", pictures.shape},
                                {"mean", options.mean},
                                {"std", options.deviation},
                                {"num_classes", pictures.num_classes},
                                {"classes", pictures.classes}}
      .dump(2);
}

/// Classes of an earlier run, whose numbers the model has learned.
struct SavedClasses {
  std::vector<std::string> names;
  int64_t count = 0;
};

SavedClasses saved_classes(const std::string& json) {
  if (json.empty()) return {};
  const nlohmann::ordered_json value = parse_json(json, "data transformation", Purpose::checkpoint);
  if (!value.is_object() || value.value("format", "") != kImagesFormat) fail(message::load_other_task);
  try {
    return {value.at("classes").get<std::vector<std::string>>(), value.at("num_classes").get<int64_t>()};
  } catch (const nlohmann::json::exception&) {
    fail(message::table_json, {{"where", "data transformation"}});
  }
}

}  // namespace

Dataset load_images(const LoadRequest& request, DataFormat format) {
  const DataOptions& options = request.options;
  const std::string& saved = request.transform_json;
  Dataset dataset;
  const SavedClasses before = saved_classes(saved);
  Pictures train = open(options.train, Share::train, format, options, before.names, dataset.notes);
  if (!saved.empty()) {
    train.num_classes = before.count;
  } else if (train.num_classes == 0) {
    train.num_classes = largest_label(*train.source) + 1;
  }
  check_labels(*train.source, options.train, train.num_classes);
  if (train.num_classes < 2)
    fail(message::table_one_class, {{"path", options.train}, {"name", "y"}, {"classes", train.num_classes}});
  dataset.inputs = {{"x", train.shape, at::kFloat}};
  dataset.target = {"y", {}, at::kLong};
  dataset.num_classes = train.num_classes;
  dataset.classes = train.classes;
  dataset.transform_json = describe_pictures(train, options);
  if (!saved.empty() && parse_json(saved, "data transformation", Purpose::checkpoint) !=
                            nlohmann::ordered_json::parse(dataset.transform_json))
    fail(message::load_other_fields, {{"saved", saved}, {"got", dataset.transform_json}});
  const PixelTransform transform(options, train.shape, request.seed);
  share(dataset, std::make_shared<ImageData>(train.source, transform), request);
  if (options.valid.empty()) return dataset;

  Pictures valid =
      open(options.valid, Share::valid, find_format(options.valid, options.format, request.learned), options,
           train.classes, dataset.notes);
  if (format == DataFormat::cifar && valid.num_classes != 0 && valid.num_classes != train.num_classes)
    fail(message::cifar_other_kind,
         {{"path", options.valid}, {"got", valid.num_classes}, {"needed", train.num_classes}});
  if (auto* folder = dynamic_cast<ImageFolder*>(valid.source.get())) {
    folder->set_shape(train.shape);
  } else if (valid.shape != train.shape) {
    fail(message::load_other_shape, {{"path", options.valid},
                                     {"name", "x"},
                                     {"got", nlohmann::json(valid.shape).dump()},
                                     {"got_type", "Byte"},
                                     {"needed", nlohmann::json(train.shape).dump()},
                                     {"needed_type", "Byte"}});
  }
  check_labels(*valid.source, options.valid, train.num_classes);
  dataset.valid = std::make_shared<ImageData>(valid.source, transform);
  return dataset;
}

}  // namespace accrue
