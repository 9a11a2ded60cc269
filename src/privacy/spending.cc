#include "privacy/spending.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/check.h"
#include "privacy/gaussian.h"
#include "privacy/pld.h"

namespace tacit::privacy {
namespace {

auto Setting(const Spending::Sampled& s) { return std::tie(s.noise_multiplier, s.sampling_rate); }

// The setting in an ascending list, or where it belongs.
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
  const bool bounded = charge.noise_multiplier > 0;
  if (!bounded || charge.sampling_rate >= 1) {
    spending.mu_squared = charge.MuSquared() * static_cast<double>(steps);
  } else {
    spending.sampled.push_back({charge.noise_multiplier, charge.sampling_rate, steps});
  }
  return spending;
}

void Spending::Add(const Spending& other) {
  mu_squared += other.mu_squared;
  for (const Sampled& more : other.sampled) {
    const auto place = Find(sampled, more);
    if (place != sampled.end() && Setting(*place) == Setting(more)) {
      place->count += more.count;
    } else {
      sampled.insert(place, more);
    }
  }
}

bool Spending::Covers(const Spending& other) const {
  if (mu_squared < other.mu_squared) return false;
  return std::all_of(other.sampled.begin(), other.sampled.end(),
                     [this](const Sampled& s) { return CountOf(*this, s) >= s.count; });
}

void Spending::EncodeTo(ByteWriter* out) const {
  out->Put(mu_squared).Put(static_cast<uint32_t>(sampled.size()));
  for (const Sampled& s : sampled) out->Put(s.noise_multiplier).Put(s.sampling_rate).Put(s.count);
}

bool Spending::Decode(ByteReader* in, Spending* spending) {
  constexpr size_t kBytesEach = 24;
  spending->mu_squared = in->Get<double>();
  const auto count = in->Get<uint32_t>();
  if (!(spending->mu_squared >= 0) || count > in->remaining() / kBytesEach) return false;
  spending->sampled.resize(count);
  for (size_t i = 0; i < count; ++i) {
    Sampled& s = spending->sampled[i];
    s.noise_multiplier = in->Get<double>();
    s.sampling_rate = in->Get<double>();
    s.count = in->Get<uint64_t>();
    const bool ascends = i == 0 || Setting(spending->sampled[i - 1]) < Setting(s);
    if (!ascends || s.count == 0 || !(s.noise_multiplier > 0) || std::isinf(s.noise_multiplier) ||
        !(s.sampling_rate > 0 && s.sampling_rate < 1))
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

EpsilonMeter::EpsilonMeter() = default;
EpsilonMeter::~EpsilonMeter() = default;
EpsilonMeter::EpsilonMeter(const EpsilonMeter&) {}
EpsilonMeter& EpsilonMeter::operator=(const EpsilonMeter&) {
  accountant_.reset();
  return *this;
}

// Adds what is missing, where what is there is a part of it. Gaussians are one event of the
// composed multiplier, so they must not have changed.
bool EpsilonMeter::Grow(const Spending& to) {
  const bool fits =
      accountant_ != nullptr && to.Covers(composed_) && to.mu_squared == composed_.mu_squared;
  if (!fits) {
    accountant_ = std::make_unique<PldAccountant>(Adjacency::kAddRemove);
    composed_ = {};
    if (to.mu_squared > 0) {
      const Event gaussian = Event::Gaussian(1 / std::sqrt(to.mu_squared));
      if (!accountant_->Add(gaussian, 1)) return false;
      composed_.mu_squared = to.mu_squared;
    }
  }
  for (const Spending::Sampled& s : to.sampled) {
    const uint64_t more = s.count - CountOf(composed_, s);
    if (more == 0) continue;
    if (!accountant_->Add(Event::PoissonGaussian(s.noise_multiplier, s.sampling_rate), more))
      return false;
  }
  composed_ = to;
  return true;
}

CertifiedInterval EpsilonMeter::Bounds(const Spending& spending, Delta delta) {
  if (spending.sampled.empty() || std::isinf(spending.mu_squared)) {
    const double exact = GaussianEpsilon(std::sqrt(spending.mu_squared), delta).value;
    return {exact, exact};
  }
  if (Grow(spending))
    if (const auto epsilon = accountant_->Epsilon(delta)) return *epsilon;
  accountant_.reset();
  return {0, std::numeric_limits<double>::infinity()};
}

}  // namespace tacit::privacy
