#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/kind_table.h"
#include "privacy/event.h"

namespace tacit::privacy {

enum class Unit : uint8_t { kEvent = 1, kUser = 2 };
inline constexpr Unit kLastUnit = Unit::kUser;
enum class Adjacency : uint8_t { kZeroOut = 1, kAddRemove = 2, kReplaceOne = 3 };
inline constexpr Adjacency kLastAdjacency = Adjacency::kReplaceOne;
enum class ParticipationMode : uint8_t { kOnce = 1, kPoisson = 2, kAllocate = 3 };
inline constexpr ParticipationMode kLastParticipationMode = ParticipationMode::kAllocate;
// Ledgers store these numbers, so that none of them ever changes.
enum class MechanismKind : uint8_t {
  kNonPrivate = 0,
  kAdaFest = 1,
  kDpSgd = 2,
  kFest = 3,
  kAdaFestPlus = 4,
  kExponential = 5,
  kVocabulary = 6,   // a release of a noised histogram, beside the steps
  kCounts = 7,       // a step that is the release of a period's noised counts
  kSums = 8,         // a step that is the release of a period's noised sums and counts
  kForward = 9,      // a step that shows the model noised representations, with clear labels
  kBreaker = 10,     // a release of the noised count of records that could not be learnt from
  kQuality = 11,     // a release of noised counts of predictions by what came of them
  kInspection = 12,  // a release of the noised counts by which a configuration was proposed
};
inline constexpr MechanismKind kLastMechanism = MechanismKind::kInspection;

// A charge of a mechanism stands for one of these.
enum class ChargeOf : uint8_t {
  kStep,           // the queries of a step, which its parts show
  kPeriodOpening,  // a period's histogram, or a choice by one, before the period's steps
  kPeriodCounts,   // all counts of a period
  kPeriodSums,     // all sums and counts of a period
  // The noised representation of each record in a step. What else the step does with a record, its
  // label, shows who was in it: coins count as known.
  kRepresentations,
  kWindowCount,   // the count of a window's records that could not be learnt from
  kWindowScores,  // the histogram of a window's predictions by what came of them
  // All counts of an inspection. Any record may have been among those looked at: it counts against
  // every record of the stream, in all files, topics and offsets.
  kInspectedCounts,
};

struct MechanismRow {
  MechanismKind kind;
  std::string_view name;
  ChargeOf charge_of = ChargeOf::kStep;
  // The part of a record that no epsilon covers, for people; if empty, it covers all.
  std::string_view not_covered = {};
};
inline constexpr MechanismRow kMechanisms[] = {
    {MechanismKind::kNonPrivate, "none"},
    {MechanismKind::kAdaFest, "adafest"},
    {MechanismKind::kDpSgd, "dp-sgd"},
    {MechanismKind::kFest, "fest"},
    {MechanismKind::kAdaFestPlus, "adafest+"},
    {MechanismKind::kExponential, "exponential"},
    {MechanismKind::kVocabulary, "vocabulary", ChargeOf::kPeriodOpening},
    {MechanismKind::kCounts, "counts", ChargeOf::kPeriodCounts},
    {MechanismKind::kSums, "sums", ChargeOf::kPeriodSums},
    {MechanismKind::kForward, "forward", ChargeOf::kRepresentations,
     "labels are not covered: a step learns from them as they are, so that they, and which records "
     "were in which step, count as known; epsilon is of features alone"},
    {MechanismKind::kBreaker, "breaker", ChargeOf::kWindowCount},
    {MechanismKind::kQuality, "quality", ChargeOf::kWindowScores},
    {MechanismKind::kInspection, "inspection", ChargeOf::kInspectedCounts}};
static_assert(CoversKinds(kMechanisms, kLastMechanism));

std::string_view Name(Unit unit);
std::string_view Name(Adjacency adjacency);
std::string_view Name(ParticipationMode mode);
// Says which streams are neighbours: "streams that differ in ...".
std::string_view InWords(Adjacency adjacency, Unit unit);
std::string_view Name(MechanismKind kind, std::span<const MechanismRow> kinds = kMechanisms);
// The part of a record that a charge of this mechanism does not cover, in words; empty if it
// covers all of it.
std::string_view NotCovered(MechanismKind kind, std::span<const MechanismRow> kinds = kMechanisms);

// The way in which a step takes its units out of those that are eligible for it. A value.
struct Draw {
  double rate = 1;  // the probability that a unit is in the step
  // 0: each step draws each unit by a coin of its own. Else the steps come in blocks of this many,
  // and each unit is in exactly one step of a block, each of them alike: `rate` is one over this.
  uint64_t block_steps = 0;
  bool known = false;  // a unit's coins count as known: its steps are not amplified

  static Draw Allocate(uint64_t block_steps) {
    return {.rate = 1 / static_cast<double>(block_steps), .block_steps = block_steps};
  }
};

// The cost of one step of a mechanism, or of one release, to the worst unit in it. All Gaussian
// queries on one batch are one Gaussian: noise_multiplier = (sum over queries of sigma^-2)^(-1/2).
// A query that is not Gaussian (one-shot Gumbel top-k) is charged separately by its zCDP. A value.
struct Charge {
  MechanismKind mechanism = MechanismKind::kNonPrivate;
  // All Gaussian queries together; 0: unbounded, nothing is promised; infinite: no such query, only
  // zcdp_rho.
  double noise_multiplier = 0;
  double sigma_selection = 0;  // parts, for the record; 0: no such query
  double sigma_gradient = 0;
  double clip_selection = 0;
  double clip_gradient = 0;
  double sampling_rate = 1;  // probability that an eligible unit is in the step
  // The steps come in blocks of this many, in one of which a unit is (Draw). 0: they do not. Such
  // steps are charged in whole blocks, all of a period when it begins.
  uint64_t block_steps = 0;
  double sigma_clip = 0;  // noise of adaptive clipping's count query; 0: no such query
  double zcdp_rho = 0;    // queries that no sampling amplifies (one-shot Gumbel top-k), charged in
                          // full at every step a unit is eligible for

  // Checks that the charge promises something: a noise multiplier above 0, a finite rho of at least
  // 0, and at least one query.
  bool Bounded() const;
  // True if steps that sample let see whom: they are not amplified.
  bool CoinsAreKnown() const { return mechanism == MechanismKind::kForward; }
  // (sensitivity / noise)^2 of the Gaussian queries of a step that surely has the unit; infinite
  // when unbounded, 0 if there are none.
  double MuSquared() const;
  // Blocks that these steps come to; the last one counts as soon as it has begun. REQUIRES blocks.
  uint64_t Blocks(uint64_t steps) const {
    return steps / block_steps + (steps % block_steps > 0 ? 1 : 0);
  }
  // The events that this many steps are to a unit that is eligible for each. REQUIRES Bounded().
  std::vector<CountedEvent> Events(uint64_t steps) const;
  friend bool operator==(const Charge&, const Charge&) = default;
};

// Limits on a unit's part in a learner's steps, and on copies of an event. They are enforced where
// steps are cut, and the ledger relies on them.
struct Bounds {
  // Unit user: steps that a user is in, or eligible for, over the life of the learner. 0: no bound.
  uint64_t allowance = 0;
  uint64_t per_period = 0;  // unit user, `once`: steps per period; for the record. 0: no bound
  // Held periods: steps counted per period; 0 for unit event where steps do not come in blocks.
  uint64_t period_steps = 0;
  // A record is a copy if this many offsets before it hold its event id; copies do not count. 0:
  // ids are not compared.
  uint64_t dedupe_window = 0;
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

}  // namespace tacit::privacy
