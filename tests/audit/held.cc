#include "audit/held.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "audit/held_learner.h"
#include "base/check.h"
#include "base/threads/worker_pool.h"
#include "noise/stream_noise.h"
#include "privacy/pld.h"

namespace tacit::audit {
namespace {

// Statistics of a period's steps: the log-likelihood ratio of the canary's being there, were they
// an allocation or drawn by coins; the first step alone; the one with the fewest others in it; all
// steps together.
enum HeldStatistic : size_t {
  kAllocated,
  kByCoins,
  kFirstStep,
  kEmptiest,
  kAllSteps,
  kHeldStatistics
};
constexpr std::array<const char*, kHeldStatistics> kHeldNames = {
    "likelihood of an allocation", "likelihood of coins", "first step", "emptiest step",
    "all steps"};
using HeldStatistics = std::array<double, kHeldStatistics>;

HeldStatistics LookAt(std::span<const SeenStep> seen, const HeldSetting& setting) {
  const double s = 1 / setting.sigma, share = 1 / static_cast<double>(setting.block_steps);
  HeldStatistics all{};
  double of_block = 0;
  const SeenStep* emptiest = &seen.front();
  for (size_t i = 0; i < seen.size(); ++i) {
    const double ratio = std::exp(s * s * (seen[i].canary - 0.5));
    of_block += share * ratio;
    if ((i + 1) % setting.block_steps == 0) all[kAllocated] += std::log(std::exchange(of_block, 0));
    all[kByCoins] += std::log1p(share * (ratio - 1));
    all[kAllSteps] += seen[i].canary;
    if (seen[i].others < emptiest->others) emptiest = &seen[i];
  }
  all[kFirstStep] = seen.front().canary;
  all[kEmptiest] = emptiest->canary;
  return all;
}

std::unique_ptr<noise::NoiseSource> SourceOf(uint64_t seed, const std::string& name, size_t worker,
                                             uint64_t use) {
  noise::Keystream::Key key{};
  const uint64_t words[] = {seed, std::hash<std::string>{}(name), worker, use};
  for (size_t i = 0; i < key.size(); ++i)
    key[i] = static_cast<uint8_t>(words[i / 8] >> (i % 8 * 8));
  return std::make_unique<noise::StreamNoise>(
      std::make_unique<noise::Keystream>(key, noise::Keystream::CounterBlock{}));
}

// The runs of one thread, in both worlds.
struct HeldWorker {
  HeldWorker(const HeldCase& audited, uint64_t seed, size_t number)
      : setting(audited.setting),
        learner(audited, SourceOf(seed, audited.name, number, 2)),
        noise(SourceOf(seed, audited.name, number, 3)) {}
  void Run(size_t world) {
    const HeldStatistics all = LookAt(learner.Release(world == 1, *noise), setting);
    for (size_t s = 0; s < kHeldStatistics; ++s) sample[world][s].push_back(all[s]);
  }

  HeldSetting setting;
  HeldLearner learner;
  std::unique_ptr<noise::NoiseSource> noise;
  std::array<std::array<std::vector<double>, kHeldStatistics>, 2> sample;  // without and with
};

// Ascending values of each statistic, in either world.
using Samples = std::array<std::array<std::vector<double>, kHeldStatistics>, 2>;

// Moves the workers' runs into one sample.
Samples Collect(std::vector<std::unique_ptr<HeldWorker>>& workers) {
  Samples all;
  for (const size_t w : {0, 1})
    for (size_t s = 0; s < kHeldStatistics; ++s) {
      for (const auto& worker : workers) {
        std::vector<double>& own = worker->sample[w][s];
        all[w][s].insert(all[w][s].end(), own.begin(), own.end());
        own.clear();
      }
      std::ranges::sort(all[w][s]);
    }
  return all;
}

uint64_t Hits(const std::vector<double>& sorted, const Threshold& threshold) {
  const auto below = std::ranges::lower_bound(sorted, threshold.at) - sorted.begin();
  const auto above = sorted.end() - std::ranges::upper_bound(sorted, threshold.at);
  return static_cast<uint64_t>(threshold.below ? below : above);
}

// The rates at which a test speaks in the world where it should, and in the other.
struct Rates {
  double right = 0, wrong = 0;
  double right_lower = 0, wrong_upper = 0;

  double Seen(double epsilon) const { return right - std::exp(epsilon) * wrong; }
  double Lower(double epsilon) const { return right_lower - std::exp(epsilon) * wrong_upper; }
};
Rates RatesOf(const Samples& samples, const HeldTest& test, double alpha) {
  const auto& should = samples[test.exchanged ? 0 : 1][test.statistic];
  const auto& should_not = samples[test.exchanged ? 1 : 0][test.statistic];
  const uint64_t right = Hits(should, test.threshold), wrong = Hits(should_not, test.threshold);
  return {.right = static_cast<double>(right) / static_cast<double>(should.size()),
          .wrong = static_cast<double>(wrong) / static_cast<double>(should_not.size()),
          .right_lower = RateLower(right, should.size(), alpha),
          .wrong_upper = RateUpper(wrong, should_not.size(), alpha)};
}

constexpr double kEpsilons[] = {0, 0.25, 0.5, 1, 1.5, 2, 3, 4, 5, 6};
// The least charge that tells, by how near a test comes to it, what the audit sees.
constexpr double kTellingDelta = 0.1;
constexpr double kAlphaOfHeldChoice = 1e-3;
constexpr int kHeldThresholds = 48;

std::vector<double> ChargedDeltas(const std::vector<privacy::CountedEvent>& bill) {
  privacy::PldAccountant accountant(privacy::Adjacency::kAddRemove);
  for (const auto& [event, count] : bill) TACIT_CHECK(accountant.Add(event, count).has_value());
  std::vector<double> deltas;
  for (const double epsilon : kEpsilons) {
    const auto delta = accountant.DeltaAt(epsilon);
    TACIT_CHECK(delta.has_value(), "the charge has no delta");
    deltas.push_back(delta->upper);
  }
  return deltas;
}

// Chooses, on runs of its own, the test that seems furthest above its charge, in standard
// deviations, and the one that seems to come nearest to a charge.
void ChooseTests(const Samples& samples, const std::vector<double>& charged, HeldFinding* finding) {
  double furthest = -1e300, nearest = -1e300;
  const auto runs = static_cast<double>(samples[0][0].size());
  for (size_t s = 0; s < kHeldStatistics; ++s) {
    std::vector<double> pooled = samples[0][s];
    pooled.insert(pooled.end(), samples[1][s].begin(), samples[1][s].end());
    std::ranges::sort(pooled);
    for (int i = 0; i <= kHeldThresholds; ++i)
      for (const bool below : {false, true})
        for (const bool exchanged : {false, true}) {
          const double place = std::pow(std::sin(i * std::numbers::pi / 2 / kHeldThresholds), 2);
          HeldTest test{.statistic = s,
                        .threshold = {.at = pooled[static_cast<size_t>(
                                          place * static_cast<double>(pooled.size() - 1))],
                                      .below = below},
                        .exchanged = exchanged};
          const Rates rates = RatesOf(samples, test, kAlphaOfHeldChoice);
          for (size_t e = 0; e < charged.size(); ++e) {
            test.epsilon = kEpsilons[e];
            test.charged = charged[e];
            const double factor = std::exp(test.epsilon), more = 1 / runs;
            const double deviation = std::sqrt((rates.right + more) / runs +
                                               factor * factor * (rates.wrong + more) / runs);
            const double above = (rates.Seen(test.epsilon) - test.charged) / deviation;
            if (above > furthest) furthest = above, finding->least_likely = test;
            const double share = rates.Lower(test.epsilon) / test.charged;
            if (test.charged >= kTellingDelta && share > nearest)
              nearest = share, finding->nearest = test;
          }
        }
  }
}

void Judge(const Samples& samples, double alpha, HeldTest* test) {
  const Rates rates = RatesOf(samples, *test, alpha);
  test->lower = rates.Lower(test->epsilon);
  test->seen = rates.Seen(test->epsilon);
}

std::string Tell(const HeldTest& test) {
  return fmt::format("at epsilon {} charged {:.4f}, above {:.4f} (seen {:.4f}) by {}{}",
                     test.epsilon, test.charged, test.lower, test.seen, kHeldNames[test.statistic],
                     test.exchanged ? ", absence" : "");
}

}  // namespace

std::vector<HeldCase> RightPeriods() {
  return {{"one block of two", {.sigma = 0.6, .block_steps = 2}},
          {"two blocks of four", {.sigma = 0.7, .block_steps = 4, .blocks = 2}}};
}

// Coins cost little else than an allocation does: more in the tail alone, where a record was taken
// twice or more. So they need many runs.
std::vector<HeldCase> PlantedPeriods() {
  const HeldSetting two{.sigma = 0.4, .block_steps = 2}, three{.sigma = 0.5, .block_steps = 3};
  return {{"coins charged as an allocation", three, HeldFault::kPoissonSteps, 200'000},
          {"key drawn anew in a period", three, HeldFault::kKeyDrawnAnew, 200'000},
          {"an allocation charged as coins", two, HeldFault::kPoissonCharge, 20'000},
          {"records in two steps", two, HeldFault::kTwice, 20'000},
          {"steps by content", two, HeldFault::kByContent, 20'000},
          {"steps of equal size", two, HeldFault::kEqualSteps, 20'000}};
}

HeldFinding AuditHeld(const HeldCase& audited, const AuditOptions& options) {
  std::vector<std::unique_ptr<HeldWorker>> workers;
  for (size_t i = 0; i < options.workers; ++i)
    workers.push_back(std::make_unique<HeldWorker>(audited, options.seed, i));
  WorkerPool pool({.workers = options.workers});
  const auto runs = [&](uint64_t n) {
    pool.Run(n, [&](size_t begin, size_t end, size_t i) {
      for (; begin < end; ++begin)
        for (const size_t w : {0, 1}) workers[i]->Run(w);
    });
    return Collect(workers);
  };
  HeldFinding finding;
  const Samples of_choice = runs(options.runs_of_choice);
  finding.bill = workers[0]->learner.bill();
  ChooseTests(of_choice, ChargedDeltas(finding.bill), &finding);
  const Samples judged = runs(options.runs);
  Judge(judged, options.alpha, &finding.least_likely);
  Judge(judged, options.alpha, &finding.nearest);
  return finding;
}

std::string Describe(const HeldCase& audited, const HeldFinding& finding) {
  return fmt::format("{}: {}; nearest {}", audited.name, Tell(finding.least_likely),
                     Tell(finding.nearest));
}

}  // namespace tacit::audit
