// SPDX-License-Identifier: Apache-2.0
#include "accrue/evaluate/evaluate.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <numeric>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/evaluate.h"
#include "accrue/memory/allocator.h"
#include "accrue/memory/refusal.h"
#include "accrue/microstep/generator_scope.h"
#include "accrue/microstep/run.h"

namespace accrue {
namespace {

/// Evaluation mode for a scope; every module's own mode comes back at its end.
class EvaluationMode {
 public:
  explicit EvaluationMode(const Model& model) : put_back_(note_modes(model)) { model.train(false); }
  ~EvaluationMode() { put_back_(); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::function<void()> put_back_;
};

Outputs widened(const Outputs& outputs) {
  NamedTensors wide;
  for (const auto& [name, tensor] : outputs.tensors()) {
    wide.add(name, tensor.is_floating_point() ? tensor.to(at::kDouble) : tensor);
  }
  return wide;
}

void add_terms(std::vector<TermSum>& sums, const LossTerms& terms) {
  for (const LossTerm& term : terms) {
    auto place =
        std::find_if(sums.begin(), sums.end(), [&](const TermSum& sum) { return sum.name == term.name; });
    if (place == sums.end()) {
      place = sums.insert(sums.end(), {.name = term.name, .coefficient = term.coefficient});
    }
    if (term.counts()) place->sum += term.sum.item<double>();
    place->weight += term.weight;
  }
}

/// What the samples so far give.
struct Sums {
  std::vector<TermSum> terms;
  std::vector<std::unique_ptr<MetricSums>> metrics;

  Sums copy() const {
    Sums copied{terms, {}};
    for (const auto& sums : metrics) copied.metrics.push_back(sums->clone());
    return copied;
  }
};

/// False where memory was refused to more than one sample; then `sums` is as it was.
bool add_batch(Sums& sums, const Model& model, const Loss& loss, const Data& data,
               const std::vector<int64_t>& ids, const EvalOptions& options) {
  const int64_t refusals_before = memory::statistics().num_refusals;
  try {
    Sums more = sums.copy();
    const MicroBatch micro = as_model_takes(model, MicroBatch(data.gather(ids), ids));
    Outputs outputs = model.forward(micro);
    if (options.float64_outputs) outputs = widened(outputs);
    const LossTerms terms = loss.terms(outputs, micro);
    check_terms(terms);
    add_terms(more.terms, terms);
    for (const auto& metric : more.metrics) metric->add(outputs, micro);
    sums = std::move(more);
    return true;
  } catch (...) {
    if (ids.size() == 1 || !memory::is_refusal(std::current_exception(), refusals_before)) throw;
  }
  return false;
}

}  // namespace

EvalResult evaluate(const Model& model, const Loss& loss, std::span<const Metric> metrics, const Data& data,
                    const EvalOptions& options) {
  if (options.batch_size < 1) fail(message::eval_batch_size, {{"got", options.batch_size}});
  const int64_t samples = data.size();
  if (samples < 1) fail(message::eval_no_samples);

  const auto start = std::chrono::steady_clock::now();
  const memory::PhaseScope phase(memory::Phase::evaluation);
  const c10::NoGradGuard no_grad;
  const GeneratorScope generator;
  const EvaluationMode mode(model);
  Sums sums;
  for (const Metric& metric : metrics) sums.metrics.push_back(metric.open());

  EvalResult result;
  result.samples = samples;
  int64_t batch_size = options.batch_size;
  for (int64_t first = 0; first < samples;) {
    if (memory::budget()) memory::keep_within_budget();
    std::vector<int64_t> ids(static_cast<size_t>(std::min(batch_size, samples - first)));
    std::iota(ids.begin(), ids.end(), first);
    if (add_batch(sums, model, loss, data, ids, options)) {
      first += static_cast<int64_t>(ids.size());
      continue;
    }
    memory::empty_cache();
    batch_size = (static_cast<int64_t>(ids.size()) + 1) / 2;
  }

  result.terms = std::move(sums.terms);
  result.loss = loss_of(result.terms);
  result.weight = result.terms.front().weight;
  for (size_t i = 0; i < metrics.size(); ++i)
    result.metrics.emplace_back(metrics[i].name, sums.metrics[i]->value());
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace accrue
