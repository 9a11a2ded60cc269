#include "privacy/spent_path.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tacit::privacy {
namespace {

// The steps of a run that its gain pays for, at least one. Blocks are paid for as they begin.
uint64_t StepsPaid(const LedgerEntry& run, const Spending& gain) {
  const Charge& charge = run.charge;
  double paid = 1;
  if (charge.block_steps == 0 && charge.Bounded()) {
    if (charge.sampling_rate < 1)
      paid = static_cast<double>(gain.SampledSteps());
    else if (charge.MuSquared() > 0)
      paid = std::round(gain.mu_squared / charge.MuSquared());
    if (charge.zcdp_rho > 0) paid = std::max(paid, std::round(gain.rho / charge.zcdp_rho));
  }
  return static_cast<uint64_t>(std::clamp(paid, 1.0, static_cast<double>(run.steps)));
}

// Keeps about `most` of the moments, the first and the last among them.
void Thin(size_t most, std::vector<SpentMoment>* path) {
  if (path->size() <= most) return;
  std::vector<SpentMoment> kept;
  for (size_t i = 0; i < most; ++i)
    kept.push_back(std::move((*path)[i * (path->size() - 1) / (most - 1)]));
  *path = std::move(kept);
}

}  // namespace

std::vector<SpentMoment> SpentPath(std::span<const LedgerEntry> entries, std::string_view learner,
                                   size_t most) {
  most = std::max<size_t>(most, 2);
  const LearnerNames names(entries);
  std::vector<const LedgerEntry*> runs;
  for (const LedgerEntry& entry : entries)
    if (!entry.is_growth && names.Now(entry.learner) == learner) runs.push_back(&entry);
  std::vector<SpentMoment> path;
  Spending before;
  uint64_t steps = 0;
  for (const LedgerEntry* run : runs) {
    const Spending gain = Difference(run->worst, before);
    if (run->steps > 0 && !gain.empty() && run->worst.bounded()) {
      const uint64_t paid = StepsPaid(*run, gain);
      const uint64_t shown = std::clamp<uint64_t>(most / runs.size(), 1, paid);
      const auto span = static_cast<double>(run->last_time_ms - run->first_time_ms);
      const auto gaps = static_cast<double>(std::max<uint64_t>(1, run->steps - 1));
      for (uint64_t i = 1; i <= shown; ++i) {
        const uint64_t done = paid * i / shown;
        const auto step = static_cast<double>(done);
        SpentMoment moment{.time_ms = run->first_time_ms +
                                      static_cast<int64_t>(std::floor(span * (step - 1) / gaps)),
                           .steps = steps + done,
                           .worst = before};
        moment.worst.Add(Scaled(gain, step / static_cast<double>(paid)));
        path.push_back(std::move(moment));
      }
    }
    steps += run->steps;
    before = run->worst;
    // Exactly what the ledger says, at its time.
    if (!path.empty() && path.back().time_ms == run->last_time_ms) path.pop_back();
    path.push_back({.time_ms = run->last_time_ms, .steps = steps, .worst = before});
  }
  Thin(most, &path);
  return path;
}

Spending SpentAt(std::span<const SpentMoment> path, int64_t time_ms) {
  const auto after = std::ranges::upper_bound(path, time_ms, {}, &SpentMoment::time_ms);
  return after == path.begin() ? Spending() : std::prev(after)->worst;
}

}  // namespace tacit::privacy
