#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "noise/noise.h"
#include "privacy/charge.h"
#include "privacy/ledger.h"
#include "store/types/delta.h"
#include "stream/steps/participation.h"
#include "train/quality/release_account.h"
#include "train/quality/window_counter.h"

namespace tacit::train {

// The breaker's name in the ledger and in the store. No learner can have it: their ids have no dot.
inline constexpr std::string_view kBreakerAccount = "source.halt_above";

// BreakerState is where the breaker stands. The store keeps it as a position: `step` is the number
// of windows that are decided, `next` where each partition's open window begins, and `period_step`
// 1 after a window that halted.
struct BreakerState {
  uint64_t windows = 0;
  bool halted = false;  // by the last of them
  std::vector<OffsetRange> next;

  static BreakerState Of(const stream::Position& position);
  stream::Position ToPosition() const;
  friend bool operator==(const BreakerState&, const BreakerState&) = default;
};

struct BreakerOptions {
  LearnerIndex index;   // its place in the store, behind the learners
  std::string topic;    // the source's, for the ledger
  double share = 0;     // of a window's records, above which the daemon halts
  uint64_t window = 0;  // offsets; 0: windows are the periods of a topic
  uint64_t least = 0;   // offsets of a window; of fewer the noise could decide by itself
  double noise_multiplier = 0;
  double epsilon = 0, delta = 0;  // what it may spend on a record
  BreakerState state = {};        // as of the store's last commit
  // The window whose halt the operator has looked into; 0: none.
  uint64_t past = 0;
};

// Stops learning when too many records of a window could not be learnt from (source.halt_above).
// Stopping is a release, since no version appears then, and no single record may decide it: a
// window's count gets Gaussian noise before it is compared, and is charged to an account of its
// own (ReleaseAccount). A window is decided once. Not thread-safe.
class Breaker {
 public:
  // REQUIRES a noise multiplier above 0.
  Breaker(BreakerOptions options, std::unique_ptr<noise::NoiseSource> noise);

  // The pending charges, and that of this window.
  std::vector<privacy::CommitCharge> ChargesWith(const WindowEnd& window) const {
    return account_.ChargesWith(window.ranges);
  }
  const std::vector<privacy::CommitCharge>& pending() const { return account_.pending(); }

  // Decides on a window, with noise that is drawn here and kept. True: nothing behind the window
  // may be learnt from.
  bool Decide(const WindowEnd& window);
  // Passes over a window that may not be charged: nothing is drawn and nothing decided.
  void PassOver(const WindowEnd& window);
  // Returns what the next commit has to hold; nothing if there is nothing new.
  std::optional<store::LearnerCommit> TakePending();

  bool halted() const { return state_.halted; }
  const BreakerState& state() const { return state_; }
  const BreakerOptions& options() const { return options_; }
  // Says to operators why nothing is learnt, and what to do. REQUIRES halted().
  std::string WhyHalted() const;

 private:
  void MoveOn(const WindowEnd& window);

  const BreakerOptions options_;
  const std::unique_ptr<noise::NoiseSource> noise_;
  ReleaseAccount account_;
  BreakerState state_;
  // The share of the window that halted in this run. Noised, and charged: it may be shown.
  std::optional<double> noised_share_;
};

}  // namespace tacit::train
