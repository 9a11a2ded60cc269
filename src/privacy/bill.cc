#include "privacy/bill.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "privacy/mu.h"

namespace tacit::privacy {
namespace {

// Adds a range, joining it to the last one of its partition where they touch: of steps over all
// partitions of a topic, a commit lists a range a partition.
void AddRange(const OffsetRange& range, std::vector<OffsetRange>* ranges) {
  if (range.size() == 0) return;
  const auto last = std::find_if(ranges->rbegin(), ranges->rend(), [&](const OffsetRange& one) {
    return one.partition == range.partition;
  });
  if (last != ranges->rend() && last->end == range.begin) {
    last->end = range.end;
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
    if (step.opens_period && opening) BeginPeriod(step, *opening);
    Begin(charge);
  } else if (charges_.back().charge != charge) {
    Begin(charge);
  }
  if (charge.block_steps > 0) return AddOfBlock(step);
  CommitCharge& steps = charges_.back();
  ++steps.steps;
  if (step.whole_period) {
    steps.ranges.assign(step.ranges.begin(), step.ranges.end());
    steps.steps_per_offset = steps.steps;
  } else {
    for (const OffsetRange& range : step.ranges) AddRange(range, &steps.ranges);
  }
}

void Bill::BeginPeriod(const BilledStep& step, const Charge& opening) {
  Begin(opening);
  charges_.back().steps = 1;
  charges_.back().ranges.assign(step.ranges.begin(), step.ranges.end());
}

// The first step pays for all blocks of its period.
void Bill::AddOfBlock(const BilledStep& step) {
  CommitCharge& steps = charges_.back();
  TACIT_CHECK(step.whole_period && step.period_steps > 0 &&
                  step.period_steps % steps.charge.block_steps == 0,
              "blocks are those of a period");
  if (step.opens_period) {
    steps.steps = step.period_steps;
  } else {
    ++steps.paid_steps;
  }
  steps.steps_per_offset = steps.steps;
  steps.ranges.assign(step.ranges.begin(), step.ranges.end());
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
    const std::vector<CountedEvent> own = charge.charge.Events(charge.steps);
    events.insert(events.end(), own.begin(), own.end());
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
