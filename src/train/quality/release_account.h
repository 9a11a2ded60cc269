#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "noise/noise.h"
#include "privacy/charge.h"
#include "privacy/ledger.h"
#include "store/types/delta.h"
#include "stream/steps/participation.h"

namespace tacit::train {

// An account of its own in ledger and store, for releases that are made beside the learners' steps:
// noised counts of windows of the stream. Each of a window's records moves one count, by at most
// one, so that a window costs it one Gaussian. A release is pending until the next commit takes
// it, together with the steps behind the window's end: both become visible together. After a crash
// before that commit the noise is drawn again; nobody saw the first draw. A value.
class ReleaseAccount {
 public:
  // `name` is in the ledger and in the store; no learner can have it: their ids have no dot.
  // `index`: its place in the store, behind the learners. `topic`: the source's, for the ledger.
  // REQUIRES a noise multiplier above 0.
  ReleaseAccount(std::string name, LearnerIndex index, std::string topic,
                 privacy::MechanismKind mechanism, double noise_multiplier);

  // Returns what a window of this noise costs each of its records.
  static privacy::Charge ChargeOf(privacy::MechanismKind mechanism, double noise_multiplier);

  const std::string& name() const { return name_; }
  double noise_multiplier() const { return charge_.noise_multiplier; }

  // The pending charges, and that of a window of these offsets. REQUIRES that no offset is in two
  // of them.
  std::vector<privacy::CommitCharge> ChargesWith(std::span<const OffsetRange> window) const;
  const std::vector<privacy::CommitCharge>& pending() const { return pending_; }

  // Charges a window, and returns its counts with noise, which is drawn here.
  std::vector<float> Release(std::span<const OffsetRange> window, std::span<const uint64_t> counts,
                             noise::NoiseSource& noise);
  // Returns what the next commit has to hold, with this position; nothing if nothing is new.
  std::optional<store::LearnerCommit> TakePending(const stream::Position& position);

 private:
  std::string name_;
  LearnerIndex index_;
  std::string topic_;
  privacy::Charge charge_;
  std::vector<privacy::CommitCharge> pending_;
};

}  // namespace tacit::train
