#include "privacy/bill.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "privacy/mu.h"

namespace tacit::privacy {
namespace {

// Appends a range, joining it to the last one where they touch.
void AppendRange(const OffsetRange& range, std::vector<OffsetRange>* ranges) {
  if (range.size() == 0) return;
  if (!ranges->empty() && ranges->back().partition == range.partition &&
      ranges->back().end == range.begin) {
    ranges->back().end = range.end;
  } else {
    ranges->push_back(range);
  }
}

}  // namespace

bool Bill::EndsBefore(const BilledStep& step) const {
  return step.whole_period && !charges_.empty() &&
         (step.opens_period || !std::ranges::equal(charges_.back().ranges, step.ranges));
}

void Bill::Begin(const Charge& charge) {
  charges_.push_back({.learner = learner_, .charge = charge, .topic = topic_, .ranges = {}});
}

void Bill::Add(const BilledStep& step, const Charge& charge, const std::optional<Charge>& opening) {
  TACIT_CHECK(!EndsBefore(step), "a bill covers one period");
  if (charges_.empty()) {
    if (step.opens_period && opening) {
      Begin(*opening);
      charges_.back().steps = 1;
      charges_.back().ranges.assign(step.ranges.begin(), step.ranges.end());
    }
    Begin(charge);
  } else if (charges_.back().charge != charge) {
    Begin(charge);
  }
  CommitCharge& steps = charges_.back();
  ++steps.steps;
  if (step.whole_period) {
    steps.ranges.assign(step.ranges.begin(), step.ranges.end());
    steps.steps_per_offset = steps.steps;
  } else {
    for (const OffsetRange& range : step.ranges) AppendRange(range, &steps.ranges);
  }
}

void Bill::AddTo(Coverage* coverage) const {
  for (const CommitCharge& charge : charges_)
    coverage->Add(
        {charge.topic, charge.ranges, Spending::Of(charge.charge, charge.steps_per_offset)});
}

Spending Bill::Whole() const {
  Spending spending;
  for (const CommitCharge& charge : charges_)
    spending.Add(Spending::Of(charge.charge, charge.steps));
  return spending;
}

std::vector<CountedEvent> Bill::Events() const {
  std::vector<CountedEvent> events;
  for (const CommitCharge& charge : charges_) {
    TACIT_CHECK(charge.charge.Bounded(), "an unbounded charge is no event");
    const double noise = charge.charge.noise_multiplier;
    if (std::isfinite(noise))
      events.push_back({charge.charge.sampling_rate == 1
                            ? Event::Gaussian(noise)
                            : Event::PoissonGaussian(noise, charge.charge.sampling_rate),
                        charge.steps});
    if (charge.charge.zcdp_rho > 0)
      events.push_back({Event::Zcdp(charge.charge.zcdp_rho), charge.steps});
  }
  return events;
}

PeriodNoise DividePeriod(double mu, double opening_share, uint64_t steps) {
  TACIT_CHECK(mu > 0 && opening_share >= 0 && opening_share < 1 && steps > 0,
              "opening and steps both get some of mu^2");
  if (std::isinf(mu)) return {};
  const double each = std::sqrt(static_cast<double>(steps) / (1 - opening_share));
  PeriodNoise noise{.step = kMuMargin * each / mu};
  if (opening_share > 0) noise.opening = kMuMargin / (std::sqrt(opening_share) * mu);
  return noise;
}

}  // namespace tacit::privacy
