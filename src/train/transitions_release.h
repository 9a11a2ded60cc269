#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/worker_pool.h"
#include "model/histories.h"
#include "model/transitions/released_model.h"
#include "noise/noise.h"
#include "privacy/charge.h"

namespace tacit::train {

// What units did in one period of a stream, and what they had done before: of each unit's history
// the first `known` items (empty: none) were learnt from in earlier periods. They are nothing but
// what pairs may lead from into the period.
struct TransitionsPeriod {
  const model::Histories& histories;
  std::span<const uint32_t> known = {};

  size_t Known(size_t unit) const { return known.empty() ? 0 : known[unit]; }
};

// What a period costs a unit that is in it. Its queries are all on the same units, so that together
// they are one Gaussian: `whole`, of mu, is what is charged; `queries` add up to no more.
struct TransitionsCharge {
  privacy::Charge whole;
  std::vector<privacy::Charge> queries;

  // Of the queries.
  double MuSquared() const;
};

// Told how far it is.
using TransitionsProgress = std::function<void(double share)>;

// Carries out algorithms.md 11 on what units did in a period: popularity, tables, three
// measurements, each a mechanism::UnitHistogram whose cells and scales follow from the catalogue
// and from what was released before, in this period or an earlier one, and takes the answers into
// the model. The composition is adaptive, and mu^2 never above the square of `mu`; a period without
// anybody is released and charged like any other. An infinite mu is an experiment without privacy:
// no noise, every seen pair measured once, unbounded charges. `noise` is used on this thread.
//
// Refuses, as kInvalidArgument and with the model as it was, histories of a catalogue of another
// size than the model's, items that are not of it, more known items than there are, a mu so large
// or small that a query's noise leaves the grid, and periods with noise after periods without.
Result<TransitionsCharge> ReleaseTransitionsPeriod(const TransitionsPeriod& period, double mu,
                                                   noise::NoiseSource& noise, WorkerPool& workers,
                                                   model::transitions::ReleasedModel* model,
                                                   const TransitionsProgress& progress = {});

// One period that is all there is.
struct TransitionsRelease {
  std::unique_ptr<model::transitions::ReleasedModel> model;
  std::vector<privacy::Charge> charges;  // of the queries

  const model::transitions::Estimate& estimate() const { return model->estimate(); }
  double MuSquared() const;
};

// `catalogue` and `workers` must outlive what is returned.
Result<TransitionsRelease> ReleaseTransitions(const model::Histories& histories,
                                              const model::transitions::Catalogue& catalogue,
                                              const model::transitions::Options& options, double mu,
                                              noise::NoiseSource& noise, WorkerPool& workers,
                                              const TransitionsProgress& progress = {});

}  // namespace tacit::train
