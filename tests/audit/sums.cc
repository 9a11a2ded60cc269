#include "audit/sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/math/distributions/normal.hpp>
#include <cmath>

#include "base/threads/worker_pool.h"
#include "noise/stream_noise.h"

namespace tacit::audit {
namespace {

using mechanism::SumTable;
using testing::FlatSums;

enum SumsStatistic : size_t { kOfAllSeen, kAtThreshold, kSumsStatistics };
using Seen = std::array<double, kSumsStatistics>;

double NormalTail(double x) {
  return boost::math::cdf(boost::math::complement(boost::math::normal(), x));
}

// All that a release says about which world it is from.
class SumsAdversary {
 public:
  explicit SumsAdversary(SumsSubject& subject)
      : frame_(subject.frame()), worlds_{subject.Exact(false), subject.Exact(true)} {
    for (const SumTable& table : frame_.tables)
      for (uint64_t row = table.first; row < table.first + table.rows; ++row) {
        const bool differs = worlds_[0].sums[row] != worlds_[1].sums[row] ||
                             worlds_[0].counts[row] != worlds_[1].counts[row];
        if (differs) rows_.push_back({row, table.every_row, HiddenRatio(row, table)});
      }
  }

  Seen Look(const FlatSums& released) const {
    Seen seen{};
    for (const Row& row : rows_) {
      const auto at = std::ranges::lower_bound(released.rows, row.row);
      if (at == released.rows.end() || *at != row.row) {
        seen[kOfAllSeen] += row.hidden;
        continue;
      }
      const auto i = static_cast<size_t>(at - released.rows.begin());
      seen[kOfAllSeen] +=
          Ratio(released.sums[i], worlds_[0].sums[row.row], worlds_[1].sums[row.row]) +
          Ratio(released.counts[i], worlds_[0].counts[row.row], worlds_[1].counts[row.row]);
      if (!row.whole) seen[kAtThreshold] += released.counts[i] == frame_.threshold;
    }
    for (size_t i = 0; i < released.numbers.size(); ++i)
      seen[kOfAllSeen] += Ratio(released.numbers[i], worlds_[0].numbers[i], worlds_[1].numbers[i]);
    return seen;
  }

 private:
  struct Row {
    uint64_t row = 0;
    bool whole = false;
    double hidden = 0;  // ln of the likelihood ratio of its not being released
  };

  // ln of the likelihood ratio of a number.
  double Ratio(double seen, double without, double with) const {
    return (with - without) * (seen - (with + without) / 2) / (frame_.deviation * frame_.deviation);
  }
  double HiddenRatio(uint64_t row, const SumTable& table) const {
    if (table.every_row) return 0;
    const auto below = [&](const ExactSums& world) {
      return NormalTail((world.counts[row] - frame_.threshold) / frame_.deviation);
    };
    return std::log(below(worlds_[1]) / below(worlds_[0]));
  }

  const SumsFrame frame_;
  const std::array<ExactSums, 2> worlds_;  // without and with
  std::vector<Row> rows_;                  // those that tell something
};

noise::StreamNoise NoiseOf(uint64_t seed, const std::string& name, size_t worker, size_t world) {
  noise::Keystream::Key key{};
  const uint64_t words[] = {seed, std::hash<std::string>{}(name), worker, world};
  for (size_t i = 0; i < key.size(); ++i)
    key[i] = static_cast<uint8_t>(words[i / 8] >> (i % 8 * 8));
  return noise::StreamNoise(
      std::make_unique<noise::Keystream>(key, noise::Keystream::CounterBlock{}));
}

// The work of one thread, first to choose and then to judge: both worlds, each with its own noise.
struct SumsWorker {
  SumsWorker(const SumsCase& audited, uint64_t seed, size_t number)
      : subject(audited.make()),
        adversary(*subject),
        noises{NoiseOf(seed, audited.name, number, 0), NoiseOf(seed, audited.name, number, 1)} {}
  Seen Run(size_t world) { return adversary.Look(subject->Release(world == 1, noises[world])); }

  std::unique_ptr<SumsSubject> subject;
  SumsAdversary adversary;
  std::array<noise::StreamNoise, 2> noises;
  std::array<std::array<std::vector<double>, kSumsStatistics>, 2> sample;
  std::array<std::array<Tally, kSumsStatistics>, 2> tallies;
};

}  // namespace

void TappedNoise::AddGridGaussian(double stddev, std::span<int64_t> values) {
  if (source_ != nullptr) source_->AddGridGaussian(stddev, values);
  draws_.push_back({stddev, {values.begin(), values.end()}});
}

SumsFinding AuditSums(const SumsCase& audited, const AuditOptions& options) {
  std::vector<std::unique_ptr<SumsWorker>> workers;
  for (size_t i = 0; i < options.workers; ++i)
    workers.push_back(std::make_unique<SumsWorker>(audited, options.seed, i));
  WorkerPool pool({.workers = options.workers});
  const auto each_run = [&](uint64_t runs, const auto& see) {
    pool.Run(runs, [&](size_t begin, size_t end, size_t i) {
      for (; begin < end; ++begin)
        for (const size_t w : {0, 1}) see(*workers[i], w, workers[i]->Run(w));
    });
  };
  each_run(options.runs_of_choice, [](SumsWorker& worker, size_t w, const Seen& seen) {
    for (size_t s = 0; s < kSumsStatistics; ++s) worker.sample[w][s].push_back(seen[s]);
  });
  std::array<MuBound, kSumsStatistics> mu;
  std::array<Threshold, kSumsStatistics> thresholds;
  for (size_t s = 0; s < kSumsStatistics; ++s) {
    std::array<std::vector<double>, 2> all;
    for (const auto& worker : workers)
      for (const size_t w : {0, 1})
        all[w].insert(all[w].end(), worker->sample[w][s].begin(), worker->sample[w][s].end());
    thresholds[s] = ChooseThreshold(std::move(all[0]), std::move(all[1]));
  }
  each_run(options.runs, [&](SumsWorker& worker, size_t w, const Seen& seen) {
    for (size_t s = 0; s < kSumsStatistics; ++s) worker.tallies[w][s].Add(seen[s], thresholds[s]);
  });
  for (size_t s = 0; s < kSumsStatistics; ++s) {
    std::array<Tally, 2> all;
    for (const auto& worker : workers)
      for (const size_t w : {0, 1}) all[w].Add(worker->tallies[w][s]);
    mu[s] = BoundMu(all[0], all[1], options.alpha);
  }
  return {.charged_mu = workers[0]->subject->charged_mu(),
          .likelihood = mu[kOfAllSeen],
          .at_threshold = mu[kAtThreshold]};
}

std::string Describe(const SumsCase& audited, const SumsFinding& finding) {
  return fmt::format(
      "{}: charged mu {:.4f}; likelihood: above {:.4f} ({:.1f} %; seen {:.4f}, shift {:.4f}); "
      "counts at the threshold: above {:.4f}",
      audited.name, finding.charged_mu, finding.likelihood.lower,
      100 * finding.likelihood.lower / finding.charged_mu, finding.likelihood.estimate,
      finding.likelihood.shift, finding.at_threshold.lower);
}

}  // namespace tacit::audit
