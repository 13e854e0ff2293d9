// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <functional>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/data.h"
#include "accrue/data/load_parts.h"
#include "accrue/data/subset_data.h"
#include "accrue/data/tensor_file.h"
#include "accrue/data/token_arrays.h"
#include "accrue/data/token_data.h"
#include "accrue/formats/strict_json.h"

namespace accrue {
namespace {

constexpr const char* kTokensFormat = "accrue-tokens/1";

TokenRowOptions limits_of(const DataOptions& options) {
  return {.vocabulary = options.vocabulary, .context = options.context, .max_length = options.max_length};
}

std::vector<std::string> shard_paths(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return {path};
  std::vector<std::string> paths;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".bin") paths.push_back(entry->path().string());
  if (error) fail(message::folder_unreadable, {{"path", path}, {"reason", error.message()}});
  if (paths.empty()) fail(message::shards_none, {{"path", path}});
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Targets that the loss counts: all labels but each row's first and those with -100.
int64_t count_supervised(const TokenRows& rows) {
  int64_t count = 0;
  for (int64_t row = 0; row < rows.size(); ++row)
    for (int64_t i = rows.offsets[static_cast<size_t>(row)] + 1;
         i < rows.offsets[static_cast<size_t>(row) + 1]; ++i)
      count += rows.labels[static_cast<size_t>(i)] >= 0 ? 1 : 0;
  return count;
}

void note_rows(const TokenRows& rows, const std::string& path, std::vector<std::string>& notes) {
  const auto tokens = static_cast<int64_t>(rows.ids.size());
  const int64_t supervised = count_supervised(rows);
  if (supervised == 0) fail(message::tokens_no_target, {{"path", path}});
  notes.push_back(path + ": " + std::to_string(rows.size()) + " rows, " + std::to_string(tokens) +
                  " tokens, " + std::to_string(supervised) + " of them targets" +
                  (rows.has_labels ? "" : " (no labels: every token after a row's first)"));
  if (rows.num_padded > 0)
    notes.push_back(path + ": " + std::to_string(rows.num_padded) + " padded positions left out");
  if (rows.num_cut > 0)
    notes.push_back(path + ": " + std::to_string(rows.num_cut) + " rows cut at data.max_length");
  if (rows.num_blank_lines > 0)
    notes.push_back(path + ": " + std::to_string(rows.num_blank_lines) + " blank line(s) skipped");
  if (rows.num_supervised_padding > 0)
    warn(message::tokens_supervised_padding, {{"path", path}, {"count", rows.num_supervised_padding}});
}

/// One file's samples, and the tokens of each.
struct Loaded {
  std::shared_ptr<Data> data;
  std::function<int64_t(int64_t)> length;
};

int64_t count_tokens(const Loaded& all, std::span<const int64_t> samples) {
  int64_t tokens = 0;
  for (const int64_t sample : samples) tokens += all.length(sample);
  return tokens;
}

Loaded load_rows(TokenRows rows, const std::string& path, std::vector<std::string>& notes) {
  note_rows(rows, path, notes);
  const auto data = std::make_shared<RowData>(std::move(rows));
  return {data, [data](int64_t row) {
            const std::vector<int64_t>& offsets = data->rows().offsets;
            return offsets[static_cast<size_t>(row) + 1] - offsets[static_cast<size_t>(row)];
          }};
}

Loaded load_shards(const std::string& path, const DataOptions& options, std::vector<std::string>& notes) {
  std::vector<TokenFile> shards;
  for (const std::string& shard : shard_paths(path))
    shards.emplace_back(shard, options.token_type, options.vocabulary);
  const int64_t length = options.max_length > 0 ? options.max_length : options.context;
  if (length < 2) fail(message::shards_length, {{"path", path}, {"got", length}});
  const size_t count = shards.size();
  const bool wide = shards[0].type() == TokenType::uint32;
  auto data = std::make_shared<ShardData>(std::move(shards), length);
  notes.push_back(path + ": " + std::to_string(count) + " shard" + (count == 1 ? "" : "s") + " of " +
                  (wide ? "uint32" : "uint16") + ", " + std::to_string(data->size()) + " rows of " +
                  std::to_string(length) + " tokens, " + std::to_string(data->num_left_over()) +
                  " tokens left over");
  return {data, [length](int64_t) { return length; }};
}

Loaded load_share(const std::string& path, const LoadRequest& request, DataFormat format,
                  std::vector<std::string>& notes) {
  const DataOptions& options = request.options;
  if (format == DataFormat::tokens) return load_shards(path, options, notes);
  if (format == DataFormat::jsonl) return load_rows(read_token_rows(path, limits_of(options)), path, notes);
  return load_rows(rows_of_arrays(load_tensors(path, Purpose::data), path, limits_of(options)), path, notes);
}

std::string describe_tokens(const DataOptions& options) {
  return nlohmann::ordered_json{{"format", kTokensFormat}, {"vocabulary", options.vocabulary}}.dump(2);
}

}  // namespace

Dataset load_tokens(const LoadRequest& request, DataFormat format) {
  const DataOptions& options = request.options;
  Dataset dataset;
  dataset.inputs = {{"input_ids", {}, at::kLong}};
  dataset.target = {"labels", {}, at::kLong};
  dataset.transform_json = describe_tokens(options);
  if (!request.transform_json.empty() && parse_json(request.transform_json, "data transformation",
                                                    Purpose::checkpoint)["format"] != kTokensFormat)
    fail(message::load_other_task);
  Loaded all = load_share(options.train, request, format, dataset.notes);
  share(dataset, all.data, request);
  dataset.num_tokens = count_tokens(all, share_out(all.data->size(), options, request.seed).train);
  if (options.valid.empty()) return dataset;
  const DataFormat other = find_format(options.valid, options.format, request.learned);
  dataset.valid = load_share(options.valid, request, other, dataset.notes).data;
  return dataset;
}

}  // namespace accrue
