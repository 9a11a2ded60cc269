#include "privacy/charge.h"

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

std::string_view Name(MechanismKind kind) {
  switch (kind) {
    case MechanismKind::kNonPrivate:
      return "none";
    case MechanismKind::kAdaFest:
      return "adafest";
    case MechanismKind::kDpSgd:
      return "dp-sgd";
  }
  return "unknown";
}

double Charge::MuSquared() const {
  // A multiplier that is no positive number promises nothing.
  if (!(noise_multiplier > 0)) return std::numeric_limits<double>::infinity();
  return 1 / noise_multiplier / noise_multiplier;
}

}  // namespace tacit::privacy
