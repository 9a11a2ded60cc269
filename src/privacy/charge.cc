#include "privacy/charge.h"

#include <cmath>
#include <limits>

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

std::string_view Name(ParticipationMode mode) {
  switch (mode) {
    case ParticipationMode::kOnce:
      return "once";
    case ParticipationMode::kPoisson:
      return "poisson";
  }
  return "unknown";
}

std::string_view Name(MechanismKind kind, std::span<const MechanismRow> kinds) {
  return RowOf(kinds, kind).name;
}

bool Charge::Bounded() const {
  // These comparisons are false for NaN, so that NaN promises nothing.
  if (!(noise_multiplier > 0) || !(zcdp_rho >= 0) || std::isinf(zcdp_rho)) return false;
  return !std::isinf(noise_multiplier) || zcdp_rho > 0;
}

double Charge::MuSquared() const {
  if (!Bounded()) return std::numeric_limits<double>::infinity();
  return 1 / noise_multiplier / noise_multiplier;
}

}  // namespace tacit::privacy
