#pragma once

#include <cstdint>
#include <string_view>

namespace tacit::privacy {

enum class Unit : uint8_t { kEvent = 1, kUser = 2 };
enum class Adjacency : uint8_t { kZeroOut = 1, kAddRemove = 2, kReplaceOne = 3 };
enum class ParticipationMode : uint8_t { kOnce = 1, kPoisson = 2 };
enum class MechanismKind : uint8_t {
  kNonPrivate = 0,
  kAdaFest = 1,
  kDpSgd = 2,
  kFest = 3,
  kAdaFestPlus = 4,
  kExponential = 5,
  kVocabulary = 6,  // a release of a noised histogram, beside the steps
  kCounts = 7,      // a step that is the release of a period's noised counts
};

std::string_view Name(Unit unit);
std::string_view Name(Adjacency adjacency);
std::string_view Name(ParticipationMode mode);
std::string_view Name(MechanismKind kind);

// What one step of a mechanism, or one release, costs the worst unit in it. All Gaussian queries on
// one batch are one Gaussian: noise_multiplier = (sum over queries of sigma^-2)^(-1/2). What is not
// Gaussian (one-shot Gumbel top-k) is charged by its zCDP beside it. A value.
struct Charge {
  MechanismKind mechanism = MechanismKind::kNonPrivate;
  // Of all Gaussian queries together; 0: unbounded, nothing is promised; infinite: there is none,
  // and zcdp_rho is all there is.
  double noise_multiplier = 0;
  double sigma_selection = 0;  // parts, for the record; 0: no such query
  double sigma_gradient = 0;
  double clip_selection = 0;
  double clip_gradient = 0;
  double sampling_rate = 1;  // probability that an eligible unit is in the step
  double sigma_clip = 0;     // noise of adaptive clipping's count query; 0: no such query
  double zcdp_rho = 0;  // of queries that no sampling amplifies (one-shot Gumbel top-k): charged in
                        // full at every step a unit is eligible for

  // Whether anything is promised: noise that is a number above 0, a rho that is finite and not
  // below 0, and at least one query among them.
  bool Bounded() const;
  // (sensitivity / noise)^2 of the Gaussian queries of a step the unit is surely in; infinite when
  // unbounded, 0 where there are none.
  double MuSquared() const;
  friend bool operator==(const Charge&, const Charge&) = default;
};

// How much of a learner's steps a unit is in at most, and what is one event: what is enforced where
// steps are cut, and what the ledger goes by.
struct Bounds {
  // Unit user: steps that a user is in, or eligible for, over the life of the learner. 0: no bound.
  uint64_t allowance = 0;
  uint64_t per_period = 0;    // unit user, `once`: of them in a period; for the record. 0: no bound
  uint64_t period_steps = 0;  // unit user, `poisson`: steps that a period counts for; else 0
  // A record with the event id of one among so many offsets before it is no record. 0: ids are not
  // looked at.
  uint64_t dedupe_window = 0;
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

}  // namespace tacit::privacy
