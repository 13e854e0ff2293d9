// SPDX-License-Identifier: Apache-2.0
#include <c10/util/Exception.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "accrue/base/error.h"
#include "accrue/base/messages/cli.h"
#include "accrue/memory/allocator.h"
#include "accrue/memory/code.h"
#include "cli/budget.h"
#include "cli/commands.h"

namespace {

using accrue::cli::Arguments;

int run(const Arguments& arguments) {
  if (!arguments.output.empty()) {
    std::fputs(arguments.output.c_str(), stdout);
    return 0;
  }
  static const std::map<std::string, std::function<int(const Arguments&)>> kCommands = {
      {"train", accrue::cli::train}, {"plan", accrue::cli::plan},       {"verify", accrue::cli::verify},
      {"eval", accrue::cli::eval},   {"compare", accrue::cli::compare}, {"check", accrue::cli::check},
      {"init", accrue::cli::init},   {"schema", accrue::cli::schema},   {"doctor", accrue::cli::doctor}};
  return kCommands.at(arguments.command)(arguments);
}

std::string first_line(const char* text) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  return line;
}

int say(const accrue::Error& error) {
  std::istringstream lines(error.what());
  for (std::string line; std::getline(lines, line);) {
    std::fprintf(stderr, "accrue: error: %s\n", line.c_str());
  }
  std::fprintf(stderr, "accrue: %s [%s]\n", std::string(accrue::kind_name(error.kind())).c_str(),
               error.code().c_str());
  return error.exit_code();
}

/// Runs `body` and turns what comes from elsewhere into an error of ours.
int guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const accrue::Error& error) {
    return say(error);
  } catch (const c10::OutOfMemoryError& error) {
    return guarded(
        [&]() -> int { accrue::cli::fail_out_of_memory(first_line(error.what_without_backtrace())); });
  } catch (const c10::Error& error) {
    return guarded([&]() -> int {
      accrue::fail(accrue::message::inside_library, {{"what", first_line(error.what_without_backtrace())}});
    });
  } catch (const std::bad_alloc&) {
    return guarded([]() -> int { accrue::cli::fail_out_of_memory("std::bad_alloc"); });
  } catch (const std::exception& error) {
    return guarded([&]() -> int {
      accrue::fail(accrue::message::standard_library, {{"what", first_line(error.what())}});
    });
  }
}

/// Keeps files of ours from taking the numbers of streams that the caller closed: what is meant for a stream
/// would be written into them. Writing to a closed stream still fails.
void fill_closed_streams() {
  for (int descriptor = ::open("/dev/null", O_RDONLY); descriptor >= 0; descriptor = ::dup(descriptor)) {
    if (descriptor <= STDERR_FILENO) continue;
    ::close(descriptor);
    return;
  }
}

/// `code`, once all results are out. A reader that has left (`| head`) ends a program without a word.
int delivered(int code) {
  std::cout.flush();
  if (std::cout.good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  // The reason of an earlier failure is gone; another byte gets the same answer.
  const int error_number = ::write(STDOUT_FILENO, "\n", 1) < 0 ? errno : EIO;
  if (error_number == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  accrue::fail(accrue::message::output_lost, {{"reason", std::generic_category().message(error_number)}});
}

}  // namespace

int main(int argc, char** argv) {
  fill_closed_streams();
  // A terminal or pipe that goes away must not end a run.
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> words(argv + 1, argv + argc);
  const int code = guarded([&words] {
    accrue::cli::install_allocator();
    return delivered(run(accrue::cli::parse(words)));
  });
  // Leaving runs code of the libraries that was given back: without kept blocks and the code of the run it
  // does not raise the peak.
  accrue::memory::empty_cache();
  if (accrue::memory::budget()) accrue::memory::release_code();
  return code;
}
