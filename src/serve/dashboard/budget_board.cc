#include "serve/dashboard/budget_board.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "privacy/spent_path.h"

namespace tacit::serve {
namespace {

constexpr size_t kMomentsShown = 60;  // of a curve
constexpr int64_t kPointsAhead = 16;
constexpr double kShareOfBoard = 0.1;  // of the time of a thread

Result<std::vector<privacy::LedgerEntry>> ReadEntries(const store::Snapshot& snapshot) {
  std::vector<privacy::LedgerEntry> entries;
  while (entries.size() < snapshot.ledger_entries()) {
    TACIT_ASSIGN(const auto page, snapshot.LedgerEntries(entries.size(), kLedgerPageEntries));
    if (page.empty()) break;
    for (const std::string& encoded : page) {
      TACIT_ASSIGN(auto entry, privacy::LedgerEntry::Decode(encoded));
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

double UpperEpsilon(privacy::EpsilonMeter* meter, const privacy::Spending& spending, double delta) {
  if (spending.empty()) return 0;
  if (!spending.bounded() || !(delta > 0)) return std::numeric_limits<double>::infinity();
  return meter->Bounds(spending, Delta(delta)).upper;
}

// The expected spending of all these learners, from now on until the budget is gone.
std::vector<SpentPoint> PathAhead(std::span<const privacy::Growth> growths,
                                  const privacy::Forecast& forecast) {
  std::vector<SpentPoint> ahead;
  if (forecast.kind != privacy::Forecast::Kind::kRunsOut) return ahead;
  privacy::EpsilonMeter meter;
  const int64_t span = forecast.runs_out_ms - forecast.end_ms;
  for (int64_t i = 0; i <= kPointsAhead; ++i) {
    const int64_t at = forecast.end_ms + span * i / kPointsAhead;
    privacy::Spending sum;
    for (const privacy::Growth& growth : growths) sum.Add(growth.At(static_cast<double>(at)));
    const double epsilon = UpperEpsilon(&meter, sum, forecast.delta);
    ahead.push_back({.time_ms = at, .epsilon = std::min(epsilon, forecast.budget)});
  }
  return ahead;
}

std::vector<SpentPoint> PointsOf(const std::vector<privacy::SpentMoment>& path, double delta) {
  std::vector<SpentPoint> points;
  privacy::EpsilonMeter meter;
  for (const privacy::SpentMoment& moment : path)
    points.push_back({moment.time_ms, moment.steps, UpperEpsilon(&meter, moment.worst, delta)});
  return points;
}

// Adds the learners' paths up, at the moments of any of them. The ledger's own total may know that
// the worst units are different ones: nothing before it was more than it is now.
std::vector<SpentPoint> Together(const std::vector<std::vector<privacy::SpentMoment>>& paths,
                                 double delta, double now) {
  std::vector<int64_t> times;
  for (const auto& path : paths)
    for (const privacy::SpentMoment& moment : path) times.push_back(moment.time_ms);
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const size_t shown = std::min(times.size(), kMomentsShown);
  std::vector<SpentPoint> points;
  privacy::EpsilonMeter meter;
  for (size_t i = 0; i < shown; ++i) {
    const int64_t at = times[shown == 1 ? 0 : i * (times.size() - 1) / (shown - 1)];
    SpentPoint point{.time_ms = at};
    privacy::Spending sum;
    for (const auto& path : paths) {
      sum.Add(privacy::SpentAt(path, at));
      const auto after = std::ranges::upper_bound(path, at, {}, &privacy::SpentMoment::time_ms);
      if (after != path.begin()) point.steps += std::prev(after)->steps;
    }
    point.epsilon = std::min(UpperEpsilon(&meter, sum, delta), now);
    points.push_back(point);
  }
  if (!points.empty()) points.back().epsilon = now;
  return points;
}

void NoteCode(const privacy::LedgerEntry& entry, Budgets* budgets) {
  if (budgets->first_ms == 0) budgets->first_ms = entry.first_time_ms;
  budgets->last_ms = std::max(budgets->last_ms, entry.last_time_ms);
  const auto known =
      std::ranges::find(budgets->code_versions, entry.code_version, &Budgets::Code::version);
  if (entry.code_version.empty() || known != budgets->code_versions.end()) return;
  budgets->code_versions.push_back({entry.code_version, entry.first_commit, entry.first_time_ms});
}

}  // namespace

BudgetBoard::BudgetBoard(std::vector<ServedLearner> learners,
                         std::map<std::string, privacy::UseLimits> limits,
                         std::optional<privacy::TotalBudget> total)
    : learners_(std::move(learners)), limits_(std::move(limits)), total_(total) {}

double BudgetBoard::TotalDelta() const {
  if (total_) return total_->delta;
  double delta = 0;
  for (const ServedLearner& learner : learners_)
    if (std::isfinite(learner.promise.epsilon)) delta = std::max(delta, learner.promise.delta);
  return delta;
}

std::shared_ptr<const Budgets> BudgetBoard::Look(std::shared_ptr<const store::Snapshot> snapshot) {
  const MutexLock lock(mutex_);
  if (found_ == nullptr || found_->version != snapshot->version()) {
    wanted_ = std::move(snapshot);
    if (!thread_.started()) thread_.Start("tacit-budgets", [this] { Loop(); });
    thread_.Wake();
  }
  return found_;
}

void BudgetBoard::Loop() {
  while (thread_.Await()) {
    std::shared_ptr<const store::Snapshot> snapshot;
    {
      const MutexLock lock(mutex_);
      snapshot = std::exchange(wanted_, nullptr);
    }
    if (snapshot == nullptr) continue;  // the wake came with one that was found already
    const auto begin = std::chrono::steady_clock::now();
    auto budgets = std::make_shared<const Budgets>(Find(*snapshot));
    const PacedThread::Seconds took = std::chrono::steady_clock::now() - begin;
    {
      const MutexLock lock(mutex_);
      found_ = std::move(budgets);
    }
    if (!thread_.Rest(took * (1 / kShareOfBoard - 1))) return;
  }
}

Budgets BudgetBoard::Find(const store::Snapshot& snapshot) const {
  Budgets budgets{.version = snapshot.version()};
  budgets.learners.resize(learners_.size());
  const auto entries = ReadEntries(snapshot);
  if (!entries) {
    budgets.failure = entries.error().message;
    return budgets;
  }
  for (const privacy::LedgerEntry& entry : *entries) NoteCode(entry, &budgets);
  std::vector<privacy::Growth> growths;
  std::vector<std::vector<privacy::SpentMoment>> paths;
  std::optional<privacy::Spending> most_of_all = privacy::Spending();
  for (size_t i = 0; i < learners_.size(); ++i) {
    if (thread_.stopping()) return budgets;
    const privacy::Promise& promise = learners_[i].promise;
    growths.push_back(privacy::Growth::Of(*entries, promise.learner));
    paths.push_back(privacy::SpentPath(*entries, promise.learner, kMomentsShown));
    const auto limits = limits_.find(promise.learner);
    const auto most = limits != limits_.end()
                          ? privacy::MostEver(*entries, promise.learner, limits->second)
                          : std::nullopt;
    BudgetCurve& curve = budgets.learners[i];
    curve.forecast = privacy::Foretell({&growths.back(), 1},
                                       {.epsilon = promise.epsilon, .delta = promise.delta}, most);
    curve.spent = PointsOf(paths.back(), promise.delta);
    curve.ahead = PathAhead({&growths.back(), 1}, curve.forecast);
    if (most && most_of_all)
      most_of_all->Add(*most);
    else
      most_of_all.reset();
  }
  // Learners that are configured no more have spent what they have.
  for (const privacy::LedgerTotal& total : snapshot.learners()) {
    const bool configured = std::ranges::any_of(
        learners_, [&](const ServedLearner& l) { return l.promise.learner == total.learner; });
    if (!configured) paths.push_back(privacy::SpentPath(*entries, total.learner, kMomentsShown));
  }
  const double infinite = std::numeric_limits<double>::infinity();
  const privacy::TotalBudget total =
      total_.value_or(privacy::TotalBudget{.epsilon = infinite, .delta = TotalDelta()});
  if (total.delta > 0) {
    budgets.total.forecast = privacy::Foretell(growths, total, most_of_all);
    budgets.total.spent = Together(paths, total.delta, snapshot.total().epsilon);
    budgets.total.ahead = PathAhead(growths, budgets.total.forecast);
  }
  return budgets;
}

}  // namespace tacit::serve
