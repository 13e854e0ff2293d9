// SPDX-License-Identifier: Apache-2.0
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "accrue/base/clock.h"
#include "accrue/base/error.h"
#include "accrue/base/messages/nn.h"
#include "accrue/memory/allocator.h"
#include "accrue/nn/recompute.h"

namespace accrue::nn {

struct Segments::Shared {
  struct Entry {
    SegmentInfo info;
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> buffers;
  };
  std::vector<Entry> entries;
};

Segments::Segments() : shared_(std::make_shared<Shared>()) {}

size_t Segments::add(std::string name, std::vector<at::Tensor> parameters, std::vector<at::Tensor> buffers) {
  shared_->entries.push_back({{.name = std::move(name)}, std::move(parameters), std::move(buffers)});
  return shared_->entries.size() - 1;
}

at::Tensor Segments::run(size_t number, const std::function<at::Tensor(const at::Tensor&)>& forward,
                         const at::Tensor& x) const {
  if (!c10::GradMode::is_enabled()) return forward(x);
  const Shared::Entry& entry = shared_->entries.at(number);
  // The run under grad mode is the one that keeps: the only one, or the second.
  const auto measured = [shared = shared_, number, forward](const at::Tensor& in) {
    SegmentInfo& info = shared->entries[number].info;
    const int64_t before = memory::statistics().live;
    const Stopwatch watch;
    at::Tensor output = forward(in);
    const double seconds = watch.seconds();
    if (!c10::GradMode::is_enabled()) return output;
    const int64_t grown = memory::statistics().live - before - static_cast<int64_t>(output.nbytes());
    info.seconds = std::max(info.seconds, seconds);
    if (before > 0) info.kept_bytes = std::max(info.kept_bytes, grown);
    return output;
  };
  return entry.info.is_recomputed ? recompute({measured, entry.parameters, entry.buffers}, x) : measured(x);
}

void Segments::install(Model& model) const {
  model.segments = [shared = shared_] {
    std::vector<SegmentInfo> list;
    for (const Shared::Entry& entry : shared->entries) list.push_back(entry.info);
    return list;
  };
  model.recompute = [shared = shared_](const std::vector<bool>& marks) {
    if (marks.size() != shared->entries.size()) {
      fail(message::nn_recompute_count, {{"got", marks.size()}, {"needed", shared->entries.size()}});
    }
    for (size_t i = 0; i < marks.size(); ++i) {
      SegmentInfo& info = shared->entries[i].info;
      info = {.name = std::move(info.name), .is_recomputed = marks[i]};
    }
  };
}

}  // namespace accrue::nn
