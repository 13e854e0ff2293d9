// SPDX-License-Identifier: Apache-2.0
// Sequences of different length: the mean of micro-batch means weighs a token of a short micro-batch more
// than one of a long one. Sums and counted tokens, divided once, do not.
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "accrue/accrue.h"

namespace {

constexpr int64_t kVocabulary = 11;
constexpr int64_t kLengths[] = {2, 3, 9, 12};  // tokens of each sequence; the first predicts nothing

struct Decoder {
  Decoder() {
    torch::manual_seed(7);
    embedding = torch::nn::Embedding(kVocabulary, 8);
    head = torch::nn::Linear(8, kVocabulary);
    model.name = "decoder";
    model.forward = [e = embedding, h = head](const accrue::MicroBatch& micro) mutable -> accrue::Outputs {
      return h->forward(e->forward(micro["input_ids"]));
    };
    model.parameters = [e = embedding, h = head] {
      return std::vector<accrue::NamedTensor>{
          {"embedding.weight", e->weight, {}}, {"head.weight", h->weight, {}}, {"head.bias", h->bias, {}}};
    };
  }
  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear head{nullptr};
  accrue::Model model;
};

/// Padded rows [4, 12] with a mask; padding counts nowhere.
accrue::Batch ragged_batch() {
  torch::manual_seed(8);
  const torch::Tensor ids = torch::randint(kVocabulary, {4, 12}, torch::kLong);
  const torch::Tensor mask = torch::zeros({4, 12}, torch::kLong);
  for (int64_t i = 0; i < 4; ++i) mask[i].narrow(0, 0, kLengths[i]).fill_(1);
  return accrue::Batch({{"input_ids", ids}, {"labels", ids}, {"attention_mask", mask}});
}

/// One update of lr 1 without momentum moves the head's weight by its gradient.
accrue::UpdateResult update(int64_t micro_batch, accrue::Reduction reduction, torch::Tensor& gradient) {
  Decoder decoder;
  accrue::GradientBuffer gradients(decoder.model);
  accrue::Updater updater(gradients, accrue::Sgd{.lr = 1});
  const torch::Tensor before = decoder.head->weight.detach().clone();
  accrue::SplitStep step(decoder.model, accrue::token_cross_entropy_loss(), updater,
                         {.micro_batch = micro_batch, .reduction = reduction});
  const accrue::UpdateResult result = step(ragged_batch());
  gradient = before - decoder.head->weight.detach();
  return result;
}

}  // namespace

int main() {
  torch::Tensor reference;
  const accrue::UpdateResult whole = update(4, accrue::Reduction::exact, reference);
  std::printf("whole batch: loss %.6f over %.0f counted tokens\n", whole.loss, whole.weight);
  for (const int64_t micro_batch : {2, 1}) {
    for (const auto reduction : {accrue::Reduction::exact, accrue::Reduction::micro_mean}) {
      torch::Tensor gradient;
      const accrue::UpdateResult result = update(micro_batch, reduction, gradient);
      const double error = ((gradient - reference).norm() / reference.norm()).item<double>();
      std::printf("micro-batches of %lld, %s: loss %.6f, gradient %s", static_cast<long long>(micro_batch),
                  reduction == accrue::Reduction::exact ? "one division " : "mean of means", result.loss,
                  error < 1e-6 ? "equal\n" : "");
      if (error >= 1e-6) std::printf("off by %.1f %%\n", 100 * error);
    }
  }
}
