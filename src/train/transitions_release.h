#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/worker_pool.h"
#include "model/histories.h"
#include "model/transitions/estimate.h"
#include "noise/noise.h"
#include "privacy/charge.h"

namespace tacit::train {

// The shaped count model as it was released, what it stands on, and what it cost: one charge for
// each query, all on the same units, so that together they are one Gaussian of mu^2 = sum of their
// MuSquared().
struct TransitionsRelease {
  std::unique_ptr<model::transitions::Buckets> buckets;
  std::unique_ptr<model::transitions::Prior> prior;
  std::unique_ptr<model::transitions::Estimate> estimate;
  std::vector<privacy::Charge> charges;

  double MuSquared() const;
};

// Carries out algorithms.md 11 on what units did: popularity, tables, three measurements, each a
// mechanism::UnitHistogram whose cells and scales follow from the catalogue and from what was
// released before. The composition is adaptive, and mu^2 never above the square of `mu`; an
// infinite mu is an experiment without privacy: no noise, every seen pair measured once, unbounded
// charges. `stage(share)` is told how far it is. `catalogue` and `workers` must outlive what is
// returned; `noise` is used on this thread. Refuses, as kInvalidArgument, a catalogue of another
// size than the histories', items that are not of it, and a mu so large or small that a query's
// noise leaves the grid.
Result<TransitionsRelease> ReleaseTransitions(const model::Histories& histories,
                                              const model::transitions::Catalogue& catalogue,
                                              const model::transitions::Options& options, double mu,
                                              noise::NoiseSource& noise, WorkerPool& workers,
                                              const std::function<void(double share)>& stage = {});

}  // namespace tacit::train
