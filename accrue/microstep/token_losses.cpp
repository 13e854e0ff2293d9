// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "accrue/base/error.h"
#include "accrue/base/messages/microstep.h"
#include "accrue/data/shape_text.h"
#include "accrue/microstep/context.h"
#include "accrue/microstep/losses.h"
#include "accrue/microstep/next_tokens.h"

namespace accrue {
namespace {

void check_vocabulary(const NextTokens& tokens, int64_t vocabulary) {
  const int64_t* const targets = tokens.targets.const_data_ptr<int64_t>();
  const int64_t* const rows = tokens.rows.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < tokens.targets.numel(); ++i) {
    if (targets[i] < 0 || targets[i] >= vocabulary)
      fail(message::label_outside_vocabulary,
           {{"place", rows[i] + 1}, {"got", targets[i]}, {"vocabulary", vocabulary}});
  }
}

/// Cross entropy of the counted rows alone: work and memory beside the logits follow the supervised tokens.
LossTerms over_counted(const at::Tensor& logits, const NextTokens& tokens, double label_smoothing) {
  check_vocabulary(tokens, logits.size(-1));
  return loss::cross_entropy(counted_rows(logits, tokens), tokens.targets.to(logits.device()),
                             {.label_smoothing = label_smoothing});
}

/// The same where the logits are not made at all; in a micro-step the window makes the pass.
LossTerms over_counted(const DeferredLogits& logits, const NextTokens& tokens, double label_smoothing) {
  check_vocabulary(tokens, logits.shape.back());
  LossTerm term;
  term.weight = static_cast<double>(tokens.rows.numel());
  const MicroStepContext* const context = current_context();
  if (context != nullptr && context->for_window) {
    term.one_pass = logits.one_pass(tokens.rows, tokens.targets, label_smoothing, {});
  } else {
    term.sum = logits.cross_entropy(tokens.rows, tokens.targets, label_smoothing, {});
  }
  return {term};
}

void check_shapes(at::IntArrayRef logits, const at::Tensor& labels, const at::Tensor& mask) {
  const bool fit = logits.size() == 3 && logits.slice(0, 2) == labels.sizes() &&
                   (!mask.defined() || mask.sizes() == labels.sizes());
  if (fit) return;
  fail(message::token_shapes, {{"logits", shape_text(logits)},
                               {"labels", shape_text(labels)},
                               {"mask", mask.defined() ? shape_text(mask) : "none"}});
}

void check_segment_shapes(at::IntArrayRef logits, const at::Tensor& labels) {
  if (logits.size() == 2 && labels.dim() == 1 && logits[0] == labels.size(0)) return;
  fail(message::segment_shapes, {{"logits", shape_text(logits)}, {"labels", shape_text(labels)}});
}

}  // namespace

namespace loss {

LossTerms token_cross_entropy(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& mask,
                              double label_smoothing) {
  check_shapes(logits.sizes(), labels, mask);
  return over_counted(logits, next_tokens(labels, mask), label_smoothing);
}

int64_t count_targets(const at::Tensor& labels, const at::Tensor& mask) {
  return next_tokens(labels, mask).rows.numel();
}

LossTerms segment_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                std::span<const int64_t> offsets, double label_smoothing) {
  check_segment_shapes(logits.sizes(), labels);
  return over_counted(logits, next_tokens(labels, offsets), label_smoothing);
}

int64_t count_segment_targets(const at::Tensor& labels, std::span<const int64_t> offsets) {
  return next_tokens(labels, offsets).rows.numel();
}

double LossMask::ratio() const {
  return static_cast<double>(supervised) / static_cast<double>(real);
}

LossMask loss_mask(const at::Tensor& labels, const at::Tensor& mask) {
  if (labels.sizes() != mask.sizes()) {
    fail(message::token_shapes,
         {{"logits", "not given"}, {"labels", shape_text(labels)}, {"mask", shape_text(mask)}});
  }
  const at::Tensor shown = mask.ne(0);
  const at::Tensor supervised = labels.ne(kIgnoredLabel);
  return {.positions = labels.numel(),
          .real = shown.sum().item<int64_t>(),
          .supervised = supervised.sum().item<int64_t>(),
          .supervised_padding = supervised.logical_and(shown.logical_not()).sum().item<int64_t>()};
}

}  // namespace loss

Loss token_cross_entropy_loss(std::string labels, std::string mask) {
  Loss loss = next_token_loss(0, std::move(labels), std::move(mask));
  loss.name = "token_cross_entropy";
  return loss;
}

Loss next_token_loss(double label_smoothing, std::string labels, std::string mask) {
  return {
      .name = "next_token",
      .terms =
          [label_smoothing, labels, mask](const Outputs& outputs, const MicroBatch& micro) {
            const at::Tensor* const found = micro.is_ragged() ? nullptr : micro.fields().find(mask);
            const at::Tensor shown = found != nullptr ? *found : at::Tensor();
            if (micro.is_ragged()) {
              check_no_mask(micro, mask);
              check_segment_shapes(outputs.shape(), micro[labels]);
            } else {
              check_shapes(outputs.shape(), micro[labels], shown);
            }
            const NextTokens tokens = next_tokens(micro, labels, mask);
            return outputs.deferred() != nullptr ? over_counted(*outputs.deferred(), tokens, label_smoothing)
                                                 : over_counted(outputs.tensor(), tokens, label_smoothing);
          },
      .weigh =
          [labels, mask](const Batch& batch) {
            return std::vector<double>{static_cast<double>(next_tokens(batch, labels, mask).rows.numel())};
          }};
}

}  // namespace accrue
