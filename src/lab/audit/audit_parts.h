#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/siphash.h"

// The units that are learnt from in an audit of trained models, decided before anything is trained.
namespace tacit::lab {

enum class TrainedAudit {
  // A unit is a member, another, or one of those that a reference model learns from, by a keyed
  // hash of its id. All of the first two are guessed.
  kMembership,
  // All units are learnt from, except canaries with records of a wrong kind, each of which is in
  // the run by a fair coin of its own.
  kOneRun,
};

// The places of a source's units, by keyed hashes of their ids. Immutable; thread-safe.
class AuditParts {
 public:
  struct Place {
    bool learnt = false, scored = false;
    bool changed = false;  // its records have the wrong label, or drawn items, wherever it is
  };

  // `units` are those whose records can be scored, in any order. All others are learnt from in
  // every model. `canaries` is for kOneRun.
  AuditParts(TrainedAudit kind, uint64_t seed, uint64_t canaries, std::vector<uint64_t> units);

  bool scored(uint64_t unit) const;
  // The fair coin.
  bool member(uint64_t unit) const { return scored(unit) && (HashOf("coin", unit) & 1) == 1; }
  // In the records of the audited model, or in those of the reference model.
  Place PlaceIn(bool reference, uint64_t unit) const;
  // The drawn item (one of `items`) that a changed unit has in place of this one. A unit that had
  // this one twice has the drawn one twice.
  uint32_t DrawnFor(uint64_t unit, uint32_t item, uint32_t items) const;

 private:
  uint64_t HashOf(std::string_view what, uint64_t id) const;

  const TrainedAudit kind_;
  SipHash::Key key_{};
  std::vector<uint64_t> units_;  // ascending
  uint64_t first_no_canary_ = 0;
  bool all_canaries_ = true;
};

}  // namespace tacit::lab
