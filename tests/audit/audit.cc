#include "audit/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/threads/worker_pool.h"
#include "noise/stream_noise.h"

namespace tacit::audit {
namespace {

using Thresholds = std::array<Threshold, kStatistics>;
using Tallies = std::array<Tally, kStatistics>;

// One thread's runs in one world.
class World {
 public:
  World(const Case& audited, bool with, noise::Keystream::Key key)
      : audited_(audited),
        adversary_(audited.setting, audited.evidence),
        before_(audited.setting.space, audited.setting.background),
        step_(audited.setting.space, Units(audited, with), audited.model_fault),
        noise_(std::make_unique<noise::Keystream>(key, noise::Keystream::CounterBlock{})) {}

  // One run from the beginning: the mechanism is made anew.
  Statistics Run() {
    const Subject subject = audited_.make(audited_.setting);
    mechanism::Mechanism& mechanism = *subject.mechanism;
    if (mechanism.observes_periods()) {
      mechanism.Observe(step_.activations());
      mechanism.OpenPeriod(noise_);
    }
    if (audited_.two_steps) before_.Run(mechanism, noise_, nullptr, &view_.before);
    step_.Run(mechanism, noise_, audited_.two_steps ? &view_.before : nullptr, &view_.update);
    view_.counts = subject.vocabulary ? subject.vocabulary->counts() : std::span<const float>();
    view_.log_clip = subject.clipper ? std::log(subject.clipper->bound()) : 0;
    return adversary_.Look(view_);
  }

 private:
  // The canary comes first: a cut at a batch's end cuts off another.
  static StepUnits Units(const Case& audited, bool with) {
    StepUnits units = audited.setting.background;
    if (with) units.insert(units.begin(), audited.setting.canary);
    if (!with && audited.null_unit)
      units.insert(units.begin(), {.dense = std::vector<double>(kDense), .rows = {}});
    return units;
  }

  const Case& audited_;
  const Adversary adversary_;
  StepRunner before_, step_;
  noise::StreamNoise noise_;
  View view_;
};

noise::Keystream::Key MakeKey(uint64_t seed, const std::string& name, size_t worker, bool with) {
  noise::Keystream::Key key{};
  const uint64_t words[] = {seed, std::hash<std::string>{}(name), worker, with};
  for (size_t i = 0; i < key.size(); ++i)
    key[i] = static_cast<uint8_t>(words[i / 8] >> (i % 8 * 8));
  return key;
}

// The work of one thread, first to choose and then to judge: both worlds, each with its own noise.
struct Worker {
  std::array<std::unique_ptr<World>, 2> worlds;  // without and with
  std::array<std::array<std::vector<double>, kStatistics>, 2> sample;
  std::array<Tallies, 2> tallies;
};

Thresholds Choose(const std::vector<Worker>& workers) {
  Thresholds thresholds;
  for (size_t s = 0; s < kStatistics; ++s) {
    std::array<std::vector<double>, 2> all;
    for (const Worker& worker : workers)
      for (size_t w : {0, 1})
        all[w].insert(all[w].end(), worker.sample[w][s].begin(), worker.sample[w][s].end());
    thresholds[s] = ChooseThreshold(std::move(all[0]), std::move(all[1]));
  }
  return thresholds;
}

}  // namespace

double ChargedMu(const mechanism::Mechanism& mechanism) {
  const auto squared = [](const privacy::Charge& charge) {
    return charge.MuSquared() + 2 * charge.zcdp_rho;
  };
  double sum = squared(mechanism.charge());
  if (const auto opening = mechanism.opening_charge()) sum += squared(*opening);
  return std::sqrt(sum);
}

Statistic Finding::Most() const {
  const auto most = std::ranges::max_element(mu, {}, &MuBound::lower);
  return static_cast<Statistic>(most - mu.begin());
}

Finding RunAudit(const Case& audited, const AuditOptions& options) {
  std::vector<Worker> workers(options.workers);
  for (size_t i = 0; i < workers.size(); ++i)
    for (size_t w : {0, 1})
      workers[i].worlds[w] =
          std::make_unique<World>(audited, w == 1, MakeKey(options.seed, audited.name, i, w == 1));
  WorkerPool pool({.workers = options.workers});
  const auto each_run = [&](uint64_t runs, const auto& see) {
    pool.Run(runs, [&](size_t begin, size_t end, size_t i) {
      for (; begin < end; ++begin)
        for (size_t w : {0, 1}) see(workers[i], w, workers[i].worlds[w]->Run());
    });
  };
  each_run(options.runs_of_choice, [](Worker& worker, size_t w, const Statistics& seen) {
    for (size_t s = 0; s < kStatistics; ++s) worker.sample[w][s].push_back(seen[s]);
  });
  const Thresholds thresholds = Choose(workers);
  each_run(options.runs, [&](Worker& worker, size_t w, const Statistics& seen) {
    for (size_t s = 0; s < kStatistics; ++s) worker.tallies[w][s].Add(seen[s], thresholds[s]);
  });
  Finding finding;
  finding.charged_mu = ChargedMu(*audited.make(audited.setting).mechanism);
  for (size_t s = 0; s < kStatistics; ++s) {
    std::array<Tally, 2> all;
    for (const Worker& worker : workers)
      for (size_t w : {0, 1}) all[w].Add(worker.tallies[w][s]);
    finding.mu[s] = BoundMu(all[0], all[1], options.alpha);
  }
  return finding;
}

std::string Describe(const Case& audited, const Finding& finding) {
  const auto tell = [&](Statistic s) {
    const MuBound& mu = finding.mu[s];
    return fmt::format("; {}: above {:.4f} (seen {:.4f}, shift {:.4f})", kStatisticNames[s],
                       mu.lower, mu.estimate, mu.shift);
  };
  std::string text =
      fmt::format("{}: charged mu {:.4f}", audited.name, finding.charged_mu) + tell(kLikelihood);
  if (finding.Most() != kLikelihood) text += tell(finding.Most());
  return text;
}

}  // namespace tacit::audit
