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
#include <stdexcept>
#include <system_error>
#include <thread>

#include "accrue/base/log.h"
#include "accrue/base/messages/plan.h"
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
      : descriptor_(::open((file.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)),
        error_number_(errno) {
    // A process that was stopped while it holds the lock must not stop this one too.
    constexpr int kTries = 500;
    for (int i = 0; descriptor_ >= 0 && !held_ && i < kTries; ++i) {
      held_ = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
      if (held_) return;
      error_number_ = errno;
      if (error_number_ != EWOULDBLOCK && error_number_ != EINTR) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  ~Lock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  bool held() const noexcept { return held_; }
  std::string reason() const { return std::generic_category().message(error_number_); }

 private:
  int descriptor_;
  int error_number_;  // where it is not held
  bool held_ = false;
};

/// The file's text; empty where there is none. Throws what is no text of choices.
std::string read_text(const fs::path& file) {
  if (!fs::exists(file)) return {};
  if (!fs::is_regular_file(file)) throw std::runtime_error("it is no file");
  if (fs::file_size(file) > kMostBytes) throw std::runtime_error("the file that is there is too large");
  std::ostringstream text;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::system_error(errno, std::generic_category());
  if (stream.peek() != std::ifstream::traits_type::eof()) text << stream.rdbuf();
  return std::move(text).str();
}

/// Also where it was cut short.
bool is_ours(std::string_view text) {
  return text.starts_with(kHead) || kHead.starts_with(text);
}

/// The choices of a text, the latest last; nothing where it is broken.
std::optional<Json> choices_in(const std::string& text) {
  const Json whole = Json::parse(text, nullptr, false);
  if (!whole.is_object() || !whole.contains("choices") || !whole["choices"].is_object()) return std::nullopt;
  return whole["choices"];
}

bool not_kept(const fs::path& file, const std::string& reason) {
  warn(message::plan_choice_not_kept, {{"path", file.string()}, {"reason", reason}});
  return false;
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
  const std::optional<Json> choices = choices_in(text);
  if (!choices) return std::nullopt;
  const auto found = choices->find(std::string(key));
  if (found == choices->end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
} catch (const std::exception&) {
  return std::nullopt;
}

bool keep_choice(const fs::path& file, std::string_view key, const std::string& choice) try {
  if (file.empty()) return false;
  const fs::path target = fs::weakly_canonical(fs::absolute(file));  // a link stays one
  fs::create_directories(target.parent_path());
  const Lock lock(target);
  if (!lock.held()) return not_kept(file, lock.reason());
  const std::string text = read_text(target);
  if (!text.empty() && !is_ours(text)) return not_kept(file, "the file that is there holds no choices");
  const std::optional<Json> kept = choices_in(text);
  if (!kept && !text.empty()) warn(message::plan_choices_broken, {{"path", file.string()}});
  Json choices = kept.value_or(Json::object());
  choices.erase(std::string(key));
  choices[std::string(key)] = choice;
  while (choices.size() > kMostChoices) choices.erase(choices.begin());
  write_file_atomically(target.string(), std::string(kHead) + "\"choices\":" + choices.dump(1) + "}\n");
  return true;
} catch (const std::exception& error) {
  return not_kept(file, error.what());
}

}  // namespace accrue
