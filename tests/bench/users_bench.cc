// Tells what users of few and of many events bring and cost the shaped counts, by quintile:
//   users_bench DATA [ITEMS ITEM_IDS] [--epsilon E] [--seeds N]
// For each quintile: NDCG@10 of its own users (the items before the last), that of all users when
// its users are left out of the release, and the share of the promise's mu^2 that queries spend in
// which such a user's vector is not 0, at most. Noise has fixed keys, one a seed.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/threads/worker_pool.h"
#include "bench/described_data.h"
#include "lab/next_item/sequence_ranking.h"
#include "model/transitions/pairs.h"
#include "model/transitions/scorer.h"
#include "privacy/gaussian.h"
#include "support/fixed_noise.h"
#include "support/single_release.h"

namespace tacit {
namespace {

using model::Histories;
using model::transitions::Options;
using model::transitions::PublicItems;

constexpr size_t kParts = 5;
using PerPart = std::array<double, kParts>;

class CountedScores final : public lab::ItemScores {
 public:
  explicit CountedScores(const model::transitions::Scorer& scorer) : scorer_(scorer) {}
  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    scorer_.Score(history, scores);
  }

 private:
  const model::transitions::Scorer& scorer_;
};

// Users in order of their events, cut into parts of equal size; users of as many events are in the
// order of the file.
std::vector<size_t> PartsOf(const Histories& histories) {
  std::vector<uint32_t> order(histories.units());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) {
    return histories.Of(a).size() < histories.Of(b).size();
  });
  std::vector<size_t> part(order.size());
  for (size_t i = 0; i < order.size(); ++i) part[order[i]] = i * kParts / order.size();
  return part;
}

// The same users, without the events of those of a part.
Histories Without(const Histories& all, const std::vector<size_t>& part, size_t left_out) {
  Histories rest{.items = {}, .end = {}, .catalogue = all.catalogue};
  for (size_t unit = 0; unit < all.units(); ++unit) {
    const auto items = all.Of(unit);
    if (part[unit] != left_out) rest.items.insert(rest.items.end(), items.begin(), items.end());
    rest.end.push_back(rest.items.size());
  }
  return rest;
}

class Bench {
 public:
  Bench(const Histories& histories, const PublicItems& catalogue, double epsilon, uint8_t seeds)
      : split_(lab::LeaveLastOut(histories, /*validate=*/true)),
        part_(PartsOf(split_.train)),
        catalogue_(catalogue),
        mu_(std::isinf(epsilon) ? epsilon : privacy::GaussianMu(Epsilon(epsilon), Delta(1e-5))),
        seeds_(seeds) {}

  void Run() {
    PerPart own{}, without{}, moved{};
    double all = 0, squares = 0;
    for (uint8_t seed = 1; seed <= seeds_; ++seed) {
      const auto released = Release(split_.train, seed);
      const double of_all = Ndcg(released, kParts);
      all += of_all / seeds_, squares += of_all * of_all / seeds_;
      for (size_t part = 0; part < kParts; ++part) {
        own[part] += Ndcg(released, part) / seeds_;
        without[part] += Ndcg(Release(Without(split_.train, part_, part), seed), kParts) / seeds_;
      }
      if (seed == 1) moved = Moved(released);
    }
    std::printf("all users: NDCG@10 %.2f +- %.2f (%d runs)\n", all,
                std::sqrt(std::max(0.0, squares - all * all)), seeds_);
    std::printf(
        "| events of a user | users | share of events, %% | NDCG@10 of these, %% | "
        "of all without these | by | share of mu^2, at most |\n"
        "|---|---:|---:|---:|---:|---:|---:|\n");
    for (size_t part = 0; part < kParts; ++part) {
      size_t least = SIZE_MAX, most = 0, users = 0, events = 0;
      for (size_t unit = 0; unit < part_.size(); ++unit) {
        if (part_[unit] != part) continue;
        const size_t items = split_.train.Of(unit).size();
        least = std::min(least, items), most = std::max(most, items);
        ++users, events += items;
      }
      std::printf(
          "| %zu to %zu | %zu | %.1f | %.2f | %.2f | %+.2f | %.3f |\n", least, most, users,
          100 * static_cast<double>(events) / static_cast<double>(split_.train.items.size()),
          own[part], without[part], without[part] - all, moved[part]);
    }
  }

 private:
  train::TransitionsRelease Release(const Histories& histories, uint8_t seed) {
    noise::FixedNoise noise(seed);
    auto released =
        train::ReleaseTransitions(histories, catalogue_, options_, mu_, noise, workers_);
    if (!released) {
      std::fprintf(stderr, "%s\n", released.error().message.c_str());
      std::exit(1);
    }
    return std::move(*released);
  }
  // In %, of the users of a part, or of all.
  double Ndcg(const train::TransitionsRelease& released, size_t part) {
    lab::SequenceSplit asked{.train = split_.train, .user = {}, .answer = {}};
    for (size_t i = 0; i < split_.user.size(); ++i)
      if (part == kParts || part_[split_.user[i]] == part) {
        asked.user.push_back(split_.user[i]);
        asked.answer.push_back(split_.answer[i]);
      }
    const model::transitions::Scorer scorer(released.estimate(), options_, workers_);
    return 100 * lab::MeasureRanking(CountedScores(scorer), asked, workers_).ndcg10;
  }
  // The mean over a part's users of the share of mu^2 that goes to queries in which the user's
  // vector may not be 0: popularity if there is an item, tables if there is a pair, measurements if
  // there is a pair among all cells that were measured.
  PerPart Moved(const train::TransitionsRelease& released) const {
    PerPart shares{}, users{};
    if (std::isinf(mu_)) return shares;
    const size_t stages = model::transitions::kStages, all = released.charge.queries.size();
    const size_t tables = catalogue_.described() ? model::transitions::Buckets::kTablesMost : 1;
    double popularity = 0, table = 0, measured = 0;
    for (size_t q = 0; q < all; ++q) {
      double& of = q < all - stages - tables ? popularity : q < all - stages ? table : measured;
      of += released.charge.queries[q].MuSquared() / (mu_ * mu_);
    }
    const auto& cells = released.estimate().cells();
    for (size_t unit = 0; unit < part_.size(); ++unit) {
      const auto items = split_.train.Of(unit);
      bool pair = false, cell = false;
      model::transitions::ForPairs(items, options_.lags, options_.lag_decay,
                                   [&](uint32_t a, uint32_t b, double) {
                                     pair = true;
                                     cell = cell || cells.Find(a, b) != cells.kNone;
                                   });
      shares[part_[unit]] +=
          (items.empty() ? 0 : popularity) + (pair ? table : 0) + (cell ? measured : 0);
      ++users[part_[unit]];
    }
    for (size_t part = 0; part < kParts; ++part) shares[part] /= std::max(1.0, users[part]);
    return shares;
  }

  const lab::SequenceSplit split_;
  const std::vector<size_t> part_;
  const PublicItems& catalogue_;
  const double mu_;
  const uint8_t seeds_;
  const Options options_;
  WorkerPool workers_{{.workers = 2}};
};

int Run(const std::vector<std::string>& paths, double epsilon, uint8_t seeds) {
  const auto data = ReadDescribedData(paths, epsilon);
  if (!data) {
    std::fprintf(stderr, "%s\n", data.error().message.c_str());
    return 1;
  }
  Bench(data->histories, data->catalogue, epsilon, seeds).Run();
  return 0;
}

}  // namespace
}  // namespace tacit

int main(int argc, char** argv) {
  std::vector<std::string> paths;
  double epsilon = 5;  // infinite: no noise
  int seeds = 2;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--epsilon") == 0 && i + 1 < argc)
      epsilon = std::atof(argv[++i]);
    else if (std::strcmp(argv[i], "--seeds") == 0 && i + 1 < argc)
      seeds = std::atoi(argv[++i]);
    else
      paths.emplace_back(argv[i]);
  }
  if ((paths.size() != 1 && paths.size() != 3) || seeds < 1 || seeds > 100) {
    std::fprintf(stderr, "users_bench DATA [ITEMS ITEM_IDS] [--epsilon E] [--seeds N]\n");
    return 2;
  }
  return tacit::Run(paths, epsilon, static_cast<uint8_t>(seeds));
}
