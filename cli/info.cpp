// SPDX-License-Identifier: Apache-2.0
// The commands that need no data: init, schema, doctor.
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "accrue/base/error.h"
#include "accrue/base/messages/cli.h"
#include "accrue/base/threads.h"
#include "accrue/base/units.h"
#include "accrue/config/schema.h"
#include "accrue/config/templates.h"
#include "accrue/update/kernels.h"
#include "cli/commands.h"

namespace accrue::cli {
namespace {

/// A value of a "Name: 123 kB" line of /proc/meminfo in bytes, or nothing.
std::optional<uint64_t> memory_info(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    uint64_t kilobytes = 0;
    if (words >> key >> kilobytes && key == name + ":") return kilobytes * 1024;
  }
  return std::nullopt;
}

std::string blas() {
  std::istringstream lines(at::show_config());
  for (std::string line; std::getline(lines, line);) {
    const size_t start = line.find("Math Kernel Library");
    if (start != std::string::npos) return "MKL (" + line.substr(line.find_first_not_of(" -")) + ")";
    if (line.find("OpenBLAS") != std::string::npos) return "OpenBLAS";
  }
  return "unknown";
}

}  // namespace

int init(const Arguments& arguments) {
  if (arguments.list || arguments.config.empty()) {
    for (const config::Template& entry : config::templates()) {
      std::cout << entry.name << std::string(24 - std::min<size_t>(23, entry.name.size()), ' ')
                << entry.summary << '\n';
    }
    return 0;
  }
  const config::Template& chosen = config::find_template(arguments.config);
  const std::filesystem::path path =
      arguments.file.empty() ? std::string(chosen.name) + ".yaml" : arguments.file;
  if (std::filesystem::exists(path)) fail(message::init_exists, {{"path", path.string()}});
  std::error_code ignored;  // what cannot be made shows when the file is opened
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  std::ofstream file(path);
  file << chosen.text;
  file.close();
  if (!file) fail(message::init_unwritable, {{"path", path.string()}, {"reason", std::strerror(errno)}});
  std::cerr << "wrote " << path.string() << "; look at it, then: accrue train " << path.string() << '\n';
  return 0;
}

int schema(const Arguments&) {
  std::cout << config::json_schema() << '\n';
  return 0;
}

int doctor(const Arguments& arguments) {
  const ThreadCount threads = default_threads();
  nlohmann::ordered_json report = {
      {"accrue", ACCRUE_VERSION},
      {"libtorch", TORCH_VERSION},
      {"blas", blas()},
      {"cpu_capability", at::get_cpu_capability()},
      {"kernels", std::string(kernels_in_use())},
      {"threads", threads.count},
      {"threads_origin", threads.origin},
      {"devices", {"cpu"}},
  };
  const auto bytes = [&report](const char* key, std::optional<uint64_t> value) {
    report[key] = value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  bytes("memory_total_bytes", memory_info("MemTotal"));
  bytes("memory_available_bytes", memory_info("MemAvailable"));
  if (arguments.json) {
    std::cout << report.dump(2) << '\n';
    return 0;
  }
  std::cout << "accrue      " << ACCRUE_VERSION << "\nLibTorch    " << TORCH_VERSION << "\nBLAS        "
            << blas() << "\nprocessor   " << at::get_cpu_capability() << " (LibTorch's kernels), "
            << kernels_in_use() << " (the update's kernels)\nthreads     " << threads.count << " ("
            << threads.origin << ")\nmemory      ";
  const auto total = memory_info("MemTotal");
  const auto available = memory_info("MemAvailable");
  std::cout << (total ? format_bytes(*total) : "unknown") << ", available "
            << (available ? format_bytes(*available) : "unknown") << "\ndevices     cpu\n";
  return 0;
}

}  // namespace accrue::cli
