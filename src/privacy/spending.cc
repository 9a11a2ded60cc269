// The notation is base/bytes.h's.
//     spending := mu_squared:f64 rho:f64 settings:u32 setting*settings
//     setting  := noise_multiplier:f64 sampling_rate:f64 count:u64 block_steps:u64
// A sampling rate below 0 says that the coins are known: its size is the rate.
// mu_squared is that of the Gaussian queries the unit was surely in, rho that of the queries
// charged by their zCDP. Settings of sampled steps ascend by noise multiplier, then by rate, then
// by the steps of a block (0: no blocks; else the count is of blocks, and the rate is one over it).
#include "privacy/spending.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>

#include "base/check.h"
#include "privacy/gaussian.h"
#include "privacy/infinity.h"
#include "privacy/pld.h"
#include "privacy/tradeoff.h"

namespace tacit::privacy {
namespace {

// A forged ledger may name counts that run over together: their sum stays at the most.
constexpr uint64_t kMostCounted = std::numeric_limits<uint64_t>::max();

auto Setting(const Spending::Sampled& s) {
  return std::tie(s.noise_multiplier, s.sampling_rate, s.block_steps, s.coins_known);
}

// The setting's place in an ascending list, or where to insert it.
template <class List>
auto Find(List& list, const Spending::Sampled& wanted) {
  return std::lower_bound(list.begin(), list.end(), wanted,
                          [](const auto& a, const auto& b) { return Setting(a) < Setting(b); });
}

uint64_t CountOf(const Spending& spending, const Spending::Sampled& setting) {
  const auto place = Find(spending.sampled, setting);
  const bool there = place != spending.sampled.end() && Setting(*place) == Setting(setting);
  return there ? place->count : 0;
}

}  // namespace

Spending Spending::Of(const Charge& charge, uint64_t steps) {
  Spending spending;
  if (steps == 0) return spending;
  const double times = static_cast<double>(steps);
  if (!charge.Bounded()) {
    spending.mu_squared = charge.MuSquared();
    return spending;
  }
  // Both parts are of one sampled batch: one query charges the step in full, the other by its
  // sampling. Adding them dominates the joint release; docs/internals/privacy.md shows why.
  spending.rho = charge.zcdp_rho * times;
  if (charge.sampling_rate >= 1) {
    spending.mu_squared = charge.MuSquared() * times;
  } else if (!std::isinf(charge.noise_multiplier)) {
    const uint64_t count = charge.block_steps > 0 ? charge.Blocks(steps) : steps;
    spending.sampled.push_back({charge.noise_multiplier, charge.sampling_rate, count,
                                charge.block_steps, charge.CoinsAreKnown()});
  }
  return spending;
}

void Spending::Add(const Spending& other) {
  mu_squared += other.mu_squared;
  rho += other.rho;
  for (const Sampled& more : other.sampled) {
    const auto place = Find(sampled, more);
    if (place != sampled.end() && Setting(*place) == Setting(more)) {
      place->count += std::min(more.count, kMostCounted - place->count);
    } else {
      sampled.insert(place, more);
    }
  }
}

Spending Difference(const Spending& more, const Spending& less) {
  Spending difference{.mu_squared = std::max(0.0, more.mu_squared - less.mu_squared),
                      .rho = std::max(0.0, more.rho - less.rho)};
  for (Spending::Sampled s : more.sampled) {
    for (const Spending::Sampled& had : less.sampled)
      if (had.SameSetting(s)) s.count -= std::min(s.count, had.count);
    if (s.count > 0) difference.sampled.push_back(s);
  }
  return difference;
}

Spending Scaled(const Spending& spending, double by) {
  Spending scaled{.mu_squared = spending.mu_squared * by, .rho = spending.rho * by};
  for (Spending::Sampled s : spending.sampled) {
    const double count = std::ceil(static_cast<double>(s.count) * by);
    s.count = count < 0x1p64 ? static_cast<uint64_t>(count) : kMostCounted;
    if (s.count > 0) scaled.sampled.push_back(s);
  }
  return scaled;
}

bool Spending::Covers(const Spending& other) const {
  if (!(mu_squared >= other.mu_squared) || !(rho >= other.rho)) return false;
  return std::all_of(other.sampled.begin(), other.sampled.end(),
                     [this](const Sampled& s) { return CountOf(*this, s) >= s.count; });
}

Event Spending::Sampled::event() const {
  if (coins_known) return Event::KnownCoin(noise_multiplier, sampling_rate);
  return block_steps > 0 ? Event::Allocation(noise_multiplier, block_steps)
                         : Event::PoissonGaussian(noise_multiplier, sampling_rate);
}

bool Spending::has_blocks() const {
  return std::ranges::any_of(sampled, [](const Sampled& s) { return s.block_steps > 0; });
}

void Spending::EncodeTo(ByteWriter* out) const {
  out->Put(mu_squared).Put(rho).Put(static_cast<uint32_t>(sampled.size()));
  for (const Sampled& s : sampled) {
    out->Put(s.noise_multiplier).Put(s.coins_known ? -s.sampling_rate : s.sampling_rate);
    out->Put(s.count).Put(s.block_steps);
  }
}

bool Spending::Decode(ByteReader* in, Spending* spending) {
  constexpr size_t kBytesEach = 32;
  spending->mu_squared = in->Get<double>();
  spending->rho = in->Get<double>();
  const auto count = in->Get<uint32_t>();
  if (!(spending->mu_squared >= 0) || !(spending->rho >= 0) || std::isinf(spending->rho) ||
      count > in->remaining() / kBytesEach)
    return false;
  spending->sampled.resize(count);
  for (size_t i = 0; i < count; ++i) {
    Sampled& s = spending->sampled[i];
    s.noise_multiplier = in->Get<double>();
    s.sampling_rate = in->Get<double>();
    s.coins_known = s.sampling_rate < 0;
    if (s.coins_known) s.sampling_rate = -s.sampling_rate;
    s.count = in->Get<uint64_t>();
    s.block_steps = in->Get<uint64_t>();
    const bool blocks_fit =
        s.block_steps == 0 ||
        (!s.coins_known && s.sampling_rate == Draw::Allocate(s.block_steps).rate);
    const bool ascends = i == 0 || Setting(spending->sampled[i - 1]) < Setting(s);
    if (!ascends || !blocks_fit || s.count == 0 || !(s.noise_multiplier > 0) ||
        std::isinf(s.noise_multiplier) || !(s.sampling_rate > 0 && s.sampling_rate < 1))
      return false;
  }
  return in->ok();
}

void InsertMaximal(Spending spending, std::vector<Spending>* maximal) {
  for (const Spending& other : *maximal)
    if (other.Covers(spending)) return;
  std::erase_if(*maximal, [&](const Spending& other) { return spending.Covers(other); });
  maximal->push_back(std::move(spending));
}

namespace {

// An accountant and its spending.
struct GrownAccount {
  Laws laws;  // may be null
  Spending composed;
  std::unique_ptr<PldAccountant> accountant;

  // Gaussians are one event of the composed multiplier, so they must be unchanged.
  bool MayBecome(const Spending& to) const {
    return accountant != nullptr && to.mu_squared == composed.mu_squared && to.Covers(composed);
  }

  // Adds the missing events; returns false if the accountant refuses one.
  bool Become(const Spending& to) {
    if (!MayBecome(to)) {
      accountant = std::make_unique<PldAccountant>(Adjacency::kAddRemove, laws);
      composed = {};
      if (to.mu_squared > 0 && !accountant->Add(Event::Gaussian(1 / std::sqrt(to.mu_squared)), 1))
        return false;
    }
    if (to.rho > composed.rho && !accountant->Add(Event::Zcdp(to.rho - composed.rho), 1))
      return false;
    for (const Spending::Sampled& s : to.sampled) {
      const uint64_t more = s.count - CountOf(composed, s);
      if (more > 0 && !accountant->Add(s.event(), more)) return false;
    }
    composed = to;
    return true;
  }
};

}  // namespace

// A composition and its last answers. A question near epsilon 0 would make the accountant's next
// bound of a far epsilon looser, so that the advantage has an accountant of its own.
struct EpsilonMeter::Composition {
  explicit Composition(const Laws& laws)
      : far{.laws = laws, .composed = {}, .accountant = {}},
        near{.laws = laws, .composed = {}, .accountant = {}} {}

  GrownAccount far, near;
  double delta = 0;
  CertifiedInterval bounds;
  double advantage = -1;  // below 0: nobody has asked for that of near's spending

  const Spending& composed() const { return far.composed; }
  bool MayBecome(const Spending& to) const { return far.MayBecome(to); }

  CertifiedInterval Ask(const Spending& spending, Delta at) {
    if (far.accountant != nullptr && far.composed == spending && delta == at.value) return bounds;
    if (far.Become(spending)) {
      if (const auto epsilon = far.accountant->Epsilon(at)) {
        delta = at.value;
        return bounds = *epsilon;
      }
    }
    far.accountant.reset();
    return {0, std::numeric_limits<double>::infinity()};
  }

  // Near epsilon 0 the curve takes a third of a second; here it takes milliseconds.
  double AskAdvantage(const Spending& spending, Delta at) {
    constexpr double kShareOfEpsilon = 1.0 / 24;
    const double epsilon = Ask(spending, at).upper;
    if (std::isinf(epsilon)) return 1;
    if (near.accountant != nullptr && near.composed == spending && advantage >= 0) return advantage;
    advantage = AdvantageAt(epsilon, at.value);
    const double beside = epsilon * kShareOfEpsilon;
    if (!near.Become(spending)) {
      near.accountant.reset();
    } else if (const auto of_beside = near.accountant->DeltaAt(beside)) {
      advantage = std::min(advantage, AdvantageAt(beside, of_beside->upper));
    }
    return advantage;
  }
};

EpsilonMeter::EpsilonMeter(Laws laws) : laws_(std::move(laws)) {}
EpsilonMeter::~EpsilonMeter() = default;
EpsilonMeter::EpsilonMeter(const EpsilonMeter&) {}
EpsilonMeter& EpsilonMeter::operator=(const EpsilonMeter& other) {
  if (this == &other) return *this;
  laws_.reset();
  compositions_.clear();
  return *this;
}

// Chooses the composition that has the answer, else one that can grow into it, else a new or the
// least recently used one.
EpsilonMeter::Composition& EpsilonMeter::Choose(const Spending& spending, double delta) {
  constexpr size_t kMost = 4;
  auto chosen = std::find_if(compositions_.begin(), compositions_.end(), [&](const auto& c) {
    return c->composed() == spending && c->delta == delta;
  });
  if (chosen == compositions_.end())
    chosen = std::find_if(compositions_.begin(), compositions_.end(),
                          [&](const auto& c) { return c->MayBecome(spending); });
  if (chosen == compositions_.end()) {
    if (compositions_.size() < kMost) compositions_.push_back(std::make_unique<Composition>(laws_));
    chosen = std::prev(compositions_.end());
  }
  std::rotate(compositions_.begin(), chosen, std::next(chosen));
  return *compositions_.front();
}

CertifiedInterval EpsilonMeter::Bounds(const Spending& spending, Delta delta) {
  if (!spending.bounded()) return {kInfinity, kInfinity};
  if (spending.gaussian()) {
    const double exact = GaussianEpsilon(std::sqrt(spending.mu_squared), delta).value;
    return {exact, exact};
  }
  return Choose(spending, delta.value).Ask(spending, delta);
}

double EpsilonMeter::Advantage(const Spending& spending, Delta delta) {
  if (!spending.bounded()) return 1;
  if (spending.gaussian()) return GaussianDelta(std::sqrt(spending.mu_squared), Epsilon(0)).value;
  return Choose(spending, delta.value).AskAdvantage(spending, delta);
}

}  // namespace tacit::privacy
