#include "privacy/charge.h"

#include <cmath>
#include <limits>

#include "base/check.h"

namespace tacit::privacy {

std::string_view Name(Unit unit) {
  switch (unit) {
    case Unit::kEvent:
      return "event";
    case Unit::kUser:
      return "user";
  }
  return "unknown";
}

std::string_view Name(Adjacency adjacency) {
  switch (adjacency) {
    case Adjacency::kZeroOut:
      return "zero-out";
    case Adjacency::kAddRemove:
      return "add-remove";
    case Adjacency::kReplaceOne:
      return "replace-one";
  }
  return "unknown";
}

std::string_view InWords(Adjacency adjacency, Unit unit) {
  const bool user = unit == Unit::kUser;
  switch (adjacency) {
    case Adjacency::kZeroOut:
      return user ? "streams that differ in the content of all records of one user, nulled in one "
                    "of them; how many records there are, and where, counts as known"
                  : "streams that differ in the content of one event, nulled in one of them; how "
                    "many events there are, and where, counts as known";
    case Adjacency::kAddRemove:
      return user ? "streams one of which lacks all records of one user"
                  : "streams one of which lacks one event";
    case Adjacency::kReplaceOne:
      return user ? "streams in which one user's records are another's"
                  : "streams in which one event is another";
  }
  return "unknown";
}

std::string_view Name(ParticipationMode mode) {
  switch (mode) {
    case ParticipationMode::kOnce:
      return "once";
    case ParticipationMode::kPoisson:
      return "poisson";
    case ParticipationMode::kAllocate:
      return "allocate";
  }
  return "unknown";
}

std::string_view Name(MechanismKind kind, std::span<const MechanismRow> kinds) {
  return RowOf(kinds, kind).name;
}

std::string_view NotCovered(MechanismKind kind, std::span<const MechanismRow> kinds) {
  for (const MechanismRow& row : kinds)
    if (row.kind == kind) return row.not_covered;
  return {};
}

bool Charge::Bounded() const {
  // These comparisons are false for NaN, so that NaN promises nothing.
  if (!(noise_multiplier > 0) || !(zcdp_rho >= 0) || std::isinf(zcdp_rho)) return false;
  return !std::isinf(noise_multiplier) || zcdp_rho > 0;
}

std::vector<CountedEvent> Charge::Events(uint64_t steps) const {
  TACIT_CHECK(Bounded(), "an unbounded charge is no event");
  std::vector<CountedEvent> events;
  if (steps == 0) return events;
  if (std::isfinite(noise_multiplier)) {
    if (sampling_rate == 1)
      events.push_back({Event::Gaussian(noise_multiplier), steps});
    else if (block_steps > 0)
      events.push_back({Event::Allocation(noise_multiplier, block_steps), Blocks(steps)});
    else if (CoinsAreKnown())
      events.push_back({Event::KnownCoin(noise_multiplier, sampling_rate), steps});
    else
      events.push_back({Event::PoissonGaussian(noise_multiplier, sampling_rate), steps});
  }
  if (zcdp_rho > 0) events.push_back({Event::Zcdp(zcdp_rho), steps});
  return events;
}

double Charge::MuSquared() const {
  if (!Bounded()) return std::numeric_limits<double>::infinity();
  return 1 / noise_multiplier / noise_multiplier;
}

}  // namespace tacit::privacy
