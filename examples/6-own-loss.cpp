// SPDX-License-Identifier: Apache-2.0
// A loss of your own with two terms, each with its own weight: a squared error on the labelled rows and a
// penalty on all rows. `weigh` tells both weights from the data, so that every split gives the same update.
#include <torch/nn/modules/linear.h>

#include <cstdio>

#include "accrue/accrue.h"

namespace {

accrue::Loss labelled_loss() {
  accrue::Loss loss;
  loss.name = "labelled squared error and output penalty";
  loss.terms = [](const accrue::Outputs& outputs, const accrue::MicroBatch& micro) -> accrue::LossTerms {
    const torch::Tensor labelled = micro["labelled"];  // [n, 1], 1 or 0
    const torch::Tensor error = (outputs.tensor() - micro["y"]).square() * labelled;
    return {{.name = "error", .sum = error.sum(), .weight = labelled.sum().item<double>()},
            {.name = "penalty",
             .sum = outputs.tensor().square().sum(),
             .weight = static_cast<double>(micro.size()),
             .coefficient = 0.01}};
  };
  loss.weigh = [](const accrue::Batch& batch) {
    return std::vector<double>{batch["labelled"].sum().item<double>(), static_cast<double>(batch.size())};
  };
  return loss;
}

}  // namespace

int main() {
  torch::manual_seed(1);
  const accrue::Batch batch({{"x", torch::randn({12, 5})},
                             {"y", torch::randn({12, 1})},
                             {"labelled", (torch::arange(12) % 5 < 2).to(torch::kFloat).unsqueeze(1)}});
  for (const int64_t micro_batch : {12, 5, 1}) {
    torch::manual_seed(2);
    torch::nn::Linear linear(5, 1);
    const accrue::Model model = accrue::adapt(linear);
    accrue::GradientBuffer gradients(model);
    accrue::Updater updater(gradients, accrue::Sgd{.lr = 0.1});
    accrue::SplitStep step(model, labelled_loss(), updater, {.micro_batch = micro_batch});
    const accrue::UpdateResult result = step(batch);
    std::printf("micro-batch %2lld: loss %.6f, gradient norm %.6f\n", static_cast<long long>(micro_batch),
                result.loss, result.grad_norm);
    for (const accrue::TermSum& term : result.terms) {
      std::printf("  %s: sum %.6f, weight %.0f, coefficient %.2f\n", term.name.c_str(), term.sum, term.weight,
                  term.coefficient);
    }
  }
}
