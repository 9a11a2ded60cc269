#include "lab/next_item/sequence_experiment.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "lab/next_item/methods.h"
#include "lab/next_item/sequence_ranking.h"
#include "lab/next_item/stream_replay.h"
#include "lab/runs.h"

namespace tacit::lab {
namespace {

// The version of a run's record and of how runs are made; runs of older versions are made again.
constexpr int kSequenceRunFormat = 5;

class Experiment {
 public:
  Experiment(const SequenceStream& data, const SequenceSetting& setting,
             const SequenceExperiment& options)
      : data_(data), setting_(setting), options_(options) {
    if (!streams()) split_ = LeaveLastOut(data.data.histories, options.validate);
  }

  Status Check() const;
  // The runs of a row, without results yet: one for each seed.
  std::vector<SequenceRun> RunsOf(const std::string& learner, uint32_t user_periods,
                                  double epsilon) const;
  // Fills in the results.
  Status Make(SequenceRun* run, const TellShare& tell) const {
    return streams() ? Replay(run, tell) : Fit(run, tell);
  }

 private:
  bool streams() const { return options_.period_events > 0; }
  std::string IdOf(const SequenceRun& run) const;
  Status Fit(SequenceRun* run, const TellShare& tell) const;
  Status Replay(SequenceRun* run, const TellShare& tell) const;

  const SequenceStream& data_;
  const SequenceSetting& setting_;
  const SequenceExperiment& options_;
  SequenceSplit split_;
};

Status Experiment::Check() const {
  const std::string& path = data_.data.path;
  if (!streams() && split_.user.empty())
    return Fail(ErrorCode::kInvalidArgument,
                path + ": there is no user to ask about: every user has fewer than three items");
  if (streams() && options_.period_events >= data_.user.size())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} records are one period of {}: there is nothing to ask about "
                            "after it",
                            path, data_.user.size(), options_.period_events));
  return {};
}

std::string Experiment::IdOf(const SequenceRun& run) const {
  const bool looked_at = options_.look_epochs > 0 && !LearnsAtOnce(run.learner);
  const std::string method = streams() ? StreamMethodIdentity(run.learner, setting_)
                                       : SequenceMethodIdentity(run.learner, setting_);
  const Digest digest =
      Sha256()
          .Update(fmt::format("tacit evaluate sequence {}\n{}\n{}\n{}\n", kSequenceRunFormat,
                              data_.data.identity, method, options_.catalogue))
          .Update(fmt::format(
              "{} {} {} {}\n", run.epsilon, run.delta, run.seed,
              streams()
                  ? fmt::format("{} {}", options_.period_events, run.user_periods)
                  : fmt::format("{} {}", options_.validate, looked_at ? options_.look_epochs : 0)))
          .Finish();
  return ToHex(std::span(digest).first(16));
}

std::vector<SequenceRun> Experiment::RunsOf(const std::string& learner, uint32_t user_periods,
                                            double epsilon) const {
  std::vector<SequenceRun> runs;
  for (uint64_t seed = 0; seed < options_.seeds; ++seed) {
    SequenceRun& run = runs.emplace_back();
    run.learner = learner;
    run.epsilon = epsilon;
    run.delta = options_.delta;
    run.seed = seed;
    run.user_periods = user_periods;
    run.id = IdOf(run);
  }
  return runs;
}

// Learns all histories at once, then asks for what was left out.
Status Experiment::Fit(SequenceRun* run, const TellShare& tell) const {
  const SystemClock clock;
  WorkerPool workers({.workers = options_.workers});
  const auto noise = noise::MakeNoiseSource(workers);
  SequenceMethod method(run->learner, setting_);
  if (options_.look_epochs > 0)
    method.Watch(options_.look_epochs, [&](double epochs) {
      const RankingQuality quality = MeasureRanking(method, split_, workers);
      run->curve.push_back({epochs, quality.ndcg10, quality.hit10});
    });
  const auto start = clock.Now();
  // Ranking is a small part of the work, at the end.
  TACIT_ASSIGN(run->epsilon_spent,
               method.Fit(split_.train, {.epsilon = run->epsilon, .delta = run->delta}, *noise,
                          workers, [&](double share) { tell(0.95 * share); }));
  const auto fitted = clock.Now();
  const RankingQuality quality = MeasureRanking(method, split_, workers);
  tell(1);
  run->ndcg10 = quality.ndcg10;
  run->hit10 = quality.hit10;
  run->users = quality.users;
  run->fit_seconds = Seconds(fitted - start);
  run->score_seconds = Seconds(clock.Now() - fitted);
  return {};
}

// Predicts, then learns, period by period.
Status Experiment::Replay(SequenceRun* run, const TellShare& tell) const {
  const EpsilonDelta privacy{.epsilon = run->epsilon, .delta = run->delta};
  WorkerPool workers({.workers = options_.workers});
  const auto noise = noise::MakeNoiseSource(workers);
  const auto method = MakeStreamMethod(run->learner, setting_, workers);
  const StreamPlan plan{.period_events = options_.period_events,
                        .user_periods = run->user_periods,
                        .mu = MuOf(privacy) / std::sqrt(run->user_periods),
                        .context = method->context()};
  TACIT_ASSIGN(StreamOutcome outcome, ReplayStream(data_, plan, *method, *noise, workers, tell));
  run->ndcg10 = outcome.all.ndcg10;
  run->hit10 = outcome.all.hit10;
  run->users = outcome.all.events;
  run->epsilon_spent = EpsilonOf({.mu_squared = outcome.mu_squared}, privacy);
  run->fit_seconds = outcome.learn_seconds;
  run->score_seconds = outcome.ask_seconds;
  run->tenths = std::move(outcome.tenths);
  run->cold = {outcome.cold};
  return {};
}

std::string RunName(const SequenceRun& run) {
  return fmt::format("{} at epsilon {}", run.learner,
                     std::isinf(run.epsilon) ? "none" : fmt::format("{:g}", run.epsilon));
}

}  // namespace

Result<std::vector<SequenceRow>> RunSequenceExperiment(const SequenceStream& data,
                                                       const SequenceSetting& setting,
                                                       const SequenceExperiment& options,
                                                       SequenceResults* results) {
  const Experiment experiment(data, setting, options);
  TACIT_RETURN_IF_ERROR(experiment.Check());
  std::vector<std::vector<SequenceRun>> rows;
  for (const std::string& learner : options.learners)
    for (const uint32_t user_periods : options.user_periods)
      for (const double epsilon : options.epsilons)
        rows.push_back(experiment.RunsOf(learner, user_periods, epsilon));
  std::vector<SequenceRun*> missing;  // a seed of every row, then the next one
  for (uint64_t seed = 0; seed < options.seeds; ++seed)
    for (std::vector<SequenceRun>& row : rows)
      if (!results->Find(row[seed].id)) missing.push_back(&row[seed]);
  TACIT_RETURN_IF_ERROR(MakeRuns({.number = missing.size(),
                                  .name = [&](size_t i) { return RunName(*missing[i]); },
                                  .make = [&](size_t i, const TellShare& tell) -> Status {
                                    TACIT_RETURN_IF_ERROR(experiment.Make(missing[i], tell));
                                    return results->Add(*missing[i]);
                                  }},
                                 options.jobs, options.show_progress));
  std::vector<SequenceRow> made;
  for (std::vector<SequenceRun>& row : rows) {
    for (SequenceRun& run : row) run = *results->Find(run.id);
    made.push_back(MakeSequenceRow(row));
  }
  return made;
}

}  // namespace tacit::lab
