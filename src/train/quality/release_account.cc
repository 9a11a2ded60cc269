#include "train/quality/release_account.h"

#include <cmath>
#include <utility>

#include "base/check.h"
#include "mechanism/grid.h"
#include "noise/declared.h"
#include "train/learner/position.h"

namespace tacit::train {

ReleaseAccount::ReleaseAccount(std::string name, LearnerIndex index, std::string topic,
                               privacy::MechanismKind mechanism, double noise_multiplier)
    : name_(std::move(name)),
      index_(index),
      topic_(std::move(topic)),
      charge_(ChargeOf(mechanism, noise_multiplier)) {
  TACIT_CHECK(noise_multiplier > 0, "counts are released with noise alone");
}

privacy::Charge ReleaseAccount::ChargeOf(privacy::MechanismKind mechanism,
                                         double noise_multiplier) {
  return {.mechanism = mechanism,
          .noise_multiplier = noise_multiplier,
          .sigma_selection = noise_multiplier,
          .clip_selection = 1};
}

std::vector<privacy::CommitCharge> ReleaseAccount::ChargesWith(
    std::span<const OffsetRange> window) const {
  std::vector<privacy::CommitCharge> charges = pending_;
  if (charges.empty())
    charges.push_back({.learner = name_, .charge = charge_, .topic = topic_, .ranges = {}});
  ++charges.back().steps;
  charges.back().ranges.insert(charges.back().ranges.end(), window.begin(), window.end());
  return charges;
}

std::vector<float> ReleaseAccount::Release(std::span<const OffsetRange> window,
                                           std::span<const uint64_t> counts,
                                           noise::NoiseSource& noise) {
  // A count is a multiple of the grid's step, with any noise.
  const mechanism::Grid grid = mechanism::MakeHistogramGrid(1, charge_.noise_multiplier);
  TACIT_CHECK(grid.step <= 1, "so much noise hides every window");
  std::vector<int64_t> sums;
  for (const uint64_t count : counts)
    sums.push_back(std::llround(static_cast<double>(count) / grid.step));
  std::vector<float> noised(counts.size());
  // A key lives for one window. A cloned machine then draws noise of its own, and what it had in
  // memory opens no window of before.
  noise.Rekey();
  const noise::Declaration declared(noise, {"window", 1 / grid.step});
  mechanism::Release(grid, 1, noise, sums, noised);
  noise.Rekey();
  pending_ = ChargesWith(window);
  return noised;
}

std::optional<store::LearnerCommit> ReleaseAccount::TakePending(const stream::Position& position) {
  if (pending_.empty()) return std::nullopt;
  return store::LearnerCommit{.learner = index_,
                              .position = EncodePosition(position),
                              .charges = std::exchange(pending_, {})};
}

}  // namespace tacit::train
