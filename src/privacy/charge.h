#pragma once

#include <cstdint>
#include <string_view>

namespace tacit::privacy {

enum class Unit : uint8_t { kEvent = 1, kUser = 2 };
enum class Adjacency : uint8_t { kZeroOut = 1, kAddRemove = 2, kReplaceOne = 3 };
enum class ParticipationMode : uint8_t { kOnce = 1, kPoisson = 2 };
enum class MechanismKind : uint8_t { kNonPrivate = 0, kAdaFest = 1, kDpSgd = 2 };

std::string_view Name(Unit unit);
std::string_view Name(Adjacency adjacency);
std::string_view Name(ParticipationMode mode);
std::string_view Name(MechanismKind kind);

// What one step of a mechanism costs the worst unit in it. All queries on one batch are one
// Gaussian: noise_multiplier = (sum over queries of sigma^-2)^(-1/2). A value.
struct Charge {
  MechanismKind mechanism = MechanismKind::kNonPrivate;
  double noise_multiplier = 0;  // of the step as a whole; 0: unbounded, nothing is promised
  double sigma_selection = 0;   // parts, for the record; 0: no such query
  double sigma_gradient = 0;
  double clip_selection = 0;
  double clip_gradient = 0;
  double sampling_rate = 1;  // probability that an eligible unit is in the step

  // (sensitivity / noise)^2 of a step the unit is surely in; infinite when unbounded.
  double MuSquared() const;
  friend bool operator==(const Charge&, const Charge&) = default;
};

}  // namespace tacit::privacy
