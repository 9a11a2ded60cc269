#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace tacit::privacy {

enum class EventKind : uint8_t {
  kGaussian,         // noise_multiplier: noise / sensitivity under the question's adjacency
  kPoissonGaussian,  // noise_multiplier: noise / clip norm; sampling_rate
  kLaplace,          // epsilon: sensitivity / noise parameter
  kPureDp,           // epsilon: any mechanism that is (epsilon, 0)-DP
  kZcdp,             // rho: any mechanism that is rho-zCDP
  kExponential,      // epsilon: exponential mechanism, that is epsilon-bounded-range
  kAllocation,       // noise_multiplier; steps, of which each unit is in one, drawn uniformly
  kKnownCoin,        // noise_multiplier; sampling_rate: observers know who was sampled
};

// The names of the event files: gaussian, poisson_gaussian, laplace, pure_dp, zcdp, exponential,
// allocation, known_coin_gaussian.
std::string_view Name(EventKind kind);
Result<EventKind> ParseEventKind(std::string_view name);

// One private query, without its count. All queries on one sampled batch are ONE event: Gaussians
// of multipliers s_1, s_2, ... on the same batch are one of (sum s_i^-2)^(-1/2). Fields that a kind
// does not use keep their defaults, so that equal events compare equal. A value.
struct Event {
  EventKind kind = EventKind::kGaussian;
  double noise_multiplier = 0;
  double sampling_rate = 1;
  double epsilon = 0;
  double rho = 0;
  uint64_t steps = 1;

  static Event Gaussian(double noise_multiplier);
  static Event PoissonGaussian(double noise_multiplier, double sampling_rate);
  static Event Laplace(double epsilon);
  static Event PureDp(double epsilon);
  static Event Zcdp(double rho);
  static Event Exponential(double epsilon);
  // A block of Gaussian steps. Each unit draws the one step it is in, of all of them alike,
  // under any draws and outputs of the others. A period of several blocks has this event for each.
  static Event Allocation(double noise_multiplier, uint64_t steps);
  // A Gaussian that has the unit with this probability, where the unit's coin shows in the output:
  // what is sampled costs its full price, and hiding among others earns nothing.
  static Event KnownCoin(double noise_multiplier, double sampling_rate);

  // Returns kInvalidArgument, naming the field, unless every field the kind uses is in its domain.
  // A noise multiplier of 0 is refused: no finite epsilon holds.
  Status Validate() const;
  friend auto operator<=>(const Event&, const Event&) = default;
};

// An event with its count. A value.
struct CountedEvent {
  Event event;
  uint64_t count = 1;
};

}  // namespace tacit::privacy
