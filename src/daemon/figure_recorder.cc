#include "daemon/figure_recorder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/interval.h"
#include "event/bad_record.h"

namespace tacit::daemon {
namespace {

serve::QualityFigures FiguresOf(const train::QualityPoint& point) {
  const train::RankTotals& ranked = point.ranked;
  return {.events = point.events,
          .clicks = point.clicks,
          .loss_sum = point.loss_sum,
          .predicted = point.predicted,
          .asked = ranked.asked,
          .hits = ranked.model.hits,
          .popular_hits = ranked.popular.hits,
          .successor_hits = ranked.successor.hits,
          .gain = ranked.model.gain,
          .first_ms = point.first_ms,
          .last_ms = point.last_ms};
}

}  // namespace

FigureRecorder::FigureRecorder(const wiring::Assembly& assembly, wiring::Learning& learning,
                               const train::Progress& progress, const stream::Source& source,
                               const store::Store& store, const AllowanceCensus& census,
                               const Clock& clock)
    : assembly_(assembly),
      learning_(learning),
      progress_(progress),
      source_(source),
      store_(store),
      census_(census),
      clock_(clock) {
  Record();
  thread_.Start("tacit-figures", [this] {
    while (thread_.Rest(SampleRings::kEvery)) Record();
  });
}

void FigureRecorder::Record() {
  const MutexLock lock(mutex_);
  rings_.Add(Sample());
}

serve::StreamSample FigureRecorder::Sample() const {
  const train::Intake& intake = learning_.intake();
  serve::StreamSample sample{.time_ms = clock_.UnixMillis(),
                             .read = intake.records_read(),
                             .dead = intake.records_dead(),
                             .ahead = intake.records_ahead(),
                             .commits = store_.Latest()->version().value};
  for (const train::StepTotals::Learner& learner : learning_.trainer().step_totals().learners)
    sample.learnt = std::max(sample.learnt, learner.examples);
  return sample;
}

serve::LearnerFigures FigureRecorder::OfLearner(const wiring::LearnerPlan& plan,
                                                const train::StepTotals::Learner& steps) const {
  serve::LearnerFigures figures;
  figures.learner = plan.id;
  figures.recommends = plan.recommends;
  const train::Progress::View view = progress_.view(plan.index.value);
  figures.auc = std::isnan(view.entropy) ? NAN : view.auc;
  const Interval auc = ProbabilityInterval(figures.auc, view.auc_deviation);
  figures.auc_low = auc.low;
  figures.auc_high = auc.high;
  for (const train::QualityPoint& point : progress_.quality(plan.index.value))
    figures.quality.push_back(FiguresOf(point));
  figures.account_seconds = steps.seconds.account;
  figures.learn_seconds = steps.seconds.learn;
  figures.observe_seconds = steps.seconds.observe;
  figures.steps = steps.steps;
  figures.examples = steps.examples;
  figures.units = steps.units;
  figures.units_clipped = steps.units_clipped;
  figures.came = steps.came;
  figures.rows_touched = steps.rows_touched;
  figures.rows_written = steps.rows_written;
  figures.cache_hits = steps.cache.hits;
  figures.cache_misses = steps.cache.misses;
  figures.cache_read_ahead = steps.cache.read_ahead;
  figures.cache_evictions = steps.cache.evictions;
  figures.cache_bytes = steps.cache.bytes;
  if (const auto counted = census_.last(plan.index)) {
    figures.users = counted->left;
    figures.users_counted_ms = counted->time_ms;
  }
  return figures;
}

serve::OperatorFigures FigureRecorder::Figures(serve::LookBack back) const {
  const train::Intake& intake = learning_.intake();
  const train::StepTotals::View steps = learning_.trainer().step_totals();
  const store::Store::Stats stored = store_.stats();
  serve::OperatorFigures figures;
  {
    const MutexLock lock(mutex_);
    figures.samples = rings_.Of(back);
  }
  const std::chrono::milliseconds every =
      SampleRings::kEvery * SampleRings::kStrides[static_cast<size_t>(back)];
  figures.every_ms = every.count();
  figures.read = intake.records_read();
  figures.dead = intake.records_dead();
  figures.good = intake.records_good();
  figures.ahead = intake.records_ahead();
  figures.source_alert = source_.health().alert;
  for (size_t part = 0; part < event::kBadParts; ++part)
    if (const uint64_t dead = learning_.dead_letters().dead(part); dead > 0)
      figures.dead_letters.push_back({event::kBadPartNames[part], dead});
  figures.wait_seconds = steps.wait_seconds;
  figures.commit_seconds = steps.commit_seconds;
  figures.last_commit_seconds = stored.last_commit_ms / 1000;
  figures.steps_queued = steps.steps_queued;
  figures.unfolded_deltas = stored.unfolded_deltas;
  for (const wiring::LearnerPlan& plan : assembly_.learners)
    figures.learners.push_back(OfLearner(plan, steps.learners[plan.index.value]));
  return figures;
}

}  // namespace tacit::daemon
