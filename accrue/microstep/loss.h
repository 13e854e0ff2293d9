// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <typeinfo>
#include <vector>

#include "accrue/microstep/model.h"

namespace accrue {

/// One additive part of a loss: the plain sum over the micro-batch and what it is to be divided by, both from
/// the same mask. The loss of a batch is the sum over terms of coefficient * (sum of sums) / (sum of
/// weights).
struct LossTerm {
  std::string name = "loss";
  at::Tensor sum;     ///< 0-dim, with the graph; undefined where `one_pass` is there
  double weight = 0;  ///< samples, elements or counted tokens; never negative
  double coefficient = 1;
  /// The sum counts even where this micro-batch's weight is zero (label smoothing over classes of weight
  /// zero); else such a term is left out.
  bool adds_without_weight = false;
  /// In a micro-step whose terms go to `Window::add` (MicroStepContext::for_window), instead of `sum`.
  std::optional<OnePass> one_pass = {};

  /// Whether the sum enters the window's.
  bool counts() const noexcept { return weight > 0 || adds_without_weight; }
};

using LossTerms = std::vector<LossTerm>;

/// How the micro-batches of a window are put together.
enum class Reduction {
  exact,       ///< one division by the weight of the whole batch
  micro_mean,  ///< mean over micro-batches of their means: reproduces runs of other tools, wrong for uneven
               ///< ones
};

/// What a loss of one term is, for those who compute it without a graph.
struct KnownLoss {
  enum class Kind { mse, cross_entropy };
  Kind kind = Kind::mse;
  std::string target = {};     ///< the field: the prediction's elements, or class numbers [n]
  double label_smoothing = 0;  ///< cross_entropy
  /// The target may have any shape with as many elements, and mse takes it in the prediction's type; else it
  /// has the prediction's shape, or [n].
  bool takes_any_shape = false;
  /// The type of what `Loss::terms` holds, so that terms that somebody puts in its place are not passed over.
  const std::type_info* made_for = nullptr;
};

/// A loss as the engine uses it.
struct Loss {
  std::string name = "loss";
  /// The terms of one micro-batch.
  std::function<LossTerms(const Outputs&, const MicroBatch&)> terms = {};
  /// The weight of each term of a whole batch if the data alone tell it, else empty. With several terms every
  /// weight must be known before the window's first backward.
  std::function<std::vector<double>(const Batch&)> weigh = {};
  /// What `terms` computes, where it is one of the known losses; see `known_of`.
  std::optional<KnownLoss> known = {};
};

/// Fills `loss.known`, whose terms are set already.
void set_known(Loss& loss, KnownLoss known);
/// `loss.known`, if its terms are still those that it was filled for; else null.
const KnownLoss* known_of(const Loss& loss) noexcept;

/// A term from a mean over `count` samples, elements or tokens, for a user's loss that reduces by mean.
/// Throws ArgumentError for a count that is not finite or negative, or a mean that is not 0-dim.
LossTerm from_mean(const at::Tensor& mean, double count);

/// The loss of these terms alone, 0-dim with the graph: the sum over terms of coefficient * sum / weight. For
/// losses outside a window. A term without weight is left out; throws DataError if no term has any (nothing
/// supervised). Inside a window such a micro-batch simply adds nothing.
at::Tensor mean_of(const LossTerms& terms);

/// Adds the weight of each term of `part`, where the data alone tell it, to the sums over the parts before it
/// (empty at first). Throws ArgumentError if `loss` weighs another number of terms than there.
void add_weights(std::vector<double>& sums, const Loss& loss, const Batch& part);

/// All weights of `terms` as numbers, checked: finite, not negative, a defined 0-dim sum, unique names.
/// Throws ArgumentError that names the term.
void check_terms(const LossTerms& terms);

}  // namespace accrue
