#include "lab/next_item/sequence_experiment.h"

#include <fmt/format.h>

#include <span>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "lab/next_item/methods.h"
#include "lab/next_item/sequence_ranking.h"
#include "lab/next_item/sequence_runs.h"

namespace tacit::lab {
namespace {

// The version of a run's record and of how runs are made; runs of older versions are made again.
constexpr int kSequenceRunFormat = 4;

Result<SequenceRun> MakeRun(const SequenceTask& task, const SequenceSplit& split,
                            const SequenceSetting& setting, const SequenceExperiment& experiment,
                            const SequenceProgress& tell) {
  const SystemClock clock;
  WorkerPool workers({.workers = experiment.workers});
  const auto noise = noise::MakeNoiseSource(workers);
  const auto method = MakeSequenceMethod(task.learner, setting);
  std::vector<SequenceLook> curve;
  if (experiment.look_epochs > 0)
    method->Watch(experiment.look_epochs, [&](double epochs) {
      const RankingQuality quality = MeasureRanking(*method, split, workers);
      curve.push_back({epochs, quality.ndcg10, quality.hit10});
    });
  const auto start = clock.Now();
  // Ranking is a small part of the work, at the end.
  auto spent = method->Fit(split.train, {.epsilon = task.epsilon, .delta = experiment.delta},
                           *noise, workers, [&](double share) { tell(0.95 * share); });
  if (!spent) return Fail(std::move(spent.error()));
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
                     .score_seconds = Seconds(clock.Now() - fitted),
                     .curve = std::move(curve)};
}

}  // namespace

Result<std::vector<SequenceRow>> RunSequenceExperiment(const SequenceData& data,
                                                       const SequenceSetting& setting,
                                                       const SequenceExperiment& experiment,
                                                       SequenceResults* results) {
  const SequenceSplit split = LeaveLastOut(data.histories, experiment.validate);
  if (split.user.empty())
    return Fail(
        ErrorCode::kInvalidArgument,
        data.path + ": there is no user to ask about: every user has fewer than three items");
  const auto id_of = [&](const std::string& learner, double epsilon, uint64_t seed) {
    const Digest digest =
        Sha256()
            .Update(fmt::format("tacit evaluate sequence {}\n{}\n{}\n{}\n{} {} {} {}\n",
                                kSequenceRunFormat, data.identity,
                                SequenceMethodIdentity(learner, setting), experiment.catalogue,
                                epsilon, experiment.delta, experiment.validate, seed))
            .Update(experiment.look_epochs > 0 && !LearnsAtOnce(learner)
                        ? fmt::format("looked at every {} epochs\n", experiment.look_epochs)
                        : "")
            .Finish();
    return ToHex(std::span(digest).first(16));
  };
  std::vector<SequenceTask> tasks;
  for (uint64_t seed = 0; seed < experiment.seeds; ++seed)
    for (const std::string& learner : experiment.learners)
      for (const double epsilon : experiment.epsilons) {
        SequenceTask task{id_of(learner, epsilon, seed), learner, epsilon, seed};
        if (!results->Find(task.id)) tasks.push_back(std::move(task));
      }
  TACIT_RETURN_IF_ERROR(MakeSequenceRuns(
      tasks, experiment.jobs, experiment.show_progress,
      [&](const SequenceTask& task, const SequenceProgress& tell) {
        return MakeRun(task, split, setting, experiment, tell);
      },
      results));
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

}  // namespace tacit::lab
