// Measures one release of the shaped counts by phase, the scorers that are made of it, and answers
// with a ranker, with noise of a fixed key: digests of what was released and of what was answered
// tell whether two programs do the same.
//   release_bench DATA [ITEMS ITEM_IDS] [--epsilon E]
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/text.h"
#include "base/threads/worker_pool.h"
#include "lab/next_item/sequence_data.h"
#include "model/ranking/candidates.h"
#include "model/ranking/ranker.h"
#include "privacy/gaussian.h"
#include "support/fixed_noise.h"
#include "support/single_release.h"

namespace tacit {
namespace {

double WallNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double ProcessorNow() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double MebibytesMost() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Prints what a phase took since the one before.
class Phases {
 public:
  void End(const std::string& name) {
    const double wall = WallNow(), processor = ProcessorNow();
    std::printf("%-28s %9.2f s wall %9.2f s processor %9.0f MiB at most so far\n", name.c_str(),
                wall - wall_, processor - processor_, MebibytesMost());
    std::fflush(stdout);
    wall_ = WallNow(), processor_ = ProcessorNow();
  }

 private:
  double wall_ = WallNow(), processor_ = ProcessorNow();
};

// The processor time of this thread, in microseconds.
double Microseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

// Answers 500 users' questions with a made-up ranker that looks at every feature: for histories of
// three lengths, where what a user lacks is taken from the users after him, and for their own
// (length 0), of which the last 200 items are looked at.
void Answer(const model::ranking::CandidateSource& source, const model::Histories& histories) {
  std::vector<float> parameters = model::ranking::InitialRanker(1);
  for (size_t i = 0; i < parameters.size(); ++i)
    parameters[i] += 0.01f * static_cast<float>(i * 7 % 13);
  model::ranking::Candidates candidates;
  model::ranking::RankerPass pass;
  std::vector<model::transitions::ScoredItem> top;
  Sha256 digest;
  for (const size_t length : {size_t{1}, size_t{20}, size_t{200}, size_t{0}}) {
    std::vector<double> taken;
    for (size_t unit = 0; unit < 500; ++unit) {
      const auto own = histories.Of(unit);
      const size_t begin = unit == 0 ? 0 : histories.end[unit - 1];
      const auto history = length == 0 ? own.last(std::min<size_t>(own.size(), 200))
                                       : std::span(histories.items).subspan(begin, length);
      const double start = Microseconds();
      model::ranking::TopRanked(source, parameters, 200, history, 10, {}, &candidates, &pass, &top);
      taken.push_back(Microseconds() - start);
      for (const auto& item : top)
        digest.Update(std::string_view(reinterpret_cast<const char*>(&item), sizeof item));
    }
    std::ranges::sort(taken);
    const std::string asked = length == 0 ? "own histories" : std::to_string(length) + " items";
    std::printf("answers to %13s: median %.1f us, p99 %.1f us of processor\n", asked.c_str(),
                taken[250], taken[495]);
  }
  std::printf("answers    %s\n", ToHex(digest.Finish()).c_str());
}

int Run(const std::vector<std::string>& paths, double epsilon) {
  Phases phases;
  auto read = lab::ReadSequences(paths[0]);
  if (!read) {
    std::fprintf(stderr, "%s\n", read.error().message.c_str());
    return 1;
  }
  const lab::SequenceData data = std::move(*read);
  model::transitions::PublicItems catalogue(data.histories.catalogue);
  if (paths.size() == 3) {
    auto described = lab::ReadCatalogue(data, paths[1], paths[2]);
    if (!described) {
      std::fprintf(stderr, "%s\n", described.error().message.c_str());
      return 1;
    }
    catalogue = std::move(*described);
  }
  phases.End("reading");
  std::printf("%u items, %zu users, %zu events\n", catalogue.items(), data.histories.units(),
              data.histories.items.size());

  const double begun = WallNow(), processor = ProcessorNow();
  WorkerPool workers({.workers = 2});
  noise::FixedNoise noise(1);
  const model::transitions::Options options;
  const double mu = privacy::GaussianMu(Epsilon(epsilon), Delta(1e-5));
  auto released = train::ReleaseTransitions(
      data.histories, catalogue, options, mu, noise, workers,
      [&](double share) { phases.End("release, at " + std::to_string(share)); });
  if (!released) {
    std::fprintf(stderr, "%s\n", released.error().message.c_str());
    return 1;
  }
  std::printf("the release: %.2f s wall, %.2f s processor, %zu cells\n", WallNow() - begun,
              ProcessorNow() - processor, released->estimate().cells().size());
  {
    const model::ranking::CandidateSource source(released->estimate(), catalogue, options, workers);
    phases.End("a source of candidates");
    Sha256 digest;
    model::ranking::Candidates candidates;
    for (size_t unit = 0; unit < std::min<size_t>(2000, data.histories.units()); ++unit) {
      const auto history = data.histories.Of(unit);
      source.Find(history.first(std::min<size_t>(history.size(), 30)), 100, &candidates);
      digest.Update(std::string_view(reinterpret_cast<const char*>(candidates.rows.data()),
                                     candidates.rows.size() * sizeof(float)));
    }
    std::printf("candidates %s\n", ToHex(digest.Finish()).c_str());
    phases.End("candidates of some users");
    if (data.histories.units() > 1000) Answer(source, data.histories);
    phases.End("answers");
  }
  const std::string bytes = released->model->Encode();
  std::printf("released   %s, %.1f MB\n", ToHex(Sha256().Update(bytes).Finish()).c_str(),
              1e-6 * static_cast<double>(bytes.size()));
  phases.End("encoding");
  return 0;
}

}  // namespace
}  // namespace tacit

int main(int argc, char** argv) {
  std::vector<std::string> paths;
  double epsilon = 5;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--epsilon") == 0 && i + 1 < argc)
      epsilon = std::atof(argv[++i]);
    else
      paths.emplace_back(argv[i]);
  }
  if (paths.size() != 1 && paths.size() != 3) {
    std::fprintf(stderr, "release_bench DATA [ITEMS ITEM_IDS] [--epsilon E]\n");
    return 2;
  }
  return tacit::Run(paths, epsilon);
}
