// Moves what the shaped counts are set by, up and down by a fifth, and tells NDCG@10 of the items
// before the last:
//   rules_bench DATA [ITEMS ITEM_IDS] [--epsilon E] [--seeds N] [--only NAME,NAME]
//     [--factors F,F] [--with NAME=F,NAME=F]
// `--with` moves settings before anything else, `--factors` names other factors than .8 and 1.2.
// `signal` and `items` are the inputs of the rules (model/transitions/rules.h): users, events of a
// user and epsilon enter the signal together. All else is a constant. Noise has fixed keys, one
// a seed.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "base/threads/worker_pool.h"
#include "bench/described_data.h"
#include "lab/next_item/sequence_ranking.h"
#include "model/transitions/scorer.h"
#include "privacy/gaussian.h"
#include "support/fixed_noise.h"
#include "support/single_release.h"

namespace tacit {
namespace {

using model::transitions::Options;

struct Setting {
  std::string name;
  bool scores_alone;  // needs no release of its own
  std::function<void(Options*, double factor)> move;
};

template <class Member>
std::function<void(Options*, double)> Times(Member member) {
  return [member](Options* options, double factor) { options->*member *= factor; };
}

std::vector<Setting> Settings() {
  return {
      {"signal", false,
       [](Options* o, double factor) {
         o->cells_at_signal *= std::pow(factor, o->cells_power);
         o->share_signal /= factor;
         o->ranks_signal /= factor;
         o->tables_signal /= factor;
       }},
      {"items", false,
       [](Options* o, double factor) {
         o->cells_at_signal *= std::pow(factor, o->items_power);
         o->share_signal *= factor;
         o->ranks_signal *= factor;
       }},
      {"share_signal", false, Times(&Options::share_signal)},
      {"share_power", false, Times(&Options::share_power)},
      {"popularity_share", false, Times(&Options::popularity_share)},
      {"table_share", false, Times(&Options::table_share)},
      {"ranks_signal", false, Times(&Options::ranks_signal)},
      {"ranks_power", false, Times(&Options::ranks_power)},
      {"tables_signal", false, Times(&Options::tables_signal)},
      {"tables_power", false, Times(&Options::tables_power)},
      {"tables_share_most", false, Times(&Options::tables_share_most)},
      {"described_share_most", false, Times(&Options::described_share_most)},
      {"share_spread", false, Times(&Options::share_spread)},
      {"ratio_most", false, Times(&Options::ratio_most)},
      {"kin", true,
       [](Options* o, double factor) {
         o->kin_for_each = static_cast<uint64_t>(factor * static_cast<double>(o->kin_for_each));
       }},
      {"lag_decay", false, Times(&Options::lag_decay)},
      {"support_from", false, Times(&Options::support_from)},
      {"support_to", false, Times(&Options::support_to)},
      {"cells_power", false, Times(&Options::cells_power)},
      {"prior_log_deviation", false, Times(&Options::prior_log_deviation)},
      {"popularity_deviations", false, Times(&Options::popularity_deviations)},
      {"score_from", true, Times(&Options::score_from)},
      {"score_to", true, Times(&Options::score_to)},
      {"score_power", true, Times(&Options::score_power)},
      {"reverse_weight", true, Times(&Options::reverse_weight)},
      {"recent_age", true, Times(&Options::recent_age)},
      {"recent_power", true, Times(&Options::recent_power)},
  };
}

class Counted final : public lab::ItemScores {
 public:
  explicit Counted(const model::transitions::Scorer& scorer) : scorer_(scorer) {}
  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    scorer_.Score(history, scores);
  }

 private:
  const model::transitions::Scorer& scorer_;
};

// The numbers of a list F,F.
std::vector<double> Numbers(const std::string& list) {
  std::vector<double> numbers;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) numbers.push_back(std::stod(part));
  return numbers;
}

// Moves settings as a list NAME=F,NAME=F says.
void With(const std::string& list, Options* options) {
  const std::vector<Setting> settings = Settings();
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const auto at = std::ranges::find(settings, name, &Setting::name);
    if (equals == std::string::npos || at == settings.end()) {
      std::fprintf(stderr, "%s is no setting and factor\n", part.c_str());
      std::exit(2);
    }
    at->move(options, std::stod(part.substr(equals + 1)));
  }
}

// The mean of some runs, in %, and their deviation.
struct Runs {
  std::vector<double> ndcg;
  double Mean() const {
    double sum = 0;
    for (const double x : ndcg) sum += x;
    return sum / static_cast<double>(ndcg.size());
  }
  double Deviation() const {
    double squares = 0;
    for (const double x : ndcg) squares += (x - Mean()) * (x - Mean());
    return ndcg.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(ndcg.size() - 1));
  }
};

class Bench {
 public:
  Bench(const model::Histories& histories, const model::transitions::PublicItems& catalogue,
        double epsilon)
      : split_(lab::LeaveLastOut(histories, /*validate=*/true)),
        catalogue_(catalogue),
        mu_(std::isinf(epsilon) ? epsilon : privacy::GaussianMu(Epsilon(epsilon), Delta(1e-5))) {}

  train::TransitionsRelease Release(const Options& options, uint8_t seed) {
    noise::FixedNoise noise(seed);
    auto released =
        train::ReleaseTransitions(split_.train, catalogue_, options, mu_, noise, workers_);
    if (!released) {
      std::fprintf(stderr, "%s\n", released.error().message.c_str());
      std::exit(1);
    }
    return std::move(*released);
  }
  double Ndcg(const train::TransitionsRelease& released, const Options& options) {
    const model::transitions::Scorer scorer(released.estimate(), options, workers_);
    return 100 * lab::MeasureRanking(Counted(scorer), split_, workers_).ndcg10;
  }

 private:
  const lab::SequenceSplit split_;
  const model::transitions::PublicItems& catalogue_;
  const double mu_;
  WorkerPool workers_{{.workers = 2}};
};

void Tell(const char* name, double factor, const Runs& runs, const Runs& base) {
  const double moved = runs.Mean() - base.Mean();
  std::printf("| %s x %.2f | %.2f +- %.2f (%zu) | %+.2f | %s |\n", name, factor, runs.Mean(),
              runs.Deviation(), runs.ndcg.size(), moved,
              std::abs(moved) <= 2 * base.Deviation() ? "within two" : "more");
  std::fflush(stdout);
}

int Move(Bench& bench, uint8_t seeds, const std::string& only, const std::vector<double>& factors,
         const Options& usual) {
  Runs base;
  std::vector<train::TransitionsRelease> releases;
  for (uint8_t seed = 1; seed <= seeds; ++seed) {
    releases.push_back(bench.Release(usual, seed));
    base.ndcg.push_back(bench.Ndcg(releases.back(), usual));
  }
  std::printf("| moved | NDCG@10, %% | by | deviations of the first line |\n|---|---|---:|---|\n");
  Tell("nothing", 1, base, base);
  for (const Setting& setting : Settings()) {
    if (!only.empty() && ("," + only + ",").find("," + setting.name + ",") == std::string::npos)
      continue;
    for (const double factor : factors) {
      Options options = usual;
      setting.move(&options, factor);
      Runs runs;
      for (uint8_t seed = 1; seed <= seeds; ++seed)
        runs.ndcg.push_back(setting.scores_alone
                                ? bench.Ndcg(releases[seed - 1u], options)
                                : bench.Ndcg(bench.Release(options, seed), options));
      Tell(setting.name.c_str(), factor, runs, base);
    }
  }
  return 0;
}

int Run(const std::vector<std::string>& paths, double epsilon, uint8_t seeds,
        const std::string& only, const std::vector<double>& factors, const Options& usual) {
  const auto data = ReadDescribedData(paths, epsilon);
  if (!data) {
    std::fprintf(stderr, "%s\n", data.error().message.c_str());
    return 1;
  }
  Bench bench(data->histories, data->catalogue, epsilon);
  return Move(bench, seeds, only, factors, usual);
}

}  // namespace
}  // namespace tacit

int main(int argc, char** argv) {
  std::vector<std::string> paths;
  double epsilon = 5;  // infinite: no noise
  int seeds = 3;
  std::string only;
  std::vector<double> factors;
  tacit::model::transitions::Options usual;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--epsilon") == 0 && i + 1 < argc)
      epsilon = std::atof(argv[++i]);
    else if (std::strcmp(argv[i], "--seeds") == 0 && i + 1 < argc)
      seeds = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc)
      only = argv[++i];
    else if (std::strcmp(argv[i], "--factors") == 0 && i + 1 < argc)
      factors = tacit::Numbers(argv[++i]);
    else if (std::strcmp(argv[i], "--with") == 0 && i + 1 < argc)
      tacit::With(argv[++i], &usual);
    else
      paths.emplace_back(argv[i]);
  }
  if ((paths.size() != 1 && paths.size() != 3) || seeds < 1 || seeds > 100) {
    std::fprintf(stderr,
                 "rules_bench DATA [ITEMS ITEM_IDS] [--epsilon E] [--seeds N] [--only NAMES] "
                 "[--factors F,F] [--with NAME=F,NAME=F]\n");
    return 2;
  }
  if (factors.empty()) factors = {0.8, 1.2};
  return tacit::Run(paths, epsilon, static_cast<uint8_t>(seeds), only, factors, usual);
}
