// SPDX-License-Identifier: Apache-2.0
#include "accrue/evaluate/evaluate.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>

#include "accrue/base/error.h"
#include "accrue/base/messages/evaluate.h"
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

}  // namespace

EvalResult evaluate(const Model& model, const Loss& loss, std::span<const Metric> metrics, const Data& data,
                    const EvalOptions& options) {
  if (options.batch_size < 1) fail(message::eval_batch_size, {{"got", options.batch_size}});
  const int64_t samples = data.size();
  if (samples < 1) fail(message::eval_no_samples);

  const auto start = std::chrono::steady_clock::now();
  const c10::NoGradGuard no_grad;
  const GeneratorScope generator;
  const EvaluationMode mode(model);
  std::vector<std::unique_ptr<MetricSums>> sums;
  for (const Metric& metric : metrics) sums.push_back(metric.open());

  EvalResult result;
  result.samples = samples;
  for (int64_t first = 0; first < samples;) {
    std::vector<int64_t> ids(static_cast<size_t>(std::min(options.batch_size, samples - first)));
    std::iota(ids.begin(), ids.end(), first);
    first += static_cast<int64_t>(ids.size());
    const MicroBatch micro = as_model_takes(model, MicroBatch(data.gather(ids), ids));
    Outputs outputs = model.forward(micro);
    if (options.float64_outputs) outputs = widened(outputs);
    const LossTerms terms = loss.terms(outputs, micro);
    check_terms(terms);
    add_terms(result.terms, terms);
    for (const auto& sum : sums) sum->add(outputs, micro);
  }

  result.loss = loss_of(result.terms);
  result.weight = result.terms.front().weight;
  for (size_t i = 0; i < sums.size(); ++i) result.metrics.emplace_back(metrics[i].name, sums[i]->value());
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace accrue
