#include "daemon/allowance_census.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/files/log.h"
#include "base/text.h"
#include "base/threads/named_thread.h"
#include "privacy/weakness.h"

namespace tacit::daemon {
namespace {

constexpr std::array<const char*, 5> kLeftNames = {"nothing", "quarter", "half", "three_quarters",
                                                   "all"};
constexpr std::chrono::duration<double> kLeastPause(600);
constexpr double kShareOfTime = 0.02;  // of a thread, where counting takes long

}  // namespace

AllowanceCensus::AllowanceCensus(const wiring::Assembly& assembly, const store::Store& store,
                                 metrics::Registry& registry)
    : store_(store) {
  for (const wiring::LearnerPlan& plan : assembly.learners) {
    if (plan.promise.unit != privacy::Unit::kUser || plan.promise.bounds.allowance == 0) continue;
    Subject subject{.learner = plan.id,
                    .index = plan.index,
                    .delta = plan.promise.delta,
                    .bounds = plan.promise.bounds,
                    .left = {}};
    for (size_t i = 0; i < kLeftNames.size(); ++i)
      subject.left[i] = registry.AddGauge(
          metrics::Audience::kOperator, "tacit_users_by_allowance_left",
          "Users by what is left of their allowance: nothing, or up to this part of it; counted "
          "every ten minutes",
          {{"learner", plan.id}, {"left", kLeftNames[i]}});
    subjects_.push_back(std::move(subject));
  }
  if (subjects_.empty()) return;
  thread_ = NamedThread("tacit-census", [this] { Loop(); });
}

AllowanceCensus::~AllowanceCensus() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool AllowanceCensus::going_on() const {
  std::lock_guard lock(mutex_);
  return !stopping_;
}

std::optional<AllowanceCensus::Census> AllowanceCensus::last(LearnerIndex learner) const {
  std::lock_guard lock(mutex_);
  for (const Subject& subject : subjects_)
    if (subject.index == learner) return subject.last;
  return std::nullopt;
}

// Returns false once the census is to stop.
bool AllowanceCensus::Count(Subject* subject) const {
  const auto by_used = store_.CountUsers(subject->index, [this] { return going_on(); });
  if (!going_on()) return false;
  if (!by_used) {
    spdlog::warn("learner '{}': its users' allowances could not be counted: {}", subject->learner,
                 by_used.error().message);
    return true;
  }
  const privacy::AllowancesLeft left = privacy::CountLeft(*by_used, subject->bounds);
  {
    std::lock_guard lock(mutex_);
    subject->last = {.time_ms = SystemClock().UnixMillis(), .left = left};
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
  for (;;) {
    const auto begin = std::chrono::steady_clock::now();
    for (Subject& subject : subjects_)
      if (!Count(&subject)) return;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::max(kLeastPause, took / kShareOfTime),
                          [&] { return stopping_; }))
      return;
  }
}

}  // namespace tacit::daemon
