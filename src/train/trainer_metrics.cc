#include "train/trainer_metrics.h"

#include <cmath>
#include <string>
#include <utility>

namespace tacit::train {

using metrics::Audience;

namespace {

// Registers how good the learner's last predictions were, beside their baselines. They are NaN for
// what the learner does not predict.
void ShowProgress(metrics::Registry& registry, const metrics::Labels& labels,
                  const Progress& progress, size_t learner) {
  const auto gauge = [&](const char* name, const char* help) {
    return registry.AddGauge(Audience::kOperator, name, help, labels);
  };
  const auto auc = gauge("tacit_auc", "AUC of the last predictions, made before learning");
  const auto entropy =
      gauge("tacit_normalised_entropy",
            "Log loss of the last predictions over that of the best constant; below 1 is better");
  const auto calibration =
      gauge("tacit_calibration", "Clicks that the last predictions add up to, over clicks");
  const auto hits =
      gauge("tacit_hit_at_10", "Share of the last next items that were among the model's ten best");
  const auto gain = gauge("tacit_ndcg_at_10",
                          "Mean of 1 / log2(place + 1) of the last next items, 0 beyond place 10");
  const auto popular_hits = gauge("tacit_popularity_hit_at_10",
                                  "Share of them that were among the ten most popular items");
  const auto successor_hits =
      gauge("tacit_successor_hit_at_10",
            "Share of them that were among the ten most frequent successors of the last item");
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
    const auto gauge = [&](Audience audience, const char* name, const char* help) {
      return registry.AddGauge(audience, name, help, labels);
    };
    const auto counter = [&](const char* name, const char* help) {
      return registry.AddCounter(Audience::kOperator, name, help, labels);
    };
    learners_.push_back(
        {.exhausted = gauge(Audience::kPublic, "tacit_privacy_budget_exhausted",
                            "1 when the next step would exceed the budget"),
         .events = counter("tacit_events_learnt_total", "Examples in steps taken"),
         .rows_touched =
             counter("tacit_rows_touched_total", "Distinct embedding rows activated, per step"),
         .rows_written = counter("tacit_rows_written_total", "Embedding rows written"),
         .units_clipped =
             counter("tacit_units_clipped_total", "Privacy units whose gradient was clipped"),
         .units_refused = counter("tacit_users_left_out_total",
                                  "Users left out of a step or a period, their allowance used"),
         .loss = gauge(Audience::kOperator, "tacit_training_loss",
                       "Mean loss of the last step, before learning from it; NaN: it has none"),
         .step_seconds = registry.AddHistogram(Audience::kOperator, "tacit_step_seconds",
                                               "Time one private update takes", seconds, labels),
         .phase_seconds = {},
         .cache_hits = counter("tacit_row_cache_hits_total", "Rows asked for that were in memory"),
         .cache_misses = counter("tacit_row_cache_misses_total",
                                 "Rows asked for that were read from the store"),
         .cache_read_ahead = counter("tacit_row_cache_read_ahead_total",
                                     "Of these, rows that were read while the step before ran"),
         .cache_evictions =
             counter("tacit_row_cache_evictions_total", "Rows that had to leave the memory"),
         .cache_bytes = gauge(Audience::kOperator, "tacit_row_cache_bytes", "Rows in memory")});
    PerLearner& learner = learners_.back();
    learner.loss.Set(NAN);
    for (size_t phase = 0; phase < kStepPhaseNames.size(); ++phase)
      learner.phase_seconds[phase] = registry.AddCounter(
          Audience::kOperator, "tacit_step_phase_seconds_total",
          "Time in the phases of private updates, of learners that measure them",
          {{"learner", id}, {"phase", std::string(kStepPhaseNames[phase])}});
  }
  commit_seconds_ = registry.AddHistogram(Audience::kOperator, "tacit_commit_seconds",
                                          "Time a commit takes, until it is published", seconds);
  commit_bytes_ = registry.AddCounter(Audience::kOperator, "tacit_commit_bytes_total",
                                      "Bytes that commits have written");
  folded_rows_ = registry.AddCounter(Audience::kOperator, "tacit_rows_folded_total",
                                     "Rows that were moved to their place in the table");
  unfolded_deltas_ = registry.AddGauge(Audience::kOperator, "tacit_unfolded_deltas",
                                       "Commits not yet folded into sorted files");
  queued_ =
      registry.AddGauge(Audience::kOperator, "tacit_steps_queued",
                        "Steps that are ready for training; 0: training waits for the source");
  waits_ = registry.AddCounter(Audience::kOperator, "tacit_step_waits_total",
                               "Steps that training had to wait for");
  wait_seconds_ = registry.AddCounter(Audience::kOperator, "tacit_step_wait_seconds_total",
                                      "Time that training has waited for steps it then took");
  witnesses_lost_ = registry.AddCounter(
      Audience::kOperator, "tacit_witness_lost_total",
      "Times that the witness or the mark was removed while in use, and had to be written anew");
}

void TrainerMetrics::Step(size_t learner, const StepReport& report, uint64_t units_refused,
                          double seconds) {
  const PerLearner& l = learners_[learner];
  l.events.Add(static_cast<double>(report.examples));
  l.rows_touched.Add(static_cast<double>(report.rows_touched));
  l.rows_written.Add(static_cast<double>(report.rows_written));
  l.units_clipped.Add(static_cast<double>(report.units_clipped));
  l.units_refused.Add(static_cast<double>(units_refused));
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

void TrainerMetrics::Stored(const store::Store::Stats& stats) {
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

void TrainerMetrics::Exhausted(size_t learner) { learners_[learner].exhausted.Set(1); }

}  // namespace tacit::train
