// SPDX-License-Identifier: Apache-2.0
#include <c10/core/GradMode.h>

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
  Shared::Entry& entry = shared_->entries.at(number);
  const int64_t before = memory::statistics().live;
  const Stopwatch watch;
  at::Tensor output =
      entry.info.is_recomputed ? recompute({forward, entry.parameters, entry.buffers}, x) : forward(x);
  entry.info.seconds = watch.seconds();
  entry.info.kept_bytes = memory::statistics().live - before;
  return output;
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
    for (size_t i = 0; i < marks.size(); ++i) shared->entries[i].info.is_recomputed = marks[i];
  };
}

}  // namespace accrue::nn
