// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/foreign.h"

#include <algorithm>
#include "accrue/base/messages/formats.h"

namespace accrue {

void refuse_foreign(std::string_view text, const std::string& path, Purpose purpose) {
  const auto refuse = [&](const Message& message) { fail(for_purpose(message, purpose), {{"path", path}}); };
  if (text.starts_with("version https://git-lfs.github.com/spec/")) refuse(message::file_pointer);
  if (text.starts_with("\x1F\x8B")) refuse(message::file_gzip);
  const std::string_view start = text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (start.starts_with("<!DOCTYPE") || start.starts_with("<!doctype") || start.starts_with("<html") ||
      start.starts_with("<HTML"))
    refuse(message::file_web_page);
}

}  // namespace accrue
