#include "daemon/allowance_census.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/files/log.h"
#include "base/text.h"
#include "metrics/families.h"
#include "privacy/weakness.h"

namespace tacit::daemon {
namespace {

constexpr std::array<const char*, 5> kLeftNames = {"nothing", "quarter", "half", "three_quarters",
                                                   "all"};
constexpr PacedThread::Seconds kLeastPause(600);
constexpr double kShareOfTime = 0.02;  // of a thread, where counting takes long

}  // namespace

AllowanceCensus::AllowanceCensus(const wiring::Assembly& assembly, const store::UserBook& users,
                                 metrics::Registry& registry)
    : users_(users) {
  for (const wiring::LearnerPlan& plan : assembly.learners) {
    if (plan.promise.unit != privacy::Unit::kUser || plan.promise.bounds.allowance == 0) continue;
    Subject subject{.learner = plan.id,
                    .index = plan.index,
                    .delta = plan.promise.delta,
                    .bounds = plan.promise.bounds,
                    .left = {}};
    for (size_t i = 0; i < kLeftNames.size(); ++i)
      subject.left[i] = registry.AddGauge("tacit_users_by_allowance_left",
                                          {{"learner", plan.id}, {"left", kLeftNames[i]}});
    subjects_.push_back(std::move(subject));
  }
  last_.resize(subjects_.size());
  if (!subjects_.empty()) thread_.Start("tacit-census", [this] { Loop(); });
}

std::optional<AllowanceCensus::Census> AllowanceCensus::last(LearnerIndex learner) const {
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < subjects_.size(); ++i)
    if (subjects_[i].index == learner) return last_[i];
  return std::nullopt;
}

// Returns false once the census is to stop.
bool AllowanceCensus::Count(size_t index) {
  Subject* const subject = &subjects_[index];
  const auto by_used = users_.CountUsers(subject->index, [this] { return !thread_.stopping(); });
  if (thread_.stopping()) return false;
  if (!by_used) {
    spdlog::warn("learner '{}': its users' allowances could not be counted: {}", subject->learner,
                 by_used.error().message);
    return true;
  }
  const privacy::AllowancesLeft left = privacy::CountLeft(*by_used, subject->bounds);
  {
    const MutexLock lock(mutex_);
    last_[index] = {.time_ms = SystemClock().UnixMillis(), .left = left};
  }
  subject->left[0].Set(static_cast<double>(left.none));
  for (size_t i = 0; i < left.quarters.size(); ++i)
    subject->left[i + 1].Set(static_cast<double>(left.quarters[i]));
  const std::string weak = privacy::WeaknessAmong(subject->delta, static_cast<double>(left.users));
  if (!weak.empty() && !std::exchange(subject->weakness_told, true))
    spdlog::warn("learner '{}': privacy.delta: {}", subject->learner, weak);
  const int tenths = static_cast<int>(10 * left.share_without());
  if (left.users == 0 || tenths <= subject->tenths_told.value_or(-1)) return true;
  subject->tenths_told = tenths;
  spdlog::info(
      "learner '{}': of {}, {} cannot be learnt from again, {} have up to a quarter of their "
      "allowance left; tacit ledger forecast says when others follow",
      subject->learner, Counted(left.users, "user"), WithThousands(left.none),
      WithThousands(left.quarters[0]));
  return true;
}

void AllowanceCensus::Loop() {
  PacedThread::Seconds took;
  do {
    const auto begin = std::chrono::steady_clock::now();
    for (size_t subject = 0; subject < subjects_.size(); ++subject)
      if (!Count(subject)) return;
    took = std::chrono::steady_clock::now() - begin;
  } while (thread_.Rest(std::max(kLeastPause, took / kShareOfTime)));
}

}  // namespace tacit::daemon
