#include "train/trainer_metrics.h"

#include <cmath>
#include <string>
#include <utility>

#include "metrics/families.h"

namespace tacit::train {

namespace {

// Registers how good the learner's last predictions were, beside their baselines. They are NaN for
// what the learner does not predict.
void ShowProgress(metrics::Registry& registry, const metrics::Labels& labels,
                  const Progress& progress, size_t learner) {
  const auto gauge = [&](metrics::GaugeName name) { return registry.AddGauge(name, labels); };
  const auto auc = gauge("tacit_auc");
  const auto entropy = gauge("tacit_normalised_entropy");
  const auto calibration = gauge("tacit_calibration");
  const auto hits = gauge("tacit_hit_at_10");
  const auto gain = gauge("tacit_ndcg_at_10");
  const auto popular_hits = gauge("tacit_popularity_hit_at_10");
  const auto successor_hits = gauge("tacit_successor_hit_at_10");
  registry.BeforeScrape([=, &progress] {
    const Progress::View view = progress.view(learner);
    entropy.Set(view.entropy);
    calibration.Set(view.calibration);
    auc.Set(std::isnan(view.entropy) ? NAN : view.auc);
    const RankTotals& ranked = view.ranked;
    hits.Set(ranked.Hit(ranked.model));
    gain.Set(ranked.Ndcg(ranked.model));
    popular_hits.Set(ranked.Hit(ranked.popular));
    successor_hits.Set(ranked.Hit(ranked.successor));
  });
}

}  // namespace

TrainerMetrics::TrainerMetrics(metrics::Registry& registry,
                               const std::vector<std::string>& learners, const Progress& progress) {
  for (size_t i = 0; i < learners.size(); ++i)
    ShowProgress(registry, {{"learner", learners[i]}}, progress, i);
  const std::vector<double> seconds = metrics::ExponentialBounds(0.001, 2, 14);
  for (const std::string& id : learners) {
    const metrics::Labels labels{{"learner", id}};
    const auto gauge = [&](metrics::GaugeName name) { return registry.AddGauge(name, labels); };
    const auto counter = [&](metrics::CounterName name) {
      return registry.AddCounter(name, labels);
    };
    learners_.push_back(
        {.exhausted = gauge("tacit_privacy_budget_exhausted"),
         .total_exhausted = gauge("tacit_privacy_total_budget_exhausted"),
         .events = counter("tacit_events_learnt_total"),
         .rows_touched = counter("tacit_rows_touched_total"),
         .rows_written = counter("tacit_rows_written_total"),
         .units_clipped = counter("tacit_units_clipped_total"),
         .users_left_out = counter("tacit_users_left_out_total"),
         .records_left_out = counter("tacit_records_left_out_total"),
         .loss = gauge("tacit_training_loss"),
         .step_seconds = registry.AddHistogram("tacit_step_seconds", seconds, labels),
         .phase_seconds = {},
         .cache_hits = counter("tacit_row_cache_hits_total"),
         .cache_misses = counter("tacit_row_cache_misses_total"),
         .cache_read_ahead = counter("tacit_row_cache_read_ahead_total"),
         .cache_evictions = counter("tacit_row_cache_evictions_total"),
         .cache_bytes = gauge("tacit_row_cache_bytes")});
    PerLearner& learner = learners_.back();
    learner.loss.Set(NAN);
    for (size_t phase = 0; phase < kStepPhaseNames.size(); ++phase)
      learner.phase_seconds[phase] =
          registry.AddCounter("tacit_step_phase_seconds_total",
                              {{"learner", id}, {"phase", std::string(kStepPhaseNames[phase])}});
  }
  commit_seconds_ = registry.AddHistogram("tacit_commit_seconds", seconds);
  commit_bytes_ = registry.AddCounter("tacit_commit_bytes_total");
  folded_rows_ = registry.AddCounter("tacit_rows_folded_total");
  unfolded_deltas_ = registry.AddGauge("tacit_unfolded_deltas");
  queued_ = registry.AddGauge("tacit_steps_queued");
  waits_ = registry.AddCounter("tacit_step_waits_total");
  wait_seconds_ = registry.AddCounter("tacit_step_wait_seconds_total");
  witnesses_lost_ = registry.AddCounter("tacit_witness_lost_total");
}

void TrainerMetrics::Step(size_t learner, const StepReport& report, const UsersCame& came,
                          double seconds) {
  const PerLearner& l = learners_[learner];
  l.events.Add(static_cast<double>(report.examples));
  l.rows_touched.Add(static_cast<double>(report.rows_touched));
  l.rows_written.Add(static_cast<double>(report.rows_written));
  l.units_clipped.Add(static_cast<double>(report.units_clipped));
  l.users_left_out.Add(static_cast<double>(came.users_left_out));
  l.records_left_out.Add(static_cast<double>(came.records_left_out));
  if (const uint64_t losses = report.losses + report.earlier_losses; losses > 0)
    l.loss.Set((report.loss_sum + report.earlier_loss_sum) / static_cast<double>(losses));
  l.step_seconds.Observe(seconds);
  for (size_t phase = 0; phase < report.phases.size(); ++phase)
    l.phase_seconds[phase].Add(report.phases[phase]);
}

void TrainerMetrics::Cached(size_t learner, const store::WorkingRows::Stats& stats) {
  const PerLearner& l = learners_[learner];
  l.cache_hits.RaiseTo(static_cast<double>(stats.hits));
  l.cache_misses.RaiseTo(static_cast<double>(stats.misses));
  l.cache_read_ahead.RaiseTo(static_cast<double>(stats.read_ahead));
  l.cache_evictions.RaiseTo(static_cast<double>(stats.evictions));
  l.cache_bytes.Set(static_cast<double>(stats.bytes));
}

void TrainerMetrics::Stored(const store::Committer::Stats& stats) {
  if (std::exchange(commits_before_, stats.commits) != stats.commits)
    commit_seconds_.Observe(stats.last_commit_ms / 1000);
  commit_bytes_.RaiseTo(static_cast<double>(stats.commit_bytes));
  folded_rows_.RaiseTo(static_cast<double>(stats.folded_rows));
  unfolded_deltas_.Set(static_cast<double>(stats.unfolded_deltas));
  witnesses_lost_.RaiseTo(static_cast<double>(stats.witnesses_lost));
}

void TrainerMetrics::Queued(size_t steps, double waited_seconds) {
  queued_.Set(static_cast<double>(steps));
  if (waited_seconds > 0) waits_.Add(1);
  wait_seconds_.Add(waited_seconds);
}

void TrainerMetrics::Exhausted(size_t learner, privacy::Spent spent) {
  learners_[learner].exhausted.Set(1);
  if (spent == privacy::Spent::kTotal) learners_[learner].total_exhausted.Set(1);
}

}  // namespace tacit::train
