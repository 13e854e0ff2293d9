// SPDX-License-Identifier: Apache-2.0
#include "accrue/plan/choice_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "accrue/formats/atomic_file.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kMostChoices = 200;
constexpr std::uintmax_t kMostBytes = std::uintmax_t{64} << 20;
// How a file of choices begins: what does not begin so is somebody else's.
constexpr std::string_view kHead = R"({"accrue_plans":1,)";

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// One process at a time, from here to the end of the scope. The lock's file stays: to remove it would let
/// two processes hold two locks.
class Lock {
 public:
  explicit Lock(const fs::path& file)
      : descriptor_(::open((file.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    // A process that was stopped while it holds the lock must not stop this one too.
    constexpr int kTries = 500;
    for (int i = 0; descriptor_ >= 0 && !held_ && i < kTries; ++i) {
      held_ = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
      if (!held_ && errno != EWOULDBLOCK && errno != EINTR) return;
      if (!held_) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  ~Lock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  bool held() const noexcept { return held_; }

 private:
  int descriptor_;
  bool held_ = false;
};

/// The file's text; empty where there is none. Throws what is no text of choices.
std::string read_text(const fs::path& file) {
  if (!fs::exists(file)) return {};
  if (!fs::is_regular_file(file) || fs::file_size(file) > kMostBytes) throw std::exception();
  std::ostringstream text;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::exception();
  if (stream.peek() != std::ifstream::traits_type::eof()) text << stream.rdbuf();
  return std::move(text).str();
}

/// The choices of a text, the latest last; none where it is broken.
Json choices_in(const std::string& text) {
  const Json whole = Json::parse(text, nullptr, false);
  if (!whole.is_object() || !whole.contains("choices") || !whole["choices"].is_object())
    return Json::object();
  return whole["choices"];
}

}  // namespace

fs::path choice_file_path() {
  const std::string given = variable("ACCRUE_PLAN_CACHE");
  if (given == "off") return {};
  if (!given.empty()) return given;
  const fs::path cache = variable("XDG_CACHE_HOME");
  if (cache.is_absolute()) return cache / "accrue" / "plans.json";  // a relative one is to be ignored
  const std::string home = variable("HOME");
  return home.empty() ? fs::path() : fs::path(home) / ".cache" / "accrue" / "plans.json";
}

std::optional<std::string> find_choice(const fs::path& file, std::string_view key) try {
  const std::string text = read_text(file);
  if (!text.starts_with(kHead)) return std::nullopt;
  const Json choices = choices_in(text);
  const auto found = choices.find(std::string(key));
  if (found == choices.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
} catch (const std::exception&) {
  return std::nullopt;
}

bool keep_choice(const fs::path& file, std::string_view key, const std::string& choice) try {
  if (file.empty()) return false;
  const fs::path target = fs::weakly_canonical(file);  // a link stays one
  fs::create_directories(target.parent_path());
  const Lock lock(target);
  if (!lock.held()) return false;
  const std::string text = read_text(target);
  if (!text.empty() && !text.starts_with(kHead)) return false;
  Json choices = choices_in(text);
  choices.erase(std::string(key));
  choices[std::string(key)] = choice;
  while (choices.size() > kMostChoices) choices.erase(choices.begin());
  write_file_atomically(target.string(), std::string(kHead) + "\"choices\":" + choices.dump(1) + "}\n");
  return true;
} catch (const std::exception&) {
  return false;
}

}  // namespace accrue
