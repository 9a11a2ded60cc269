#include "lab/next_item/stream_experiment.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

#include "base/hash.h"
#include "base/text.h"
#include "lab/next_item/methods.h"
#include "lab/next_item/sequence_runs.h"
#include "lab/next_item/stream_replay.h"

namespace tacit::lab {
namespace {

// The version of a run's record and of how runs are made; runs of older versions are made again.
constexpr int kStreamRunFormat = 2;

Result<SequenceRun> MakeRun(const SequenceTask& task, const SequenceStream& stream,
                            const SequenceSetting& setting, const StreamExperiment& experiment,
                            const SequenceProgress& tell) {
  const EpsilonDelta privacy{.epsilon = task.epsilon, .delta = experiment.common.delta};
  WorkerPool workers({.workers = experiment.common.workers});
  const auto noise = noise::MakeNoiseSource(workers);
  const auto method = MakeStreamMethod(task.learner, setting, workers);
  const StreamPlan plan{.period_events = experiment.period_events,
                        .user_periods = task.user_periods,
                        .mu = MuOf(privacy) / std::sqrt(task.user_periods),
                        .context = method->context()};
  TACIT_ASSIGN(const StreamOutcome outcome,
               ReplayStream(stream, plan, *method, *noise, workers, tell));
  return SequenceRun{.id = task.id,
                     .learner = task.learner,
                     .epsilon = task.epsilon,
                     .delta = privacy.delta,
                     .seed = task.seed,
                     .ndcg10 = outcome.all.ndcg10,
                     .hit10 = outcome.all.hit10,
                     .users = outcome.all.events,
                     .epsilon_spent = EpsilonOf(outcome.mu_squared, privacy),
                     .fit_seconds = outcome.learn_seconds,
                     .score_seconds = outcome.ask_seconds,
                     .user_periods = task.user_periods,
                     .tenths = outcome.tenths};
}

}  // namespace

Result<std::vector<SequenceRow>> RunStreamExperiment(const SequenceStream& stream,
                                                     const SequenceSetting& setting,
                                                     const StreamExperiment& experiment,
                                                     SequenceResults* results) {
  const SequenceExperiment& common = experiment.common;
  if (experiment.period_events >= stream.user.size())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} records are one period of {}: there is nothing to ask about "
                            "after it",
                            stream.data.path, stream.user.size(), experiment.period_events));
  const auto task_of = [&](const std::string& learner, uint32_t user_periods, double epsilon,
                           uint64_t seed) {
    const Digest digest =
        Sha256()
            .Update(fmt::format("tacit evaluate sequence --stream {}\n{}\n{}\n{}\n{} {} {} {} {}\n",
                                kStreamRunFormat, stream.data.identity,
                                StreamMethodIdentity(learner, setting), common.catalogue, epsilon,
                                common.delta, experiment.period_events, user_periods, seed))
            .Finish();
    return SequenceTask{ToHex(std::span(digest).first(16)), learner, epsilon, seed, user_periods};
  };
  std::vector<SequenceTask> tasks;
  for (uint64_t seed = 0; seed < common.seeds; ++seed)
    for (const std::string& learner : common.learners)
      for (const uint32_t user_periods : experiment.user_periods)
        for (const double epsilon : common.epsilons) {
          SequenceTask task = task_of(learner, user_periods, epsilon, seed);
          if (!results->Find(task.id)) tasks.push_back(std::move(task));
        }
  TACIT_RETURN_IF_ERROR(MakeSequenceRuns(
      tasks, common.jobs, common.show_progress,
      [&](const SequenceTask& task, const SequenceProgress& tell) {
        return MakeRun(task, stream, setting, experiment, tell);
      },
      results));
  std::vector<SequenceRow> rows;
  for (const std::string& learner : common.learners)
    for (const uint32_t user_periods : experiment.user_periods)
      for (const double epsilon : common.epsilons) {
        std::vector<SequenceRun> runs;
        for (uint64_t seed = 0; seed < common.seeds; ++seed)
          runs.push_back(*results->Find(task_of(learner, user_periods, epsilon, seed).id));
        rows.push_back(MakeSequenceRow(runs));
      }
  return rows;
}

}  // namespace tacit::lab
