// SPDX-License-Identifier: Apache-2.0
#include "accrue/checkpoint/checkpoint.h"

#include <map>
#include <string>
#include <vector>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/checkpoint.h"
#include "accrue/checkpoint/pending_checkpoint.h"
#include "accrue/checkpoint/state_json.h"
#include "accrue/data/tensor_file.h"
#include "accrue/formats/atomic_file.h"
#include "accrue/formats/mapped_file.h"
#include "accrue/nn/plain.h"
#include "accrue/nn/products.h"
#include "accrue/update/kernels.h"

namespace accrue {
namespace {

using Path = std::filesystem::path;

constexpr const char* kGeneratorName = "cpu";

NamedTensors joined(const NamedTensors& parameters, const NamedTensors& buffers) {
  NamedTensors all = parameters;
  for (const auto& [name, tensor] : buffers) all.add(name, tensor);
  return all;
}

Path write_folder(const Path& output_dir, const TrainingState& state) {
  PendingCheckpoint pending(output_dir, state.update);
  const auto file = [&](const char* name) { return (pending.folder() / name).string(); };
  save_tensors(file(checkpoint_file::kModel), joined(state.parameters, state.buffers));
  save_tensors(file(checkpoint_file::kOptimizer), state.optimizer.tensors);
  save_tensors(file(checkpoint_file::kRandom), {{kGeneratorName, state.generator_state}});
  write_file_atomically(file(checkpoint_file::kConfig), state.config_yaml);
  write_file_atomically(file(checkpoint_file::kTransform), state.transform_json);
  if (!state.plan_json.empty()) write_file_atomically(file(checkpoint_file::kPlan), state.plan_json);
  return pending.commit(to_json(state));
}

void write_best(const Path& output_dir, const Best& best) {
  const Path place = Path("checkpoints") / checkpoint_name(best.update);
  std::error_code error;
  nlohmann::ordered_json json = to_json(best);
  json["checkpoint"] = nullptr;
  if (std::filesystem::exists(output_dir / place, error)) json["checkpoint"] = place.string();
  write_file_atomically((output_dir / "best.json").string(), json.dump(1) + "\n");
}

std::string text_of(const Path& file) {
  return std::string(MappedFile(file.string(), Purpose::checkpoint).text());
}

/// The tensors of `file` that are called `names`, in that order.
NamedTensors pick(const NamedTensors& file, const std::vector<std::string>& names, const Path& checkpoint,
                  const char* file_name, Problems& problems) {
  NamedTensors picked;
  for (const std::string& name : names) {
    if (const at::Tensor* tensor = file.find(name))
      picked.add(name, *tensor);
    else
      problems.add(message::checkpoint_file_lacks,
                   {{"path", checkpoint.string()}, {"file", file_name}, {"name", name}});
  }
  return picked;
}

StateEntries entries_of(const Path& checkpoint) {
  try {
    return from_json(read_checkpoint_state(checkpoint));
  } catch (const nlohmann::json::exception&) {
    fail(message::checkpoint_entry, {{"path", checkpoint.string()}});
  }
}

}  // namespace

Path save_checkpoint(const Path& output_dir, const TrainingState& state, int64_t keep) {
  if (keep < 1) fail(message::checkpoint_keep, {{"got", keep}});
  Path checkpoint;
  try {
    checkpoint = write_folder(output_dir, state);
    if (state.best) write_best(output_dir, *state.best);
  } catch (const StateError& error) {
    fail(message::checkpoint_unwritable, {{"update", state.update}, {"reason", error.what()}});
  }
  keep_last_checkpoints(output_dir, state.update, keep,
                        state.best ? std::optional(state.best->update) : std::nullopt);
  return checkpoint;
}

TrainingState load_checkpoint(const Path& checkpoint) {
  StateEntries entries = entries_of(checkpoint);
  TrainingState& state = entries.state;
  const auto tensors = [&](const char* name) {
    return map_tensors((checkpoint / name).string(), Purpose::checkpoint);
  };
  Problems problems;
  const NamedTensors model = tensors(checkpoint_file::kModel);
  state.parameters = pick(model, entries.parameters, checkpoint, checkpoint_file::kModel, problems);
  state.buffers = pick(model, entries.buffers, checkpoint, checkpoint_file::kModel, problems);
  const NamedTensors random = pick(tensors(checkpoint_file::kRandom), {kGeneratorName}, checkpoint,
                                   checkpoint_file::kRandom, problems);
  problems.throw_if_any();
  state.generator_state = random[kGeneratorName];
  state.optimizer.tensors = tensors(checkpoint_file::kOptimizer);
  state.config_yaml = text_of(checkpoint / checkpoint_file::kConfig);
  state.transform_json = text_of(checkpoint / checkpoint_file::kTransform);
  if (std::filesystem::exists(checkpoint / checkpoint_file::kPlan)) {
    state.plan_json = text_of(checkpoint / checkpoint_file::kPlan);
  }
  if (entries.torch_version != torch_version())
    warn(message::checkpoint_version,
         {{"path", checkpoint.string()}, {"before", entries.torch_version}, {"now", torch_version()}});
  if (entries.products != nn::products_in_use())
    warn(message::checkpoint_products,
         {{"path", checkpoint.string()}, {"before", entries.products}, {"now", nn::products_in_use()}});
  // The update's kernels give the same bits; the layers' are not used there.
  const bool any = nn::is_plain() || entries.kernels.empty();
  if (!any && entries.kernels != kernels_in_use())
    warn(message::checkpoint_kernels,
         {{"path", checkpoint.string()}, {"before", entries.kernels}, {"now", kernels_in_use()}});
  return std::move(state);
}

void save_weights(const Path& path, const Model& model) {
  NamedTensors tensors;
  std::map<std::string, std::string> kept_names;
  for (const auto& list : {model.parameters(), model.buffers()}) {
    for (const NamedTensor& entry : list) {
      tensors.add(entry.name, entry.tensor);
      for (const std::string& alias : entry.aliases) kept_names[alias] = entry.name;
    }
  }
  try {
    save_tensors(path.string(), tensors, kept_names);
  } catch (const StateError& error) {
    fail(message::weights_unwritable, {{"reason", error.what()}});
  }
}

}  // namespace accrue
