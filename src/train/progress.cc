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
// A stretch that is judged.
constexpr uint64_t kStretchEvents = 10000, kStretchAsked = 500;
// An AUC that no honest feature gives, over this many labels of either kind at least.
constexpr double kTooGoodAuc = 0.99;
constexpr uint64_t kTooGoodLabels = 20;

}  // namespace

Interval PredictedFigures::EntropyInterval() const {
  const double entropy = EntropyOf(*this), half = kDeviationsOf95 * entropy_deviation;
  return {entropy - half, entropy + half};
}

bool PredictedFigures::IsTooGood() const {
  return auc > kTooGoodAuc && std::min(clicks, events - clicks) >= kTooGoodLabels;
}

EventTimes EventTimes::Of(std::span<const int64_t> timestamps_ms) {
  EventTimes times;
  for (const int64_t at : timestamps_ms) {
    if (times.first_ms == 0) times.first_ms = at;
    times.last_ms = std::max(times.last_ms, at);
  }
  return times;
}

Progress::Progress(size_t learners) : accounts_(learners) {}

QualityPoint Progress::Predicted::Add(std::span<const float> logits, std::span<const float> labels,
                                      double loss, EventTimes times) {
  QualityPoint added{.events = logits.size(),
                     .loss_sum = loss,
                     .first_ms = times.first_ms,
                     .last_ms = times.last_ms};
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool click = labels[i] > 0.5f;
    added.clicks += click ? 1 : 0;
    added.predicted += static_cast<double>(Count(logits[i], click));
  }
  sums.Merge(added);
  return added;
}

QualityPoint Progress::Predicted::Add(const PartFigures& figures) {
  QualityPoint added{.events = figures.examples,
                     .loss_sum = static_cast<double>(figures.losses) * PartFigures::kStep,
                     .predicted = static_cast<double>(figures.predicted) * PartFigures::kStep};
  const auto bins = static_cast<uint32_t>(figures.bins.size() / 2);
  for (uint32_t bin = 0; bin < bins; ++bin) {
    const double middle = ScoreBins(bins).Middle(bin);
    const uint64_t misses = figures.bins[bin], clicks = figures.bins[bins + bin];
    if (misses > 0) Count(middle, false, misses);
    if (clicks > 0) Count(middle, true, clicks);
    added.clicks += clicks;
  }
  sums.Merge(added);
  return added;
}

float Progress::Predicted::Count(double logit, bool click, uint64_t times) {
  const double e = std::exp(-std::abs(logit));
  const auto probability = static_cast<float>((logit >= 0 ? 1 : e) / (1 + e));
  auc.AddProbability(probability, click, times);
  const double loss = std::max(0.0, click ? -logit : logit) + std::log(1 + e);
  (click ? click_loss : miss_loss) += loss * static_cast<double>(times);
  loss_squares += loss * loss * static_cast<double>(times);
  return probability;
}

void Progress::Predicted::Merge(const Predicted& other) {
  auc.Merge(other.auc);
  sums.Merge(other.sums);
  click_loss += other.click_loss;
  miss_loss += other.miss_loss;
  loss_squares += other.loss_squares;
}

// Over records that were drawn independently. An entropy is a ratio of two means, of the loss l of
// a record and of the loss c that the best constant has there: its deviation is that of the mean of
// l - entropy * c, over the constant's loss (the delta method).
double Progress::Predicted::EntropyDeviation() const {
  const double entropy = EntropyOf(sums);
  if (std::isnan(entropy)) return NAN;
  const auto events = static_cast<double>(sums.events), clicks = static_cast<double>(sums.clicks);
  const double of_click = -entropy * std::log(clicks / events);
  const double of_miss = -entropy * std::log(1 - clicks / events);
  const double squares = loss_squares - 2 * (of_click * click_loss + of_miss * miss_loss) +
                         clicks * of_click * of_click + (events - clicks) * of_miss * of_miss;
  return std::sqrt(std::max(0.0, squares) / events / (events - 1)) /
         ConstantLogLoss(sums.clicks, sums.events);
}

PredictedFigures Progress::Predicted::Figures() const {
  const AucEstimate estimate = auc.Estimate();
  return {sums, estimate.auc, estimate.deviation, EntropyDeviation()};
}

void Progress::Fold(Account* account) {
  account->today.Merge(account->open);
  account->recent.Merge(account->open);
  account->open = {};
  if (account->recent.sums.events >= kWindowEvents)
    account->previous = std::exchange(account->recent, {});
}

DayRow Progress::RowOf(const Account& account) {
  DayRow row = account.current;
  Predicted predicted = account.today;
  predicted.Merge(account.open);
  const bool both = account.blind && predicted.sums.events > 0;
  row.blind = !account.released || (account.blind && !both);
  if (both) row.after_release = predicted.Figures();
  if (account.blind) predicted.Merge(*account.blind);
  static_cast<PredictedFigures&>(row) = predicted.Figures();
  return row;
}

DayRow Progress::CloseDay(Account* account, const std::string& name, DayEnd end) {
  account->current.name = name;
  account->current.end = end;
  account->finished.push_back(RowOf(*account));
  if (account->released) account->judged.Merge(account->today);
  const double epsilon = account->current.epsilon;
  account->current = {};
  account->current.epsilon = epsilon;
  account->today = {};
  account->blind.reset();
  return account->finished.back();
}

void Progress::Resume(size_t learner) {
  const MutexLock lock(mutex_);
  accounts_[learner].released = true;
}

void Progress::AddPredictions(size_t learner, std::span<const float> logits,
                              std::span<const float> labels, double loss_sum, EventTimes times) {
  TACIT_CHECK(logits.size() == labels.size());
  const MutexLock lock(mutex_);
  Account& account = accounts_[learner];
  See(&account, account.open.Add(logits, labels, loss_sum, times));
}

void Progress::AddFigures(size_t learner, const PartFigures& figures) {
  const MutexLock lock(mutex_);
  Account& account = accounts_[learner];
  See(&account, account.open.Add(figures));
}

// Takes note of what was added to the open predictions.
void Progress::See(Account* account, const QualityPoint& added) {
  account->view.events += added.events;
  account->history.Add(added);
  if (account->released) account->stretch.Merge(added);
  if (account->open.sums.events >= kWindowEvents) Fold(account);
}

void Progress::AddRankings(size_t learner, uint64_t examples, const RankTotals& ranked,
                           EventTimes times) {
  const MutexLock lock(mutex_);
  Account& account = accounts_[learner];
  account.view.events += examples;
  const QualityPoint added{
      .events = examples, .ranked = ranked, .first_ms = times.first_ms, .last_ms = times.last_ms};
  account.today.sums.Merge(added);
  account.history.Add(added);
  if (account.released) account.stretch.Merge(added);
  account.recent_ranked.Merge(ranked);
  if (account.recent_ranked.asked < kWindowAsked) return;
  account.previous_ranked = std::exchange(account.recent_ranked, {});
}

void Progress::AddStep(size_t learner, uint64_t rows_written, double epsilon) {
  const MutexLock lock(mutex_);
  Account& account = accounts_[learner];
  if (!std::exchange(account.released, true)) {
    Fold(&account);
    if (account.today.sums.events > 0) account.blind = std::exchange(account.today, {});
  }
  View& view = account.view;
  ++view.steps;
  // A held period's later steps come without records.
  if (const uint64_t period = view.events - std::exchange(account.before_period, view.events)) {
    view.last_period = period;
    view.longest_period = std::max(view.longest_period, period);
  }
  DayRow& day = account.current;
  ++day.steps;
  day.rows_written += rows_written;
  day.epsilon = epsilon;
}

std::optional<DayRow> Progress::EndDay(size_t learner, const std::string& name, DayEnd end) {
  const MutexLock lock(mutex_);
  Account& account = accounts_[learner];
  Fold(&account);
  if (account.current.steps == 0 && account.today.sums.events == 0) return std::nullopt;
  return CloseDay(&account, name, end);
}

std::optional<DayRow> Progress::EndDay(size_t learner, std::span<const event::PublicCut> cuts) {
  DayEnd end;
  std::string first, last;
  for (const event::PublicCut& cut : cuts) {
    if (cut.kind != event::PublicCut::Kind::kFileEnd) continue;
    end = {.offset = cut.offset, .files = end.files + 1};
    if (end.files == 1) first = cut.name;
    last = cut.name;
  }
  if (end.files == 0) return std::nullopt;
  return EndDay(learner, end.files == 1 ? first : first + ".." + last, end);
}

void Progress::EndHeldOutDay(size_t learner, const std::string& name, DayEnd end) {
  const MutexLock lock(mutex_);
  Account& account = accounts_[learner];
  Fold(&account);
  account.current.held_out = true;
  if (!std::exchange(account.held_out, true)) account.judged = {};
  CloseDay(&account, name, end);
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
  const PredictedFigures figures = window.Figures();
  view.auc = figures.auc;
  view.auc_deviation = figures.auc_deviation;
  view.entropy = EntropyOf(figures);
  view.calibration = Calibration(figures.predicted, figures.clicks);
  view.ranked = account.previous_ranked;
  view.ranked.Merge(account.recent_ranked);
  return view;
}

std::optional<QualityPoint> Progress::TakeStretch(size_t learner) {
  const MutexLock lock(mutex_);
  QualityPoint& stretch = accounts_[learner].stretch;
  const RankTotals& ranked = stretch.ranked;
  if (ranked.asked > 0 ? ranked.asked < kStretchAsked : stretch.events < kStretchEvents)
    return std::nullopt;
  return std::exchange(stretch, {});
}

std::vector<QualityPoint> Progress::quality(size_t learner) const {
  const MutexLock lock(mutex_);
  return accounts_[learner].history.points();
}

std::vector<DayRow> Progress::days(size_t learner) const {
  const MutexLock lock(mutex_);
  const Account& account = accounts_[learner];
  std::vector<DayRow> days = account.finished;
  if (account.current.steps > 0) days.push_back(RowOf(account));
  return days;
}

std::optional<PredictedFigures> Progress::judged(size_t learner) const {
  const MutexLock lock(mutex_);
  const Account& account = accounts_[learner];
  Predicted judged = account.judged;
  if (account.current.steps > 0) {
    judged.Merge(account.today);
    judged.Merge(account.open);
  }
  if (judged.sums.events == 0) return std::nullopt;
  return judged.Figures();
}

}  // namespace tacit::train
