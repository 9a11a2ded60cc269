#include "train/progress.h"

#include <utility>

#include "base/check.h"

namespace tacit::train {
namespace {

// Events in one window of the running AUC.
constexpr uint64_t kWindowEvents = 50000;
constexpr uint64_t kWindowAsked = 2000;  // and of the running share of hits

}  // namespace

Progress::Progress(size_t learners) : accounts_(learners) {}

void Progress::AddPredictions(size_t learner, std::span<const float> logits,
                              std::span<const float> labels, double loss_sum) {
  TACIT_CHECK(logits.size() == labels.size());
  std::lock_guard lock(mutex_);
  Account& account = accounts_[learner];
  account.view.events += logits.size();
  DayRow& day = account.current;
  day.events += logits.size();
  day.loss_sum += loss_sum;
  for (size_t i = 0; i < logits.size(); ++i) {
    day.auc.Add(logits[i], labels[i] > 0.5f);
    account.recent.Add(logits[i], labels[i] > 0.5f);
  }
  account.recent_events += logits.size();
  if (account.recent_events >= kWindowEvents) {
    account.previous = std::move(account.recent);
    account.recent = {};
    account.recent_events = 0;
  }
}

void Progress::AddRankings(size_t learner, uint64_t examples, uint64_t asked, uint64_t hits) {
  std::lock_guard lock(mutex_);
  Account& account = accounts_[learner];
  account.view.events += examples;
  account.current.events += examples;
  account.current.asked += asked;
  account.current.hits += hits;
  account.recent_asked.units += asked;
  account.recent_asked.hits += hits;
  if (account.recent_asked.units < kWindowAsked) return;
  account.previous_asked = std::exchange(account.recent_asked, {});
}

void Progress::AddStep(size_t learner, uint64_t rows_written, double epsilon) {
  std::lock_guard lock(mutex_);
  Account& account = accounts_[learner];
  ++account.view.steps;
  DayRow& day = account.current;
  ++day.steps;
  day.rows_written += rows_written;
  day.epsilon = epsilon;
}

void Progress::EndDay(size_t learner, const std::string& name) {
  std::lock_guard lock(mutex_);
  Account& account = accounts_[learner];
  if (account.current.steps == 0) return;
  account.current.name = name;
  account.finished.push_back(std::move(account.current));
  account.current = {};
}

void Progress::EndHeldOutDay(size_t learner, const std::string& name) {
  std::lock_guard lock(mutex_);
  Account& account = accounts_[learner];
  account.current.name = name;
  account.current.held_out = true;
  account.finished.push_back(std::exchange(account.current, {}));
}

void Progress::Committed(size_t learner, double epsilon) {
  std::lock_guard lock(mutex_);
  accounts_[learner].view.epsilon = epsilon;
}

Progress::View Progress::view(size_t learner) const {
  std::lock_guard lock(mutex_);
  const Account& account = accounts_[learner];
  View view = account.view;
  AucHistogram window = account.previous;
  window.Merge(account.recent);
  view.auc = window.Auc();
  view.asked = account.previous_asked.units + account.recent_asked.units;
  view.hits = account.previous_asked.hits + account.recent_asked.hits;
  return view;
}

std::vector<DayRow> Progress::days(size_t learner) const {
  std::lock_guard lock(mutex_);
  const Account& account = accounts_[learner];
  std::vector<DayRow> days = account.finished;
  if (account.current.steps > 0) days.push_back(account.current);
  return days;
}

}  // namespace tacit::train
