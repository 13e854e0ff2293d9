// SPDX-License-Identifier: Apache-2.0
// The commands that need no data: init, schema, doctor.
#include <ATen/Version.h>
#include <torch/version.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "accrue/base/error.h"
#include "accrue/base/messages/cli.h"
#include "accrue/base/threads.h"
#include "accrue/base/units.h"
#include "accrue/config/load.h"
#include "accrue/config/schema.h"
#include "accrue/config/templates.h"
#include "accrue/microstep/threads.h"
#include "accrue/nn/products.h"
#include "accrue/report/measure_speed.h"
#include "accrue/report/speed.h"
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

/// What `doctor` tells.
struct Doctor {
  int threads = 1;
  std::string threads_origin;
  std::optional<uint64_t> memory_total = memory_info("MemTotal");
  std::optional<uint64_t> memory_available = memory_info("MemAvailable");
  std::string huge_pages = huge_page_setting();
  std::optional<Speed> speed;
  std::vector<SpeedWarning> warnings;
};

/// The threads that a run without a word of its own about them would have, and their origin.
void set_threads(const Arguments& arguments, Doctor& doctor) {
  config::Overrides overrides;
  overrides.flags = arguments.overrides.flags;
  for (const auto& [name, value] : config::process_environment()) {
    if (name == "ACCRUE_THREADS") overrides.environment.emplace_back(name, value);
  }
  const config::Loaded run =
      config::load_text("task: regression\ndata: {train: none.csv}", "doctor", overrides);
  doctor.threads = run.run.threads;
  for (const config::Setting& setting : run.settings) {
    if (setting.path == "threads") doctor.threads_origin = setting.origin;
  }
}

Doctor examine(const Arguments& arguments) {
  Doctor doctor;
  set_threads(arguments, doctor);
  use_threads(doctor.threads);
  const ThreadCount limit = default_threads();
  const SpeedSettings settings = {.threads = doctor.threads,
                                  .thread_limit = limit.count,
                                  .limit_origin = limit.origin,
                                  .parallel_threads = count_parallel_threads(),
                                  .huge_pages = doctor.huge_pages};
  if (!arguments.no_speed) doctor.speed = measure_speed({.product = nn::put_product});
  doctor.warnings = speed_warnings(doctor.speed.value_or(Speed{}), settings);
  return doctor;
}

nlohmann::ordered_json json_of(const Doctor& doctor) {
  using Json = nlohmann::ordered_json;
  const auto known = [](const auto& value) { return value ? Json(*value) : Json(); };
  Json report = {
      {"accrue", ACCRUE_VERSION},
      {"libtorch", TORCH_VERSION},
      {"blas", blas()},
      {"cpu_capability", at::get_cpu_capability()},
      {"kernels", std::string(kernels_in_use())},
      {"products", nn::product_library()},
      {"threads", doctor.threads},
      {"threads_origin", doctor.threads_origin},
      {"devices", {"cpu"}},
      {"memory_total_bytes", known(doctor.memory_total)},
      {"memory_available_bytes", known(doctor.memory_available)},
      {"huge_pages", doctor.huge_pages.empty() ? Json() : Json(doctor.huge_pages)},
  };
  if (doctor.speed) report["speed"] = Json::parse(speed_json(*doctor.speed));
  report["warnings"] = Json::array();
  for (const SpeedWarning& warning : doctor.warnings) {
    report["warnings"].push_back({{"code", warning.code}, {"text", warning.text}});
  }
  return report;
}

void print(const Doctor& doctor) {
  const std::string products = nn::products_in_use();
  const auto bytes = [](std::optional<uint64_t> value) { return value ? format_bytes(*value) : "unknown"; };
  std::cout << "accrue      " << ACCRUE_VERSION << "\nLibTorch    " << TORCH_VERSION << "\nBLAS        "
            << blas() << ", the layers' products by " << products << "\nprocessor   "
            << at::get_cpu_capability() << " (LibTorch's kernels), " << kernels_in_use()
            << " (ours)\nthreads     " << doctor.threads << " (" << doctor.threads_origin << ")\nmemory      "
            << bytes(doctor.memory_total) << ", available " << bytes(doctor.memory_available)
            << "\nhuge pages  " << (doctor.huge_pages.empty() ? "unknown" : doctor.huge_pages)
            << "\ndevices     cpu\n";
  if (doctor.speed) std::cout << speed_text(*doctor.speed);
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
  const Doctor doctor = examine(arguments);
  if (arguments.json) {
    std::cout << json_of(doctor).dump(2) << '\n';
    return 0;
  }
  print(doctor);
  for (const SpeedWarning& warning : doctor.warnings) std::cerr << "warning: " << warning.text << '\n';
  return 0;
}

}  // namespace accrue::cli
