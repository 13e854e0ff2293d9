// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/slow.h"

#include "accrue/base/log.h"
#include "accrue/base/messages/config.h"
#include "accrue/config/words.h"

namespace accrue::config {

void warn_of_slow(const Loaded& loaded, bool bf16_units) {
  const ModelKind kind = loaded.run.model.kind;
  const bool plain = kind == ModelKind::linear || kind == ModelKind::mlp;
  if (bf16_units || !plain || loaded.run.parameters != ParameterType::bf16) return;
  std::string place = loaded.file;
  for (const Setting& setting : loaded.settings) {
    if (setting.path == "precision.parameters") place = setting.origin;
  }
  warn(message::config_slow_bf16, {{"place", place}, {"kind", word_of(kind)}});
}

}  // namespace accrue::config
