// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/data.h"
#include "accrue/base/nearest.h"
#include "accrue/data/load_parts.h"
#include "accrue/data/tensor_file.h"
#include "accrue/formats/strict_json.h"

namespace accrue {
namespace {

constexpr const char* kFieldsFormat = "accrue-fields/1";
// Beyond this a target holds numbers of something, not classes; an output layer of that size would not fit
// anyway.
constexpr int64_t kMostClasses = 1'000'000;

std::vector<std::string> names_of(const NamedTensors& fields) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : fields) names.push_back(name);
  return names;
}

struct FieldNames {
  std::vector<std::string> inputs;
  std::string target;
};

FieldNames choose_fields(const NamedTensors& fields, const DataOptions& options) {
  FieldNames chosen{options.inputs, options.target.empty() ? "y" : options.target};
  if (chosen.inputs.empty()) {
    std::vector<std::string> others = names_of(fields);
    std::erase(others, chosen.target);
    if (others.size() != 1 && !(fields.contains("x") && chosen.target != "x"))
      fail(message::load_which_input, {{"path", options.train}, {"names", join(names_of(fields))}});
    chosen.inputs = {others.size() == 1 ? others[0] : "x"};
  }
  return chosen;
}

at::Tensor field_of(const NamedTensors& fields, const std::string& name, const std::string& path) {
  const at::Tensor* const tensor = fields.find(name);
  if (tensor == nullptr) {
    const std::vector<std::string> names = names_of(fields);
    fail(message::load_field_missing,
         {{"path", path}, {"name", name}, {"names", join(names)}, {"hint", did_you_mean(name, names)}});
  }
  if (tensor->dim() == 0) fail(message::tensor_data_scalar, {{"where", path}, {"name", name}});
  if (tensor->numel() == 0 && tensor->size(0) > 0)
    fail(message::load_field_empty,
         {{"path", path}, {"name", name}, {"got", nlohmann::json(tensor->sizes().vec()).dump()}});
  return *tensor;
}

// Fields of one file as a model gets them; what was changed on the way is noted.
class FieldReader {
 public:
  FieldReader(const std::string& path, std::vector<std::string>& notes) : path_(path), notes_(notes) {}

  at::Tensor convert(const std::string& name, const at::Tensor& tensor, at::ScalarType type) {
    if (tensor.scalar_type() == type) return tensor;
    notes_.push_back(path_ + ": field \"" + name + "\" converted from " + at::toString(tensor.scalar_type()) +
                     " to " + at::toString(type));
    return tensor.to(type);
  }

  at::Tensor input(const std::string& name, const at::Tensor& tensor) {
    const at::ScalarType type = tensor.scalar_type();
    if (at::isComplexType(type)) refuse_type(name, type, "real numbers");
    if (type == at::kBool || at::isFloatingType(type) || at::isFloat8Type(type))
      return convert(name, tensor, at::kFloat);
    // Torch can store these types but indexes and computes with the signed ones only.
    if (type == at::ScalarType::UInt16) return convert(name, tensor, at::kInt);
    if (type == at::ScalarType::UInt32 || type == at::ScalarType::UInt64)
      return convert(name, tensor, at::kLong);
    return tensor;
  }

  at::Tensor numbers(const std::string& name, const at::Tensor& tensor) {
    if (at::isComplexType(tensor.scalar_type())) refuse_type(name, tensor.scalar_type(), "real numbers");
    if (tensor.dim() > 2) refuse_target_shape(name, tensor, "[n] or [n, k]");
    const at::Tensor values = convert(name, tensor, at::kFloat);
    return values.dim() == 1 ? values.unsqueeze(1) : values;
  }

  at::Tensor classes(const std::string& name, const at::Tensor& tensor) {
    const at::ScalarType type = tensor.scalar_type();
    if (!at::isIntegralType(type, /*includeBool=*/true)) refuse_type(name, type, "integer class ids");
    if (tensor.dim() > 2 || (tensor.dim() == 2 && tensor.size(1) != 1))
      refuse_target_shape(name, tensor, "[n] or [n, 1]");
    return convert(name, tensor.reshape({tensor.size(0)}), at::kLong).contiguous();
  }

 private:
  [[noreturn]] void refuse_type(const std::string& name, at::ScalarType type, const char* needed) const {
    fail(message::load_type,
         {{"path", path_}, {"name", name}, {"got", at::toString(type)}, {"needed", needed}});
  }

  [[noreturn]] void refuse_target_shape(const std::string& name, const at::Tensor& tensor,
                                        const char* needed) const {
    const std::vector<int64_t> shape = tensor.sizes().vec();
    fail(message::load_target_shape,
         {{"path", path_}, {"name", name}, {"got", nlohmann::json(shape).dump()}, {"needed", needed}});
  }

  const std::string& path_;
  std::vector<std::string>& notes_;
};

std::shared_ptr<TensorData> read_fields(const std::string& path, const NamedTensors& file,
                                        const FieldNames& chosen, bool classification,
                                        std::vector<std::string>& notes) {
  FieldReader reader(path, notes);
  NamedTensors fields;
  for (const std::string& name : chosen.inputs) {
    if (name == chosen.target) fail(message::table_target_is_input, {{"path", path}, {"name", name}});
    fields.add(name, reader.input(name, field_of(file, name, path)));
  }
  const at::Tensor target = field_of(file, chosen.target, path);
  fields.add(chosen.target,
             classification ? reader.classes(chosen.target, target) : reader.numbers(chosen.target, target));
  return std::make_shared<TensorData>(std::move(fields), path);
}

std::span<const int64_t> class_ids(const TensorData& data, const std::string& target) {
  const at::Tensor& tensor = data.fields()[target];
  return {tensor.const_data_ptr<int64_t>(), static_cast<size_t>(tensor.numel())};
}

void check_classes(const TensorData& data, const std::string& path, const std::string& target,
                   int64_t num_classes) {
  const std::span<const int64_t> ids = class_ids(data, target);
  for (size_t sample = 0; sample < ids.size(); ++sample)
    if (ids[sample] < 0 || ids[sample] >= num_classes)
      fail(ids[sample] < 0 ? message::load_negative_class : message::load_class_range,
           {{"path", path},
            {"name", target},
            {"sample", sample},
            {"got", ids[sample]},
            {"last", num_classes - 1}});
}

int64_t count_classes(const TensorData& data, const std::string& path, const std::string& target) {
  const std::span<const int64_t> ids = class_ids(data, target);
  const int64_t largest = std::max<int64_t>(*std::max_element(ids.begin(), ids.end()), 0);
  if (largest >= kMostClasses)
    fail(message::load_too_many_classes,
         {{"path", path}, {"name", target}, {"got", largest}, {"limit", kMostClasses}});
  check_classes(data, path, target, largest + 1);
  if (largest < 1) fail(message::table_one_class, {{"path", path}, {"name", target}, {"classes", 1}});
  return largest + 1;
}

std::string describe_fields(const Dataset& dataset) {
  nlohmann::ordered_json inputs = nlohmann::ordered_json::array();
  for (const FieldSpec& input : dataset.inputs)
    inputs.push_back({{"name", input.name}, {"shape", input.shape}, {"type", at::toString(input.dtype)}});
  const nlohmann::ordered_json value = {
      {"format", kFieldsFormat},
      {"inputs", inputs},
      {"target", {{"name", dataset.target.name}, {"shape", dataset.target.shape}}},
      {"num_classes", dataset.num_classes}};
  return value.dump(2);
}

int64_t saved_num_classes(const std::string& json) {
  const nlohmann::ordered_json value = parse_json(json, "data transformation", Purpose::checkpoint);
  if (!value.is_object() || value.value("format", "") != kFieldsFormat || !value.contains("num_classes") ||
      !value["num_classes"].is_number_unsigned())
    fail(message::table_json, {{"where", "data transformation"}});
  return value["num_classes"].get<int64_t>();
}

void check_saved(const Dataset& dataset, const std::string& json) {
  if (parse_json(json, "data transformation", Purpose::checkpoint) ==
      nlohmann::ordered_json::parse(dataset.transform_json))
    return;
  fail(message::load_other_fields, {{"saved", json}, {"got", dataset.transform_json}});
}

void check_same_shapes(const Dataset& dataset, const TensorData& valid, const std::string& path) {
  std::vector<FieldSpec> fields = dataset.inputs;
  fields.push_back(dataset.target);
  for (const FieldSpec& field : fields) {
    const FieldSpec other = spec_of(field.name, valid.fields()[field.name]);
    if (other.shape != field.shape || other.dtype != field.dtype)
      fail(message::load_other_shape, {{"path", path},
                                       {"name", field.name},
                                       {"got", nlohmann::json(other.shape).dump()},
                                       {"got_type", at::toString(other.dtype)},
                                       {"needed", nlohmann::json(field.shape).dump()},
                                       {"needed_type", at::toString(field.dtype)}});
  }
}

void note_unused(const NamedTensors& file, const FieldNames& chosen, Dataset& dataset,
                 const std::string& path) {
  std::vector<std::string> unused = names_of(file);
  std::erase(unused, chosen.target);
  for (const std::string& name : chosen.inputs) std::erase(unused, name);
  if (!unused.empty()) dataset.notes.push_back(path + ": not used: " + join(unused));
}

Dataset read_all_fields(const LoadRequest& request) {
  const DataOptions& options = request.options;
  const NamedTensors file = load_tensors(options.train, Purpose::data);
  const FieldNames chosen = choose_fields(file, options);
  Dataset dataset;
  const std::shared_ptr<TensorData> all =
      read_fields(options.train, file, chosen, request.classification, dataset.notes);
  note_unused(file, chosen, dataset, options.train);
  for (const std::string& name : chosen.inputs) dataset.inputs.push_back(spec_of(name, all->fields()[name]));
  dataset.target = spec_of(chosen.target, all->fields()[chosen.target]);
  if (request.classification) {
    dataset.num_classes = request.transform_json.empty() ? count_classes(*all, options.train, chosen.target)
                                                         : saved_num_classes(request.transform_json);
    check_classes(*all, options.train, chosen.target, dataset.num_classes);
  }
  dataset.transform_json = describe_fields(dataset);
  if (!request.transform_json.empty()) check_saved(dataset, request.transform_json);
  const Shares shares = share_out(all->size(), options, request.seed);
  dataset.train = shares.valid.empty() ? all : std::make_shared<TensorData>(all->gather(shares.train));
  if (!shares.valid.empty()) dataset.valid = std::make_shared<TensorData>(all->gather(shares.valid));
  if (options.valid.empty()) return dataset;
  const std::shared_ptr<TensorData> valid =
      read_fields(options.valid, load_tensors(options.valid, Purpose::data), chosen, request.classification,
                  dataset.notes);
  check_same_shapes(dataset, *valid, options.valid);
  if (request.classification) check_classes(*valid, options.valid, chosen.target, dataset.num_classes);
  dataset.valid = valid;
  return dataset;
}

}  // namespace

Dataset load_fields(const LoadRequest& request) {
  Dataset dataset = read_all_fields(request);
  if (request.learned == Learned::image_classes) make_pictures(dataset, request);
  return dataset;
}

}  // namespace accrue
