#include "train/progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace tacit::train {
namespace {

// Events in one window of the running AUC.
constexpr uint64_t kWindowEvents = 50000;
constexpr uint64_t kWindowAsked = 2000;  // and of the running share of hits

}  // namespace

EventTimes EventTimes::Of(std::span<const int64_t> timestamps_ms) {
  EventTimes times;
  for (const int64_t at : timestamps_ms) {
    if (times.first_ms == 0) times.first_ms = at;
    times.last_ms = std::max(times.last_ms, at);
  }
  return times;
}

Progress::Progress(size_t learners) : accounts_(learners) {}

void Progress::Predicted::Add(std::span<const float> logits, std::span<const float> labels,
                              double loss) {
  events += logits.size();
  loss_sum += loss;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float probability = 1 / (1 + std::exp(-logits[i]));
    const bool click = labels[i] > 0.5f;
    auc.AddProbability(probability, click);
    clicks += click ? 1 : 0;
    predicted += static_cast<double>(probability);
  }
}

void Progress::Predicted::Merge(const Predicted& other) {
  auc.Merge(other.auc);
  events += other.events;
  clicks += other.clicks;
  loss_sum += other.loss_sum;
  predicted += other.predicted;
}

void Progress::Predicted::Describe(DayRow* day) const {
  day->events += events;
  day->clicks = clicks;
  day->loss_sum = loss_sum;
  day->predicted = predicted;
  day->auc = auc.Auc();
  day->auc_deviation =
      AucDeviation(day->auc, static_cast<double>(clicks), static_cast<double>(events - clicks));
}

void Progress::Fold(Account* account) {
  account->today.Merge(account->open);
  account->recent.Merge(account->open);
  account->open = {};
  if (account->recent.events >= kWindowEvents)
    account->previous = std::exchange(account->recent, {});
}

DayRow Progress::CloseDay(Account* account, const std::string& name) {
  std::exchange(account->today, {}).Describe(&account->current);
  account->current.name = name;
  account->finished.push_back(std::exchange(account->current, {}));
  return account->finished.back();
}

void Progress::AddPredictions(size_t learner, std::span<const float> logits,
                              std::span<const float> labels, double loss_sum, EventTimes times) {
  TACIT_CHECK(logits.size() == labels.size());
  const MutexLock lock(mutex_);
  Account& account = accounts_[learner];
  account.view.events += logits.size();
  const uint64_t clicks = account.open.clicks;
  const double predicted = account.open.predicted;
  account.open.Add(logits, labels, loss_sum);
  account.history.Add({.events = logits.size(),
                       .clicks = account.open.clicks - clicks,
                       .loss_sum = loss_sum,
                       .predicted = account.open.predicted - predicted,
                       .first_ms = times.first_ms,
                       .last_ms = times.last_ms});
  if (account.open.events >= kWindowEvents) Fold(&account);
}

void Progress::AddRankings(size_t learner, uint64_t examples, const RankTotals& ranked,
                           EventTimes times) {
  const MutexLock lock(mutex_);
  Account& account = accounts_[learner];
  account.view.events += examples;
  account.current.events += examples;
  account.current.ranked.Merge(ranked);
  account.history.Add(
      {.events = examples, .ranked = ranked, .first_ms = times.first_ms, .last_ms = times.last_ms});
  account.recent_ranked.Merge(ranked);
  if (account.recent_ranked.asked < kWindowAsked) return;
  account.previous_ranked = std::exchange(account.recent_ranked, {});
}

void Progress::AddStep(size_t learner, uint64_t rows_written, double epsilon) {
  const MutexLock lock(mutex_);
  Account& account = accounts_[learner];
  ++account.view.steps;
  DayRow& day = account.current;
  ++day.steps;
  day.rows_written += rows_written;
  day.epsilon = epsilon;
}

std::optional<DayRow> Progress::EndDay(size_t learner, const std::string& name) {
  const MutexLock lock(mutex_);
  Account& account = accounts_[learner];
  Fold(&account);
  if (account.current.steps == 0) return std::nullopt;
  return CloseDay(&account, name);
}

void Progress::EndHeldOutDay(size_t learner, const std::string& name) {
  const MutexLock lock(mutex_);
  Account& account = accounts_[learner];
  Fold(&account);
  account.current.held_out = true;
  CloseDay(&account, name);
}

void Progress::Committed(size_t learner, double epsilon) {
  const MutexLock lock(mutex_);
  accounts_[learner].view.epsilon = epsilon;
}

Progress::View Progress::view(size_t learner) const {
  const MutexLock lock(mutex_);
  const Account& account = accounts_[learner];
  View view = account.view;
  Predicted window = account.previous;
  window.Merge(account.recent);
  window.Merge(account.open);
  view.auc = window.auc.Auc();
  view.entropy = NormalisedEntropy(window.loss_sum, window.clicks, window.events);
  view.calibration = Calibration(window.predicted, window.clicks);
  view.ranked = account.previous_ranked;
  view.ranked.Merge(account.recent_ranked);
  return view;
}

std::vector<QualityPoint> Progress::quality(size_t learner) const {
  const MutexLock lock(mutex_);
  return accounts_[learner].history.points();
}

std::vector<DayRow> Progress::days(size_t learner) const {
  const MutexLock lock(mutex_);
  const Account& account = accounts_[learner];
  std::vector<DayRow> days = account.finished;
  DayRow current = account.current;
  if (current.steps == 0) return days;
  Predicted predicted = account.today;
  predicted.Merge(account.open);
  predicted.Describe(&current);
  days.push_back(std::move(current));
  return days;
}

}  // namespace tacit::train
