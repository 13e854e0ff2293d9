// SPDX-License-Identifier: Apache-2.0
// docs/errors.md is built from the tables that the tests of configurations, files, calls and commands run
// through.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/base/error.h"
#include "tests/calls/bad_calls.h"
#include "tests/config/bad_configs.h"
#include "tests/formats/bad_data_files.h"
#include "tests/formats/bad_files.h"
#include "tests/program/bad_commands.h"
#include "tests/support/files.h"

namespace accrue::test {
namespace {

constexpr std::string_view kBase = "task: classification\ndata: {train: a.csv}\n";

constexpr std::string_view kHead = R"(# Errors

What a wrong configuration, file, call or command is told. Every row is a test of kind and whole text; this page is
written from the tables of those tests.

A message has four parts: the place (`file:line:column`, a row, a tensor, a parameter), what was got, what is needed,
and what to do where that does not follow. All mistakes of a configuration are told at once, a line each. A refusal
creates and changes nothing.

Each message has a stable code beside its text, such as `config.value`. The program prints it in its last line:

```text
accrue: error: run.yaml:3:35: batch.num_micro_steps: got 0, needed a whole number of at least 1
accrue: ConfigError [config.value]
```

In the library every failure is an `accrue::Error` with `kind()`, `code()` and `what()`; there is a class a kind
(`accrue::ConfigError`, ...), so that a caller can catch what he can handle. The exit code is the program's.
)";

constexpr std::string_view kConfigurations = R"(
## Configurations

The file is called `bad.yaml`; `bad.yaml:3:35` means line 3, column 35. Unless a row says that it is the whole file,
these two lines stand above what it shows: `task: classification` and `data: {train: a.csv}`. Bytes that cannot be
shown are written as `\xFF`.

)";

constexpr std::string_view kCsv = R"(
## CSV files

`FILE` is the path as it was given.

)";

constexpr std::string_view kSafetensors = R"(
## safetensors files

Read as weights. As data, the same texts are a `DataError` (exit code 3); in a checkpoint they are part of a
`CheckpointError` (exit code 1).

)";

constexpr std::string_view kIdx = R"(
## IDX files

)";

constexpr std::string_view kIdxGz = R"(
## IDX files packed by gzip

)";

constexpr std::string_view kCifar = R"(
## CIFAR files

)";

constexpr std::string_view kTokenFiles = R"(
## Token shards

Read with a vocabulary of 100 ids.

)";

constexpr std::string_view kTokenRows = R"(
## Rows of tokens (JSON lines)

Read with a vocabulary of 100 ids, a context of 6, and rows cut at 8 tokens.

)";

constexpr std::string_view kCalls = R"(
## Calls

`fields` are `x` [8, 6] and `y` [8] (classes 0 to 2), `batch` is `Batch(fields)` and `data` the same as a data source.
`model` takes `x` and gives 3 classes; its parameters are `hidden.weight`, `hidden.bias`, `out.weight`, `out.bias`,
the first of which is `weight`. `gradients`, `updater` (`Sgd`) and `loss` (cross entropy) belong to it; `other_model`
has no buffer yet. `terms()` are the loss terms of the whole batch, `sum()` is a number with a graph, `Parameters` a
list of named tensors.
)";

constexpr std::string_view kCommands = R"(
## Command line

The current folder, `FOLDER` in the messages, has a good `run.yaml` (classification, `small.csv` with 8 samples and the
columns a, b and y), `gap.csv` (the cell in line 2, column 2 is empty), `pointer.safetensors` (a Git LFS pointer) and
`full`, a folder that is not empty. Messages go to standard error.

)";

/// As inline code in a table's cell: a span a line.
std::string code(std::string_view text) {
  std::string cell;
  std::string line;
  const auto flush = [&] {
    const std::string fence = line.find('`') == std::string::npos ? "`" : "``";
    if (!line.empty()) cell += (cell.empty() ? "" : "<br>") + fence + line + fence;
    line.clear();
  };
  constexpr char kHex[] = "0123456789ABCDEF";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '\n') {
      flush();
    } else if (letter == '\t') {
      line += "\\t";
    } else if (byte < 0x20 || byte > 0x7E) {
      line += std::string("\\x") + kHex[byte >> 4] + kHex[byte & 15];
    } else {
      line += letter == '|' ? "\\|" : std::string(1, letter);
    }
  }
  flush();
  return cell;
}

/// The exit code of a program that ends with an error of this kind; -1 for a name that is none.
int exit_code_of(std::string_view kind) {
  for (int number = 0; number <= static_cast<int>(ErrorKind::device); ++number) {
    const auto candidate = static_cast<ErrorKind>(number);
    if (kind_name(candidate) == kind) return Error(candidate, "", "").exit_code();
  }
  return -1;
}

std::string table_head(std::string_view what) {
  return "| " + std::string(what) + " | kind | exit code | message |\n| --- | --- | --- | --- |\n";
}

std::string row(const std::string& what, std::string_view kind, std::string_view text) {
  return "| " + what + " | " + std::string(kind) + " | " + std::to_string(exit_code_of(kind)) + " | " +
         code(text) + " |\n";
}

std::string configurations() {
  std::string text = std::string(kConfigurations) + table_head("configuration");
  for (const BadConfig& bad : kBadConfigs) {
    const bool common = bad.yaml.starts_with(kBase) && bad.yaml.size() > kBase.size();
    const std::string what = common ? code(bad.yaml.substr(kBase.size())) : code(bad.yaml) + " (whole file)";
    text += row(what, bad.kind, bad.text);
  }
  return text;
}

std::string files(std::string_view head, const std::vector<BadFile>& bad_files) {
  std::string text = std::string(head) + table_head("file");
  for (const BadFile& bad : bad_files) text += row(bad.what, bad.kind, bad.text);
  return text;
}

std::string calls() {
  std::string text(kCalls);
  std::string_view area;
  for (const BadCall& bad : kBadCalls) {
    if (bad.area != area) text += "\n### " + std::string(bad.area) + "\n\n" + table_head("call");
    area = bad.area;
    text += row(code(bad.call), bad.kind, bad.text);
  }
  return text;
}

std::string commands() {
  std::string text = std::string(kCommands) + table_head("command");
  for (const BadCommand& bad : kBadCommands) text += row(code(bad.command), bad.kind, bad.text);
  return text;
}

std::string page() {
  return std::string(kHead) + configurations() + files(kCsv, bad_csv()) +
         files(kSafetensors, bad_safetensors()) + files(kIdx, bad_idx()) + files(kIdxGz, bad_idx_gz()) +
         files(kCifar, bad_cifar()) + files(kTokenFiles, bad_token_files()) +
         files(kTokenRows, bad_token_rows()) + calls() + commands();
}

TEST(ErrorsPage, IsWhatTheTablesGive) {
  const std::string path = ACCRUE_SOURCE_DIR "/docs/errors.md";
  const char* const write = std::getenv("ACCRUE_WRITE_DOCS");
  if (write != nullptr && std::string_view(write) == "1") write_file(path, page());
  EXPECT_EQ(read_file(path), page()) << "ACCRUE_WRITE_DOCS=1 writes the page anew";
}

TEST(ErrorsPage, HasTheClassicMistakesOfANumberOfMicroSteps) {
  const std::string text = configurations();
  for (const char* const k : {"0", "-1", "2.5", "\"4\"", "true"}) {
    EXPECT_NE(text.find("`batch: {size: 8, num_micro_steps: " + std::string(k) + "}` | ConfigError | 2 | "),
              std::string::npos)
        << k;
  }
}

TEST(ErrorsPage, GivesEachRowAKnownKindAndItsExitCode) {
  std::set<std::string> rows;
  const auto check = [&](std::string_view id, std::string_view kind) {
    EXPECT_NE(exit_code_of(kind), -1) << id;
    EXPECT_TRUE(rows.insert(std::string(id)).second) << id;
  };
  for (const BadConfig& bad : kBadConfigs) check(bad.id, bad.kind);
  for (const BadFile& bad : bad_csv()) check(bad.id, bad.kind);
  for (const BadFile& bad : bad_safetensors()) check(bad.id, bad.kind);
  for (const BadCall& bad : kBadCalls) check(bad.id, bad.kind);
  for (const BadCommand& bad : kBadCommands) {
    check(bad.id, bad.kind);
    EXPECT_EQ(exit_code_of(bad.kind), bad.exit_code) << bad.id;
  }
  EXPECT_GE(rows.size(), 200u);
}

TEST(ErrorsPage, ShowsBarsAndBytesThatATableCannotHold) {
  EXPECT_EQ(code("a|b\n  c\t\xFF"), "`a\\|b`<br>`  c\\t\\xFF`");
  EXPECT_EQ(code("a`b"), "``a`b``");
}

}  // namespace
}  // namespace accrue::test
