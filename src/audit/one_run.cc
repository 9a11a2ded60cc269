#include "audit/one_run.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <vector>

#include "audit/mu_bound.h"
#include "base/check.h"

namespace tacit::audit {
namespace {

double OneRunNormal(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }
double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

void CheckGuesses(const Guesses& g) {
  TACIT_CHECK(g.right <= g.guesses && g.guesses <= g.canaries, "more right guesses than guesses");
}

// P(Binomial(n, p) >= k).
double BinomialTail(uint64_t n, double p, uint64_t k) {
  if (k == 0) return 1;
  return boost::math::ibeta(static_cast<double>(k), static_cast<double>(n - k + 1), p);
}

// The place where a falling `refuted` ends, up to `most`.
template <class F>
double LastRefuted(F&& refuted, double most) {
  if (!refuted(0.0)) return 0;
  double low = 0, high = 1;
  while (high < most && refuted(high)) low = std::exchange(high, 2 * high);
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (refuted(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

double SteinkePValue(const Guesses& g, double epsilon, double delta) {
  CheckGuesses(g);
  const double p = Logistic(epsilon), odds = epsilon;  // ln(p / (1 - p))
  const auto n = static_cast<double>(g.guesses), v = static_cast<double>(g.right);
  double most = 0;  // of P(right - i <= Binomial < right) / i
  double between = 0;
  // ln of the Binomial's probability of `right`, then of one less each time.
  double log_p = std::lgamma(n + 1) - std::lgamma(v + 1) - std::lgamma(n - v + 1) +
                 v * std::log(p) + (n - v) * std::log1p(-p);
  for (uint64_t i = 1; i <= g.right && delta > 0; ++i) {
    const double k = v - static_cast<double>(i);  // from k + 1
    log_p += std::log((k + 1) / (n - k)) - odds;
    between += std::exp(log_p);
    most = std::max(most, between / static_cast<double>(i));
  }
  const double tail = BinomialTail(g.guesses, p, g.right);
  return std::min(1.0, tail + 2 * delta * static_cast<double>(g.canaries) * most);
}

double SteinkeEpsilon(const Guesses& g, double delta, double alpha) {
  return LastRefuted([&](double epsilon) { return SteinkePValue(g, epsilon, delta) < alpha; }, 64);
}

// r is the mass of being right that i right guesses and more need, h that of the others.
bool RefutesCurve(const Guesses& g, const LeastElsewhere& least, double alpha) {
  CheckGuesses(g);
  if (g.right == 0 || g.guesses == 0) return false;
  const auto n = static_cast<double>(g.guesses);
  const double share = n / static_cast<double>(g.canaries);
  const double right = static_cast<double>(g.right) / n;
  double r = alpha * share * right, h = alpha * share * (1 - right);
  for (uint64_t i = g.right; i-- > 0;) {
    const double grown = std::max(h, least(r));
    const auto k = static_cast<double>(i);
    r += k / (n - k) * (grown - h);
    h = grown;
    if (r + h > share) return true;
  }
  return false;
}

double CurveMu(const Guesses& g, double alpha) {
  const auto refuted = [&](double mu) {
    return RefutesCurve(
        g, [mu](double p) { return OneRunNormal(NormalQuantile(p) - mu); }, alpha);
  };
  return LastRefuted(refuted, 64);
}

namespace {

// The mean error of each rank, from the least telling score on. A score is |z - mu / 2|, z from
// N(0, 1) or N(mu, 1): its sign is wrong with probability 1 / (1 + e^(mu t)) at distance t.
std::vector<double> ErrorsOfRanks(uint64_t n, double mu) {
  constexpr int kCells = 4000;
  constexpr double kFar = 9;
  std::vector<double> log_below, log_above, log_mass, wrong;
  const double width = (mu / 2 + kFar) / kCells;
  const auto below = [&](double t) { return OneRunNormal(t - mu / 2) - OneRunNormal(-t - mu / 2); };
  for (int i = 0; i < kCells; ++i) {
    const double from = i * width, to = from + width, t = from + width / 2;
    const double mass = below(to) - below(from), f = below(t);
    if (!(mass > 0) || !(f > 0)) continue;
    const double above = OneRunNormal(mu / 2 - t) + OneRunNormal(-t - mu / 2);
    log_below.push_back(std::log(f));
    log_above.push_back(std::log(above));
    log_mass.push_back(std::log(mass));
    wrong.push_back(Logistic(-mu * t));
  }
  std::vector<double> errors(n);
  const auto count = static_cast<double>(n);
  for (uint64_t rank = 1; rank <= n; ++rank) {
    const auto k = static_cast<double>(rank);
    const double log_choices = std::lgamma(count + 1) - std::lgamma(k) - std::lgamma(count - k + 1);
    double sum = 0, total = 0;
    for (size_t i = 0; i < wrong.size(); ++i) {
      const double weight =
          std::exp(log_choices + (k - 1) * log_below[i] + (count - k) * log_above[i] + log_mass[i]);
      total += weight;
      sum += weight * wrong[i];
    }
    errors[rank - 1] = total > 0 ? sum / total : 0.5;
  }
  return errors;
}

}  // namespace

double XiangPValue(const Guesses& g, double mu) {
  CheckGuesses(g);
  TACIT_CHECK(g.guesses == g.canaries, "for all canaries guessed");
  const std::vector<double> errors = ErrorsOfRanks(g.canaries, mu);
  const auto seen = static_cast<double>(g.guesses - g.right);
  double expected = 0;
  for (const double v : errors) expected += v;
  if (seen >= expected) return 1;
  // The slope of ln of the bound in the tilt: the tilted mean, less what was seen.
  const auto surplus = [&](double tilt) {
    double mean = 0;
    for (const double v : errors) mean += v / (v + (1 - v) * std::exp(-tilt));
    return mean - seen;
  };
  double low = -60, high = 0;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (surplus(middle) > 0 ? high : low) = middle;
  }
  double log_bound = -low * seen;
  for (const double v : errors) log_bound += std::log1p(v * std::expm1(low));
  return std::min(1.0, std::exp(log_bound));
}

double XiangMu(const Guesses& g, double alpha) {
  if (g.canaries == 0 || XiangPValue(g, 1e-6) >= alpha) return 0;
  double low = 0, high = 16;
  while (high - low > 1e-3) {
    const double middle = (low + high) / 2;
    (XiangPValue(g, middle) < alpha ? low : high) = middle;
  }
  return low;
}

}  // namespace tacit::audit
