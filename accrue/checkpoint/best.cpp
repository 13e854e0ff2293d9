// SPDX-License-Identifier: Apache-2.0
#include <system_error>

#include "accrue/base/error.h"
#include "accrue/base/messages/checkpoint.h"
#include "accrue/checkpoint/checkpoint_folder.h"
#include "accrue/formats/mapped_file.h"
#include "accrue/formats/strict_json.h"

namespace accrue {

BestCheckpoint best_checkpoint(const std::filesystem::path& output_dir) {
  const std::filesystem::path file = output_dir / "best.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) fail(message::checkpoint_no_best, {{"path", file.string()}});
  const MappedFile text(file.string(), Purpose::checkpoint);
  const nlohmann::ordered_json best = parse_json(text.text(), file.string(), Purpose::checkpoint);
  const bool good = best.is_object() && best.contains("checkpoint") && best["checkpoint"].is_string();
  if (!good) fail(message::checkpoint_best_damaged, {{"path", file.string()}});
  const std::filesystem::path place = output_dir / best["checkpoint"].get<std::string>();
  if (const std::optional<std::string> damage = checkpoint_damage(place)) {
    fail(message::checkpoint_damaged, {{"path", place.string()}, {"damage", *damage}});
  }
  return {place, best.value("weights", "model") == "average"};
}

}  // namespace accrue
