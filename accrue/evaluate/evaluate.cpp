// SPDX-License-Identifier: Apache-2.0
#include "accrue/evaluate/evaluate.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>

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

struct Forward {
  MicroBatch micro;
  Outputs outputs;
  LossTerms terms;
};

/// Empty where memory was refused to more than one sample.
std::optional<Forward> run_forward(const Model& model, const Loss& loss, const Data& data,
                                   const std::vector<int64_t>& ids, const EvalOptions& options) {
  const int64_t refusals_before = memory::statistics().num_refusals;
  try {
    const MicroBatch micro = as_model_takes(model, MicroBatch(data.gather(ids), ids));
    Outputs outputs = model.forward(micro);
    if (options.float64_outputs) outputs = widened(outputs);
    LossTerms terms = loss.terms(outputs, micro);
    check_terms(terms);
    return Forward{micro, std::move(outputs), std::move(terms)};
  } catch (...) {
    if (ids.size() == 1 || !memory::is_refusal(std::current_exception(), refusals_before)) throw;
  }
  return std::nullopt;
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
  std::vector<std::unique_ptr<MetricSums>> sums;
  for (const Metric& metric : metrics) sums.push_back(metric.open());

  EvalResult result;
  result.samples = samples;
  int64_t batch_size = options.batch_size;
  for (int64_t first = 0; first < samples;) {
    std::vector<int64_t> ids(static_cast<size_t>(std::min(batch_size, samples - first)));
    std::iota(ids.begin(), ids.end(), first);
    const std::optional<Forward> part = run_forward(model, loss, data, ids, options);
    if (!part) {
      memory::empty_cache();
      batch_size = (static_cast<int64_t>(ids.size()) + 1) / 2;
      continue;
    }
    first += static_cast<int64_t>(ids.size());
    add_terms(result.terms, part->terms);
    for (const auto& sum : sums) sum->add(part->outputs, part->micro);
  }

  result.loss = loss_of(result.terms);
  result.weight = result.terms.front().weight;
  for (size_t i = 0; i < sums.size(); ++i) result.metrics.emplace_back(metrics[i].name, sums[i]->value());
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace accrue
