#include "app/evaluate/sequence_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "app/evaluate/sequence_ranking.h"
#include "app/terminal_line.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"

namespace tacit::app {
namespace {

// Of what a run is and of how it is made: an older one is made again.
constexpr int kFormat = 3;

struct Task {
  std::string id, learner;
  double epsilon = 0;
  uint64_t seed = 0;
};

// How far all runs are, on the terminal.
class RunsShown {
 public:
  RunsShown(size_t runs, bool show) : runs_(runs), show_(show), line_(clock_) {}
  ~RunsShown() {
    if (drawn_) line_.End();
  }
  // `share` of a run more is done; from any thread.
  void Add(double share, const std::string& what) {
    std::lock_guard lock(mutex_);
    done_ += share;
    if (!show_ || !line_.is_terminal() || !line_.due()) return;
    line_.Draw(fmt::format("{} {:.1f} of {} runs, {}",
                           ProgressBar(done_ / static_cast<double>(runs_)), done_, runs_, what));
    drawn_ = true;
  }

 private:
  const size_t runs_;
  const bool show_;
  const SystemClock clock_;
  std::mutex mutex_;
  TerminalLine line_;
  double done_ = 0;
  bool drawn_ = false;
};

std::string EpsilonText(double epsilon) { return fmt::format("{:g}", epsilon); }

Result<SequenceRun> MakeRun(const Task& task, const SequenceSplit& split,
                            const SequenceSetting& setting, const SequenceExperiment& experiment,
                            RunsShown* shown) {
  const SystemClock clock;
  const std::string what = fmt::format("{} at epsilon {}", task.learner, EpsilonText(task.epsilon));
  WorkerPool workers({.workers = experiment.workers});
  const auto noise = noise::MakeNoiseSource(workers);
  const auto method = MakeSequenceMethod(task.learner, setting);
  double told = 0;
  const auto tell = [&](double share) {
    shown->Add(share - told, what);
    told = share;
  };
  const auto start = clock.Now();
  // Ranking is a small part at the end.
  auto spent = method->Fit(split.train, {.epsilon = task.epsilon, .delta = experiment.delta},
                           *noise, workers, [&](double share) { tell(0.95 * share); });
  if (!spent) return Fail(std::move(spent.error()).Context(what));
  const auto fitted = clock.Now();
  tell(0.95);
  const RankingQuality quality = MeasureRanking(*method, split, workers);
  tell(1);
  return SequenceRun{.id = task.id,
                     .learner = task.learner,
                     .epsilon = task.epsilon,
                     .delta = experiment.delta,
                     .seed = task.seed,
                     .ndcg10 = quality.ndcg10,
                     .hit10 = quality.hit10,
                     .users = quality.users,
                     .epsilon_spent = *spent,
                     .fit_seconds = Seconds(fitted - start),
                     .score_seconds = Seconds(clock.Now() - fitted)};
}

// The first failure stops what was not begun.
Status MakeRuns(const std::vector<Task>& tasks, const SequenceSplit& split,
                const SequenceSetting& setting, const SequenceExperiment& experiment,
                SequenceResults* results) {
  RunsShown shown(tasks.size(), experiment.show_progress);
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  Status failed;
  const auto work = [&] {
    for (size_t i; (i = next++) < tasks.size();) {
      auto run = MakeRun(tasks[i], split, setting, experiment, &shown);
      Status status = run ? results->Add(*run) : Fail(std::move(run.error()));
      if (status) continue;
      std::lock_guard lock(mutex);
      if (failed) failed = std::move(status);
      next = tasks.size();
    }
  };
  std::vector<std::thread> others;
  for (uint32_t t = 1; t < std::min<size_t>(experiment.jobs, tasks.size()); ++t)
    others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return failed;
}

}  // namespace

Result<std::vector<SequenceRow>> RunSequenceExperiment(const SequenceData& data,
                                                       const SequenceSetting& setting,
                                                       const SequenceExperiment& experiment,
                                                       SequenceResults* results) {
  const SequenceSplit split = LeaveLastOut(data.histories, experiment.validate);
  if (split.user.empty())
    return Fail(ErrorCode::kInvalidArgument,
                data.path + ": nobody can be asked about: every user has fewer than three items");
  const auto id_of = [&](const std::string& learner, double epsilon, uint64_t seed) {
    const Digest digest =
        Sha256()
            .Update(fmt::format("tacit evaluate sequence {}\n{}\n{}\n{}\n{} {} {} {}\n", kFormat,
                                data.identity, SequenceMethodIdentity(learner, setting),
                                experiment.catalogue, epsilon, experiment.delta,
                                experiment.validate, seed))
            .Finish();
    return ToHex(std::span(digest).first(16));
  };
  std::vector<Task> tasks;
  for (uint64_t seed = 0; seed < experiment.seeds; ++seed)
    for (const std::string& learner : experiment.learners)
      for (const double epsilon : experiment.epsilons) {
        Task task{id_of(learner, epsilon, seed), learner, epsilon, seed};
        if (!results->Find(task.id)) tasks.push_back(std::move(task));
      }
  TACIT_RETURN_IF_ERROR(MakeRuns(tasks, split, setting, experiment, results));
  std::vector<SequenceRow> rows;
  for (const std::string& learner : experiment.learners)
    for (const double epsilon : experiment.epsilons) {
      std::vector<SequenceRun> runs;
      for (uint64_t seed = 0; seed < experiment.seeds; ++seed)
        runs.push_back(*results->Find(id_of(learner, epsilon, seed)));
      rows.push_back(MakeSequenceRow(runs));
    }
  return rows;
}

}  // namespace tacit::app
