#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "model/gradient.h"
#include "model/histories.h"
#include "model/sequence/layout.h"
#include "model/sequence/logit_prior.h"
#include "model/sequence/unit_gradient.h"
#include "model/sequence/unit_rows.h"
#include "model/sequence/variance.h"
#include "ops/backend.h"

namespace tacit::model {

// The units of a step, as the model sees them. All workers call it at once.
class SequenceUnits {
 public:
  virtual ~SequenceUnits() = default;
  virtual size_t units() const = 0;
  // The unit's id, independent of the rest of the step: the unit's public coins follow from it.
  virtual uint64_t Id(size_t unit) const = 0;
  // The unit's work, about, in positions; decides which worker does it.
  virtual size_t Cost(size_t unit) const = 0;
  virtual void Rows(size_t unit, uint64_t coins, UnitRows* rows) const = 0;
};

// Chosen units of histories, cut into crops. Both must outlive it.
class HistoryUnits final : public SequenceUnits {
 public:
  // The first known[u] items of unit u's history (empty: none) are read and not predicted.
  HistoryUnits(const SequenceOptions& options, const Histories& histories,
               std::span<const uint64_t> chosen, std::span<const uint32_t> known = {})
      : options_(options), histories_(histories), chosen_(chosen), known_(known) {}

  size_t units() const override { return chosen_.size(); }
  uint64_t Id(size_t unit) const override { return histories_.IdOf(chosen_[unit]); }
  size_t Cost(size_t unit) const override;
  void Rows(size_t unit, uint64_t coins, UnitRows* rows) const override;

 private:
  const SequenceOptions& options_;
  const Histories& histories_;
  const std::span<const uint64_t> chosen_;
  const std::span<const uint32_t> known_;
};

// Next-item prediction over histories: item embeddings, an encoder (the transformer of paper 000),
// and a softmax over the catalogue whose rows are the embeddings themselves, unless they are
// untied. All parameters are one flat vector (SequenceLayout), so that optimisers, noise and
// commits need not know the layers.
//
// Each worker processes its units one at a time: forward, backward, norms, scale, sum, all while
// the unit is in the caches. A rule's Scales is therefore called for one unit at a time, from all
// workers at once. A unit whose norm is not finite adds nothing.
//
// Not thread-safe; one per trainer. Working memory grows to the largest unit, per worker.
class SequenceModel {
 public:
  // REQUIRES CheckOptions(options) and, if there is a prior, a softmax over the whole catalogue
  // with labels that are not smoothed. `backend` and `prior` must outlive the model.
  SequenceModel(const SequenceOptions& options, ops::Backend& backend,
                const LogitPrior* prior = nullptr);
  ~SequenceModel();

  const SequenceLayout& layout() const;

  // `seed` is the public source of a step's coins: dropout, random crops and negatives follow from
  // it. `noise` is that of the parameters, if it corrects attention. The sum is laid out as `map`
  // says, and norms are of what a unit adds to it.
  struct Step {
    uint64_t seed = 0;
    ParameterNoise noise = {};
    const SumMap* map = &kWholeGradient;
  };
  // Computes the sum over units of their gradients, each scaled by the rule; if the rule has a
  // grid, in its steps, each number of each unit rounded once. The norms include what rounding can
  // add to a unit.
  Status ClippedSum(std::span<const float> parameters, const SequenceUnits& units, const Step& step,
                    const ScaleRule& rule, SequenceSum* sum);

  // Scores every item as the one after each history and calls `take` once per history, from all
  // workers at once: take(i, scores, worker). `take` may change the scores. Nothing is dropped.
  using Take = std::function<void(size_t i, std::span<float> scores, size_t worker)>;
  Status Score(std::span<const float> parameters, const ParameterNoise& noise,
               std::span<const std::span<const uint32_t>> histories, const Take& take);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tacit::model
