#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/threads/worker_pool.h"
#include "model/histories.h"
#include "model/transitions/released_model.h"
#include "noise/noise.h"
#include "privacy/charge.h"

namespace tacit::train {

// The units' histories in one period of a stream. Of each unit's history, the first `known` items
// (empty: none) were learnt from in earlier periods; they serve only as the first items of pairs
// that lead into the period.
struct TransitionsPeriod {
  const model::Histories& histories;
  std::span<const uint32_t> known = {};

  size_t Known(size_t unit) const { return known.empty() ? 0 : known[unit]; }
};

// The cost of a period to a unit in it. All queries are on the same units, so that together they
// are one Gaussian. The charge is `whole`, that Gaussian of mu; `queries` add up to no more.
struct TransitionsCharge {
  privacy::Charge whole;
  std::vector<privacy::Charge> queries;

  // The sum of mu^2 over the queries.
  double MuSquared() const;
};

// Called with the share of the work that is done.
using TransitionsProgress = std::function<void(double share)>;

// Releases a period's counts, as docs/internals/model.md (Transitions) describes them: popularity
// (in a first period once or, where it hardly stands out, twice), tables and three measurements.
// Each is a mechanism::UnitHistogram whose cells and scales follow from the catalogue and from
// earlier releases, in this period or before. Adds the answers to the model. The composition is
// adaptive, and its mu^2 never exceeds the square of `mu`; an empty period is released and charged
// like any other. An infinite mu is an experiment without privacy: no noise, every seen pair
// measured once, unbounded charges. `noise` is used on the calling thread.
//
// Returns kInvalidArgument, with the model unchanged, for histories of a catalogue of another size
// than the model's, items outside it, more known items than items, a mu so large or small that a
// query's noise leaves the grid, and periods with noise after periods without.
Result<TransitionsCharge> ReleaseTransitionsPeriod(const TransitionsPeriod& period, double mu,
                                                   noise::NoiseSource& noise, WorkerPool& workers,
                                                   model::transitions::ReleasedModel* model,
                                                   const TransitionsProgress& progress = {});

}  // namespace tacit::train
