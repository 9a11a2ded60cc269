#include "wiring/restore/inspection_gap.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "wiring/restore/inspection.h"

namespace tacit::wiring {
namespace {

using Inspections = std::vector<double>;  // their noise multipliers

// The account's inspections as far as the furthest ledger goes, and one more by the witness.
Result<Inspections> PriceByLedger(const LearnerTrail& trail, Inspections of_ledger) {
  const store::WitnessedLearner& last = trail.last;
  if (last.steps > of_ledger.size() + 1 ||
      last.charged->charge != InspectionCharge(last.charged->charge.noise_multiplier))
    return Fail(ErrorCode::kRefused,
                fmt::format("account '{}': {} were made after the copy, each with a price of its "
                            "own, and only the last price is remembered: name a later checkpoint "
                            "or the damaged store with --remains, whose ledger has them",
                            last.name, Counted(last.steps - trail.copy.steps, "inspection")));
  if (last.steps > of_ledger.size()) of_ledger.push_back(last.charged->charge.noise_multiplier);
  return of_ledger;
}

Result<Inspections> PriceAll(const LearnerTrail& trail, const Inspections& of_copy) {
  const std::string& name = trail.last.name;
  if (trail.last.position) {
    auto all = DecodeInspections(*trail.last.position);
    if (all && all->size() == trail.last.steps) return *std::move(all);
  }
  return PriceByLedger(trail, trail.later ? InspectionsOf(name, trail.entries) : of_copy);
}

}  // namespace

Result<InspectionGap> FindInspectionGap(privacy::Unit unit, const LearnerTrail& trail,
                                        std::span<const privacy::LedgerEntry> entries_of_copy) {
  const std::string& name = trail.last.name;
  if (!trail.last.charged)
    return Fail(ErrorCode::kRefused,
                fmt::format("account '{}': its price after the copy is not remembered", name));
  const Inspections of_copy = InspectionsOf(name, entries_of_copy);
  TACIT_ASSIGN(const Inspections all, PriceAll(trail, of_copy));
  if (all.size() != trail.last.steps || all.size() <= of_copy.size() ||
      !std::ranges::equal(of_copy, std::span(all).first(of_copy.size())))
    return Fail(ErrorCode::kRefused,
                fmt::format("account '{}': the copy has {}, and there were {} in the end, of other "
                            "prices: these are two stores that went different ways",
                            name, Counted(of_copy.size(), "inspection"), trail.last.steps));
  for (const double noise_multiplier : all)
    if (!InspectionCharge(noise_multiplier).Bounded())
      return Fail(ErrorCode::kCorruption,
                  fmt::format("account '{}': an inspection with noise {}", name, noise_multiplier));
  InspectionGap found;
  TACIT_ASSIGN(found.layout, InspectionLayout(unit, trail.last.charged->delta, all));
  for (const double noise_multiplier : std::span(all).subspan(of_copy.size()))
    found.gap.charges.push_back({.learner = name,
                                 .charge = InspectionCharge(noise_multiplier),
                                 .steps = 1,
                                 .topic = {},
                                 .ranges = {}});
  found.gap.position = EncodeInspections(all);
  return found;
}

}  // namespace tacit::wiring
