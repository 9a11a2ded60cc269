#include "privacy/pld.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "privacy/gaussian.h"
#include "privacy/infinity.h"
#include "privacy/pld/allocation_book.h"
#include "privacy/pld/composition.h"

namespace tacit::privacy {
namespace {

using pld::Composition;
using pld::Direction;
using pld::kLeastDelta;

constexpr double kLeastSampledSigma = 0.05, kLeastAllocatedSigma = 0.2;
// The square of much more noise is no number, so that no lattice has a law for it.
constexpr double kMostSampledSigma = 1e100;
// An allocation's law may have cells in proportion to the noise and to the root of the steps. Ten
// times as much noise as this took all memory there was.
constexpr double kMostAllocatedSigma = 1e3;
// An allocation's law may cut off this share of delta, over all events.
constexpr double kTailShare = 1e-6;
// Relative accuracy of OneEventDelta. Rounding moves the loss of much noise by a share of it.
double OneEventAccuracy(const Event& event) {
  return std::clamp(1e-14 * event.noise_multiplier, 1e-8, 0.5);
}
// Until the number of events has grown by this factor, a direction that could not be ruled out is
// not tried again.
constexpr double kRetryGrowth = 1.1;

// mu^2 of an event that is Gaussian in every direction, else nothing.
std::optional<double> GaussianMuSquared(const Event& event, Adjacency adjacency) {
  const double ratio = 1 / event.noise_multiplier;
  if (event.kind == EventKind::kGaussian ||
      (event.kind == EventKind::kKnownCoin && event.sampling_rate == 1))
    return ratio * ratio;
  const bool in_full = (event.kind == EventKind::kPoissonGaussian && event.sampling_rate == 1) ||
                       (event.kind == EventKind::kAllocation && event.steps == 1);
  if (!in_full) return std::nullopt;
  return (adjacency == Adjacency::kReplaceOne ? 4 : 1) * ratio * ratio;
}

bool IsSymmetric(const Event& event) {
  return event.kind != EventKind::kPoissonGaussian && event.kind != EventKind::kAllocation;
}

// The tail for a question of this delta: a power of 100, so that questions nearby share their laws.
double TailFor(double delta, double count) {
  const double share = std::log(kTailShare * delta / count) / std::log(100);
  return std::max(pld::kLeastTail, std::pow(100, std::floor(share)));
}

std::vector<Direction> DirectionsOf(Adjacency adjacency, bool symmetric) {
  if (adjacency == Adjacency::kReplaceOne) return {Direction::kReplace};
  if (symmetric) return {Direction::kRemove};
  return {Direction::kRemove, Direction::kAdd};
}

// delta(epsilon) of one event made once, from the laws of its directions.
class OneEvent {
 public:
  OneEvent(const Event& event, Adjacency adjacency, const pld::LawSource& source)
      : accuracy_(OneEventAccuracy(event)) {
    for (Direction direction : DirectionsOf(adjacency, IsSymmetric(event)))
      laws_.push_back(pld::MakeLossLaw(event, direction, source));
  }

  CertifiedInterval DeltaAt(double epsilon) const {
    return {DeltaBelow(epsilon) * (1 - accuracy_),
            std::min(1.0, DeltaAbove(epsilon) * (1 + accuracy_))};
  }
  // Returns kRefused where delta never falls so low.
  Result<CertifiedInterval> Epsilon(double delta) const {
    const auto lower =
        Root([&](double epsilon) { return DeltaBelow(epsilon) > delta * (1 + accuracy_); });
    const auto upper =
        Root([&](double epsilon) { return DeltaAbove(epsilon) > delta * (1 - accuracy_); });
    if (std::isinf(upper.second))
      return Fail(
          ErrorCode::kRefused,
          fmt::format("no epsilon up to {:g} holds for this event at this delta", kMostEpsilon));
    return CertifiedInterval{lower.first, upper.second};
  }

 private:
  double DeltaBelow(double epsilon) const {
    double delta = 0;
    for (const auto& law : laws_)
      delta = std::max(delta, pld::OneEventDelta(law->Below(), epsilon));
    return delta;
  }

  // Delta falls, so that its value at a lesser epsilon is a bound too. It is 0 beyond a greatest
  // loss alone: other laws end where doubles do.
  double DeltaAbove(double epsilon) const {
    double delta = 0;
    for (const auto& law : laws_) {
      const double most = law->Atom();
      if (most > 0 && epsilon >= most) continue;
      const double at = pld::OneEventDelta(*law, most > 0 ? epsilon : std::min(epsilon, kFarthest));
      delta = Worse(delta, std::max(at, std::numeric_limits<double>::min()));
    }
    return delta;
  }

  // The root of a falling delta(epsilon), between two numbers that are a relative 1e-12 apart; the
  // second is infinite where it never falls so low.
  template <class Above>
  static std::pair<double, double> Root(Above above) {
    if (!above(0)) return {0, 0};
    double low = 0, high = 1e-9;
    while (above(high)) {
      if (high > kMostEpsilon) return {high, kInfinity};
      low = high;
      high *= 4;
    }
    while (high - low > 1e-12 * high) {
      const double middle = low + (high - low) / 2;
      (above(middle) ? low : high) = middle;
    }
    return {low, high};
  }

  static constexpr double kMostEpsilon = 1e6;
  // Beyond this e^epsilon is no number soon.
  static constexpr double kFarthest = 690;
  const double accuracy_;
  std::vector<std::unique_ptr<pld::LossLaw>> laws_;
};

}  // namespace

struct PldAccountant::State {
  State(Adjacency of, Laws given)
      : adjacency(of), laws(given != nullptr ? std::move(given) : MakeLaws()) {}

  Adjacency adjacency;
  const Laws laws;  // outlive the compositions below
  std::map<Event, uint64_t> events;
  std::vector<CountedEvent> waiting;  // events that the compositions do not have yet
  double count = 0;
  bool symmetric = true;  // both directions are equal for every event
  bool gaussian = true;   // all events are Gaussians
  double mu_squared = 0;
  std::optional<Composition> main;   // kRemove, or kReplace
  std::optional<Composition> other;  // kAdd, once it differs
  double tried_at = 0;               // number of events when `other` could not be ruled out
  std::optional<OneEvent> alone;     // the only event's laws, once DeltaAt was asked of it

  // The only event, if it was made once and has a closed form; else null.
  const Event* Single() const {
    if (events.size() != 1 || events.begin()->second != 1) return nullptr;
    const Event& event = events.begin()->first;
    return event.kind == EventKind::kZcdp ? nullptr : &event;
  }

  void Charge(const Event& event, uint64_t times) {
    uint64_t& made = events[event];
    made += std::min(times, std::numeric_limits<uint64_t>::max() - made);
    alone.reset();
    const double number = static_cast<double>(times);
    count += number;
    const std::optional<double> mu = GaussianMuSquared(event, adjacency);
    gaussian = gaussian && mu;
    mu_squared += mu.value_or(0) * number;
    symmetric = symmetric && (adjacency == Adjacency::kReplaceOne || IsSymmetric(event));
    waiting.push_back({event, times});
  }

  // Brings the compositions up to date. Their laws take time, which answers in closed form need
  // not.
  void Compose() {
    const bool differs = !symmetric && !other;
    if (differs) {
      // The directions differ from here on: `other` starts with all events.
      other.emplace(Direction::kAdd, pld::LawSource{laws.get(), pld::kLeastTail});
      for (const auto& [known, times] : events) other->Add(known, static_cast<double>(times));
    }
    for (const auto& [event, times] : waiting) {
      main->Add(event, static_cast<double>(times));
      if (other && !differs) other->Add(event, static_cast<double>(times));
    }
    waiting.clear();
  }

  // Checks that `other` is certainly not above delta at this epsilon.
  Result<bool> OtherIsBelow(double epsilon, double log_delta) {
    if (count < kRetryGrowth * tried_at) return false;
    for (bool afresh : {false, true}) {
      TACIT_ASSIGN(const double bound, other->ChernoffLogDelta(epsilon, afresh));
      if (bound <= log_delta) return true;
    }
    tried_at = count;
    return false;
  }
};

Laws MakeLaws() { return std::make_shared<pld::AllocationBook>(); }

PldAccountant::PldAccountant(Adjacency adjacency, Laws laws)
    : state_(std::make_unique<State>(adjacency, std::move(laws))) {
  state_->main.emplace(
      adjacency == Adjacency::kReplaceOne ? Direction::kReplace : Direction::kRemove,
      pld::LawSource{state_->laws.get(), pld::kLeastTail});
}
PldAccountant::~PldAccountant() = default;
PldAccountant::PldAccountant(PldAccountant&&) noexcept = default;
PldAccountant& PldAccountant::operator=(PldAccountant&&) noexcept = default;

Status PldAccountant::Add(const Event& event, uint64_t count) {
  TACIT_RETURN_IF_ERROR(event.Validate());
  const bool samples =
      event.kind == EventKind::kPoissonGaussian || event.kind == EventKind::kKnownCoin;
  if (samples && event.sampling_rate < 1 && event.noise_multiplier < kLeastSampledSigma)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("noise_multiplier of a sampled Gaussian must be at least {} (got {})",
                            kLeastSampledSigma, event.noise_multiplier));
  if (samples && event.sampling_rate < 1 && event.noise_multiplier > kMostSampledSigma)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("noise_multiplier of a sampled Gaussian must be at most {} (got {})",
                            kMostSampledSigma, event.noise_multiplier));
  if (event.kind == EventKind::kAllocation) {
    if (state_->adjacency == Adjacency::kReplaceOne)
      return Fail(ErrorCode::kInvalidArgument,
                  "an allocation is accounted for under add-or-remove alone, not replace-one");
    if (event.steps > 1 && event.noise_multiplier < kLeastAllocatedSigma)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("noise_multiplier of an allocation must be at least {} (got {})",
                              kLeastAllocatedSigma, event.noise_multiplier));
    if (event.steps > 1 && event.noise_multiplier > kMostAllocatedSigma)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("noise_multiplier of an allocation must be at most {} (got {})",
                              kMostAllocatedSigma, event.noise_multiplier));
  }
  if (count > 0) state_->Charge(event, count);
  return {};
}

Result<CertifiedInterval> PldAccountant::Epsilon(Delta delta) {
  TACIT_CHECK(delta.value > 0 && delta.value < 1, "delta must be in (0, 1)");
  State& state = *state_;
  if (state.gaussian) {
    const double epsilon = GaussianEpsilon(std::sqrt(state.mu_squared), delta).value;
    return CertifiedInterval{epsilon * (1 - 1e-9), epsilon};
  }
  if (delta.value < kLeastDelta)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("delta must be at least {} (got {})", kLeastDelta, delta.value));
  if (const Event* single = state.Single()) {
    return OneEvent(*single, state.adjacency, {state.laws.get(), TailFor(delta.value, 1)})
        .Epsilon(delta.value);
  }
  state.Compose();
  const double log_delta = std::log(delta.value);
  TACIT_ASSIGN(pld::Interval interval, state.main->Epsilon(log_delta));
  if (state.other) {
    TACIT_ASSIGN(const bool below, state.OtherIsBelow(interval.upper, log_delta));
    if (!below) {
      TACIT_ASSIGN(const pld::Interval other, state.other->Epsilon(log_delta, interval.lower));
      interval.lower = std::max(interval.lower, other.lower);
      interval.upper = std::max(interval.upper, other.upper);
    }
  }
  return CertifiedInterval{interval.lower, interval.upper};
}

Result<double> PldAccountant::UpperEpsilon(Delta delta) {
  State& state = *state_;
  if (!state.gaussian && state.Single() == nullptr && delta.value >= kLeastDelta) {
    state.Compose();
    const double log_delta = std::log(delta.value);
    TACIT_ASSIGN(const std::optional<double> upper, state.main->CheapUpper(log_delta));
    if (upper) {
      if (!state.other) return *upper;
      TACIT_ASSIGN(const bool below, state.OtherIsBelow(*upper, log_delta));
      if (below) return *upper;
    }
  }
  TACIT_ASSIGN(const CertifiedInterval interval, Epsilon(delta));
  return interval.upper;
}

Result<CertifiedInterval> PldAccountant::DeltaAt(double epsilon) {
  TACIT_CHECK(epsilon >= 0);
  State& state = *state_;
  if (state.gaussian) {
    // Delta is of the difference between epsilon / mu and mu / 2. Of large ones rounding would
    // decide it.
    const auto at = [&](double change) {
      const double mu = std::sqrt(state.mu_squared) * (1 + change);
      return GaussianDelta(mu, tacit::Epsilon(epsilon * (1 - change))).value;
    };
    // It is 0 of nothing alone: e^x is 0 for numbers that are above 0.
    const double least = state.mu_squared > 0 ? std::numeric_limits<double>::min() : 0;
    return CertifiedInterval{at(-0x1p-49) * (1 - 1e-9),
                             std::clamp(at(0x1p-49) * (1 + 1e-9), least, 1.0)};
  }
  if (const Event* single = state.Single()) {
    if (!state.alone)
      state.alone.emplace(*single, state.adjacency,
                          pld::LawSource{state.laws.get(), pld::kLeastTail});
    return state.alone->DeltaAt(epsilon);
  }
  state.Compose();
  TACIT_ASSIGN(pld::Interval interval, state.main->DeltaAt(epsilon));
  if (state.other) {
    TACIT_ASSIGN(const pld::Interval other, state.other->DeltaAt(epsilon));
    interval.lower = std::max(interval.lower, other.lower);
    interval.upper = std::max(interval.upper, other.upper);
  }
  return CertifiedInterval{interval.lower, interval.upper};
}

std::optional<double> PldAccountant::Mu() const {
  if (!state_->gaussian) return std::nullopt;
  return std::sqrt(state_->mu_squared);
}

Result<double> PldUpperEpsilon(std::span<const CountedEvent> events, Adjacency adjacency,
                               Delta delta, std::optional<PldHint>* hint, const Laws& laws) {
  TACIT_CHECK(delta.value > 0 && delta.value < 1, "delta must be in (0, 1)");
  const Laws used = laws != nullptr ? laws : MakeLaws();
  PldAccountant accountant(adjacency, used);
  double total = 0;  // as an integer it could run over, to that of a single event
  bool gaussian = true, symmetric = true;
  for (const auto& [event, count] : events) {
    TACIT_RETURN_IF_ERROR(accountant.Add(event, count));
    total += static_cast<double>(count);
    gaussian = gaussian && GaussianMuSquared(event, adjacency);
    symmetric = symmetric && IsSymmetric(event);
  }
  if (total <= 1 || gaussian) {
    TACIT_ASSIGN(const CertifiedInterval interval, accountant.Epsilon(delta));
    return interval.upper;
  }
  const double log_delta = std::log(delta.value);
  double greatest = 0;
  const pld::LawSource source{used.get(), TailFor(delta.value, total)};
  for (Direction direction : DirectionsOf(adjacency, symmetric)) {
    Composition composition(direction, source);
    for (const auto& [event, count] : events)
      if (count > 0) composition.Add(event, static_cast<double>(count));
    const bool first = direction != Direction::kAdd;
    if (!first) {
      TACIT_ASSIGN(const double bound, composition.ChernoffLogDelta(greatest, true));
      if (bound <= log_delta) continue;
    }
    std::optional<Composition::Hint> known;
    if (first && hint != nullptr && *hint)
      known = Composition::Hint{(*hint)->epsilon, (*hint)->slope};
    TACIT_ASSIGN(const double epsilon, composition.UpperEpsilon(log_delta, known));
    if (first && hint != nullptr) *hint = PldHint{known->epsilon, known->slope};
    greatest = std::max(greatest, epsilon);
  }
  return greatest;
}

Result<double> PldUpperEpsilon(const Event& event, uint64_t count, Adjacency adjacency, Delta delta,
                               std::optional<PldHint>* hint) {
  const CountedEvent counted{event, count};
  return PldUpperEpsilon(std::span(&counted, 1), adjacency, delta, hint);
}

double PldRoughEpsilon(const Event& event, uint64_t count, Adjacency adjacency, Delta delta) {
  const pld::Kind kind(event, DirectionsOf(adjacency, IsSymmetric(event)).front());
  pld::Counted counted{&kind, static_cast<double>(count)};
  pld::Cap({&counted, 1}, std::log(delta.value));
  return std::max(0.0, pld::SaddleForDelta({&counted, 1}, std::log(delta.value)).epsilon);
}

}  // namespace tacit::privacy
