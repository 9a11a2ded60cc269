#include "audit/judgement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "audit/membership.h"
#include "audit/mu_bound.h"
#include "base/check.h"
#include "privacy/gaussian.h"
#include "privacy/pld.h"
#include "privacy/tradeoff.h"

namespace tacit::audit {
namespace {

using Events = std::span<const privacy::CountedEvent>;

// The account of these events, with this many times their noise.
Result<privacy::PldAccountant> AccountOf(Events events, double noise) {
  privacy::PldAccountant accountant(privacy::Adjacency::kAddRemove);
  for (privacy::CountedEvent counted : events) {
    counted.event.noise_multiplier *= noise;
    TACIT_RETURN_IF_ERROR(accountant.Add(counted.event, counted.count));
  }
  return accountant;
}

// A test of most right answers costs the whole error less this share. It is left to a test at
// rates of its own, which sees what is rare but telling.
constexpr double kShareOfRates = 0.2;

// The threshold above which most runs of the choice are told right: that of a likelihood ratio, 0,
// unless another one is clearly better on them.
double MostRight(std::vector<double> without, std::vector<double> with) {
  std::ranges::sort(without);
  std::ranges::sort(with);
  const auto share_above = [](const std::vector<double>& sorted, double at) {
    const auto above = sorted.end() - std::ranges::upper_bound(sorted, at);
    return static_cast<double>(above) / static_cast<double>(sorted.size());
  };
  std::vector<double> places = without;
  places.insert(places.end(), with.begin(), with.end());
  const double clearly = 3 / std::sqrt(static_cast<double>(with.size()));
  double best = 0, most = share_above(with, 0) - share_above(without, 0) + clearly;
  for (const double at : places) {
    const double right = share_above(with, at) - share_above(without, at);
    if (right > most) most = right, best = at;
  }
  return best;
}

// Finds the most noise that these rates leave possible, and what it costs.
Status ProveBySampling(Events events, JudgedRuns* judged) {
  if (judged->advantage_lower <= 0 && judged->found_lower <= judged->false_alarms_upper) return {};
  const auto refuted = [&](double noise) -> Result<bool> {
    TACIT_ASSIGN(privacy::PldAccountant accountant, AccountOf(events, noise));
    TACIT_ASSIGN(const privacy::TradeOff tradeoff, privacy::TradeOff::Of(accountant));
    TACIT_ASSIGN(const double missed, tradeoff.MissedAtLeast(judged->false_alarms_upper));
    if (1 - missed < judged->found_lower) return true;
    TACIT_ASSIGN(const double advantage, tradeoff.Advantage());
    return advantage < judged->advantage_lower;
  };
  TACIT_ASSIGN(judged->exceeds, refuted(1));
  // Far more noise is no charge any more, and half of it is far below one.
  constexpr double kMostNoise = 16;
  double low = judged->exceeds ? 0.5 : 1, high = judged->exceeds ? 1 : 1.1;
  while (!judged->exceeds) {
    if (high > kMostNoise) return {};
    const auto at_high = refuted(high);
    if (!at_high) return {};  // the accountant knows nothing of so small a cost
    if (*at_high) break;
    low = std::exchange(high, 1.3 * high);
  }
  constexpr double kNear = 1.01;
  while (high > kNear * low) {
    const double middle = std::sqrt(low * high);
    TACIT_ASSIGN(const bool at_middle, refuted(middle));
    (at_middle ? high : low) = middle;
  }
  TACIT_ASSIGN(privacy::PldAccountant accountant, AccountOf(events, high));
  TACIT_ASSIGN(const privacy::CertifiedInterval epsilon, accountant.Epsilon(Delta(judged->delta)));
  judged->proved_epsilon = epsilon.lower;
  judged->proved_mu = privacy::GaussianMu(Epsilon(epsilon.lower), Delta(judged->delta));
  return {};
}

void LookAtScores(const RunStatistics& runs, uint64_t from, JudgedRuns* judged) {
  std::vector<Score> scores;
  uint64_t id = 0;
  for (uint64_t i = from; i < runs.without.size(); ++i)
    scores.push_back({id++, runs.without[i], false});
  for (uint64_t i = from; i < runs.with.size(); ++i) scores.push_back({id++, runs.with[i], true});
  judged->area = AreaUnderCurve(scores);
  judged->found_1_in_100 = FoundAt(scores, 0.01);
  judged->found_1_in_1000 = FoundAt(scores, 0.001);
  judged->accuracy = BestAccuracy(scores);
}

void JudgeRates(const RunStatistics& runs, uint64_t runs_of_choice, double alpha,
                JudgedRuns* judged) {
  const auto chosen = [&](const std::vector<double>& all) {
    return std::vector<double>(all.begin(), all.begin() + static_cast<ptrdiff_t>(runs_of_choice));
  };
  const auto tally = [&](const std::vector<double>& all, const Threshold& threshold) {
    Tally counted;
    for (uint64_t i = runs_of_choice; i < all.size(); ++i) counted.Add(all[i], threshold);
    return counted;
  };
  const double of_rates = kShareOfRates * alpha;
  const Threshold rates = ChooseThreshold(chosen(runs.without), chosen(runs.with));
  const Tally found = tally(runs.with, rates), alarms = tally(runs.without, rates);
  judged->found_lower = RateLower(found.hits, found.runs, of_rates / 2);
  judged->false_alarms_upper = RateUpper(alarms.hits, alarms.runs, of_rates / 2);
  const Threshold most{.at = MostRight(chosen(runs.without), chosen(runs.with))};
  const Tally with = tally(runs.with, most), without = tally(runs.without, most);
  const uint64_t right = with.hits + (without.runs - without.hits);
  judged->advantage_lower = 2 * RateLower(right, without.runs + with.runs, alpha - of_rates) - 1;
}

// The greatest area under the curve of any test: one less the area under the trade-off function,
// which falls, so that its values at the right ends of pieces leave none out.
Result<double> AreaAtMost(const privacy::TradeOff& tradeoff) {
  double under = 0, last = 0;
  for (const double at : {0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.45, 0.65}) {
    TACIT_ASSIGN(const double missed, tradeoff.MissedAtLeast(at));
    under += (at - std::exchange(last, at)) * missed;
  }
  return std::min(1.0, 1 - under);
}

Result<Allowed> AllowedOf(privacy::PldAccountant& accountant, double delta) {
  Allowed allowed;
  TACIT_ASSIGN(const privacy::CertifiedInterval charged, accountant.Epsilon(Delta(delta)));
  allowed.epsilon = charged.upper;
  TACIT_ASSIGN(const privacy::TradeOff tradeoff, privacy::TradeOff::Of(accountant));
  TACIT_ASSIGN(const double at_100, tradeoff.MissedAtLeast(0.01));
  TACIT_ASSIGN(const double at_1000, tradeoff.MissedAtLeast(0.001));
  const auto mu = accountant.Mu();
  if (mu) {
    allowed.area = std::erfc(-*mu / 2) / 2;  // Phi(mu / sqrt 2)
  } else {
    TACIT_ASSIGN(allowed.area, AreaAtMost(tradeoff));
  }
  TACIT_ASSIGN(const double advantage, tradeoff.Advantage());
  allowed.found_1_in_100 = 1 - at_100;
  allowed.found_1_in_1000 = 1 - at_1000;
  allowed.accuracy = privacy::AccuracyAtMost(advantage);
  allowed.gaussian = mu.has_value();
  allowed.mu = mu ? *mu : privacy::GaussianMu(Epsilon(charged.upper), Delta(delta));
  return allowed;
}

// Finds what the charge allows, and whether more was proved.
Status HoldAgainst(Events events, JudgedRuns* judged) {
  TACIT_ASSIGN(privacy::PldAccountant accountant, AccountOf(events, 1));
  const Delta delta(judged->delta);
  TACIT_ASSIGN(const Allowed allowed, AllowedOf(accountant, judged->delta));
  judged->charged_epsilon = allowed.epsilon;
  judged->charged_mu = allowed.mu;
  judged->allowed_1_in_100 = allowed.found_1_in_100;
  judged->allowed_1_in_1000 = allowed.found_1_in_1000;
  judged->allowed_accuracy = allowed.accuracy;
  judged->allowed_area = allowed.area;
  const auto mu = accountant.Mu();
  if (!mu) return ProveBySampling(events, judged);
  judged->proved_mu = std::max(
      {0.0, NormalQuantile(judged->found_lower) - NormalQuantile(judged->false_alarms_upper),
       2 * NormalQuantile((1 + judged->advantage_lower) / 2)});
  if (judged->proved_mu > 0)
    judged->proved_epsilon = privacy::GaussianEpsilon(judged->proved_mu, delta).value;
  judged->exceeds = judged->proved_mu > judged->charged_mu;
  return {};
}

}  // namespace

Result<Allowed> AllowedBy(Events events, double delta) {
  constexpr double kAll = std::numeric_limits<double>::infinity();
  if (events.empty()) return Allowed{.mu = kAll, .epsilon = kAll};
  TACIT_ASSIGN(privacy::PldAccountant accountant, AccountOf(events, 1));
  return AllowedOf(accountant, delta);
}

Result<bool> RefutedInOneRun(Events events, const Guesses& guesses, double alpha) {
  TACIT_CHECK(!events.empty(), "a charge");
  TACIT_ASSIGN(privacy::PldAccountant accountant, AccountOf(events, 1));
  TACIT_ASSIGN(const privacy::TradeOff tradeoff, privacy::TradeOff::Of(accountant));
  // The curve grows with the probability: read at the place below, it is a bound in between.
  constexpr int kPlaces = 96;
  constexpr double kLeast = 1e-6;
  std::vector<double> places, least;
  for (int i = 0; i < kPlaces; ++i) {
    places.push_back(kLeast * std::pow(1 / kLeast, static_cast<double>(i) / kPlaces));
    TACIT_ASSIGN(const double missed, tradeoff.MissedAtLeast(1 - places.back()));
    least.push_back(std::max(missed, least.empty() ? 0.0 : least.back()));
  }
  return RefutesCurve(
      guesses,
      [&](double probability) {
        const auto above = std::ranges::upper_bound(places, probability);
        return above == places.begin() ? 0.0
                                       : least[static_cast<size_t>(above - places.begin()) - 1];
      },
      alpha);
}

Result<JudgedRuns> JudgeRuns(const RunStatistics& runs, uint64_t runs_of_choice, Events events,
                             double delta, double alpha) {
  TACIT_CHECK(runs.without.size() == runs.with.size(), "as many runs in one world as in the other");
  TACIT_CHECK(runs_of_choice > 0 && runs_of_choice < runs.with.size(),
              "runs to choose by, and runs to judge by");
  JudgedRuns judged{.delta = delta};
  LookAtScores(runs, runs_of_choice, &judged);
  JudgeRates(runs, runs_of_choice, alpha, &judged);
  TACIT_RETURN_IF_ERROR(HoldAgainst(events, &judged));
  return judged;
}

}  // namespace tacit::audit
