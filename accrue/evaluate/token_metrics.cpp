// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/ones_like.h>

#include <cmath>
#include <memory>
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/evaluate.h"
#include "accrue/data/shape_text.h"
#include "accrue/evaluate/metric.h"
#include "accrue/evaluate/share.h"
#include "accrue/microstep/losses.h"
#include "accrue/microstep/next_tokens.h"

namespace accrue::metric {
namespace {

/// The fields of a token metric, and what they and the outputs give.
class Tokens {
 public:
  Tokens(const char* metric, std::string labels, std::string mask)
      : metric_(metric), labels_(std::move(labels)), mask_(std::move(mask)) {}

  /// Counted rows [m, C] as float64 and their targets [m].
  std::pair<at::Tensor, at::Tensor> counted(const Outputs& outputs, const MicroBatch& micro) const {
    const at::Tensor& logits = outputs.tensor();
    const at::Tensor& labels = micro[labels_];
    const int64_t dims = micro.is_ragged() ? 1 : 2;
    if (labels.dim() != dims || logits.dim() != dims + 1 || logits.sizes().slice(0, dims) != labels.sizes()) {
      fail(message::metric_sizes,
           {{"metric", metric_},
            {"output", shape_text(logits)},
            {"target", shape_text(labels)},
            {"needed", micro.is_ragged() ? "[tokens, C] and [tokens]" : "[n, T, C] and [n, T]"}});
    }
    const NextTokens tokens = next_tokens(micro, labels_, mask_);
    return {counted_rows(logits, tokens).to(at::kDouble), tokens.targets.to(logits.device())};
  }

 private:
  const char* metric_;
  std::string labels_;
  std::string mask_;
};

class Perplexity : public MetricSums {
 public:
  explicit Perplexity(Tokens tokens) : tokens_(std::move(tokens)) {}

  void add(const Outputs& outputs, const MicroBatch& micro) override {
    const auto [logits, targets] = tokens_.counted(outputs, micro);
    const LossTerm term = loss::cross_entropy(logits, targets).front();
    sum_ += term.sum.item<double>();
    weight_ += term.weight;
  }
  std::unique_ptr<MetricSums> clone() const override { return std::make_unique<Perplexity>(*this); }
  double value() const override { return std::exp(sum_ / weight_); }

 private:
  Tokens tokens_;
  double sum_ = 0;
  double weight_ = 0;
};

class TokenAccuracy : public MetricSums {
 public:
  explicit TokenAccuracy(Tokens tokens) : tokens_(std::move(tokens)) {}

  void add(const Outputs& outputs, const MicroBatch& micro) override {
    const auto [logits, targets] = tokens_.counted(outputs, micro);
    const at::Tensor right = logits.argmax(1).eq(targets);
    share_.add(right, logits, at::ones_like(right));
  }
  std::unique_ptr<MetricSums> clone() const override { return std::make_unique<TokenAccuracy>(*this); }
  double value() const override { return share_.value(); }

 private:
  Tokens tokens_;
  Share share_;
};

}  // namespace

Metric perplexity(std::string labels, std::string mask) {
  const Tokens tokens("perplexity", std::move(labels), std::move(mask));
  return {.name = "perplexity", .open = [tokens] { return std::make_unique<Perplexity>(tokens); }};
}

Metric token_accuracy(std::string labels, std::string mask) {
  const Tokens tokens("accuracy", std::move(labels), std::move(mask));
  return {.name = "accuracy",
          .open = [tokens] { return std::make_unique<TokenAccuracy>(tokens); },
          .higher_is_better = true};
}

}  // namespace accrue::metric
