#include "lab/next_item/period_driver.h"

#include <atomic>
#include <string>

#include "base/check.h"

namespace tacit::lab {
namespace {

using Kind = stream::StepBatch::Kind;

// The name under which a learner knows a user; it does not depend on other users.
std::string NameOf(const model::Histories& histories, size_t unit) {
  return std::to_string(histories.IdOf(unit));
}

// Appends the unit's examples to a step.
void AppendUnit(const event::Batch& from, size_t begin, size_t end, stream::StepBatch* step) {
  if (begin == end) return;
  step->examples.AppendRange(from, begin, end);
  step->unit_of.resize(step->examples.size(), step->units++);
}

}  // namespace

Status PeriodDriver::Begin(const StreamPeriod& period, train::Learner* opens) {
  const model::Histories& histories = period.histories;
  TACIT_RETURN_IF_ERROR(model::CheckHistories(histories));
  TACIT_CHECK(histories.catalogue == catalogue_ && period.known.size() == histories.units());
  period_ = &period;
  ranges_ = {{0, periods_, periods_ + 1}};
  ++periods_;
  bill_ = privacy::Bill();
  opened_ = false;
  all_ = {};
  unit_end_.clear();
  unit_of_.clear();
  const SipHash hash(train::RecentHistoriesOptions{}.user_key);
  event::Batch& examples = all_.examples;
  for (size_t unit = 0; unit < histories.units(); ++unit) {
    const std::string name = NameOf(histories, unit);
    unit_of_.emplace(hash(name), unit);
    const auto fresh = histories.Of(unit).subspan(period.known[unit]);
    for (const uint32_t item : fresh) {
      examples.offset.push_back(examples.offset.size());
      examples.timestamp_ms.push_back(0);
      examples.label.push_back(1);
      examples.item.push_back(item);
      examples.user.Append(name);
    }
    if (!fresh.empty()) all_.unit_of.resize(examples.size(), all_.units++);
    unit_end_.push_back(examples.size());
  }
  if (opens == nullptr) return {};
  all_.kind = Kind::kPreview;
  train::StepReport report;
  return opens->Preview(all_, &report);
}

// The histories of users as a store would have them: their items from before the period.
Result<uint64_t> PeriodDriver::Read(std::span<store::UserHistory> users) const {
  for (store::UserHistory& user : users) {
    const auto found = unit_of_.find(user.user);
    TACIT_CHECK(found != unit_of_.end(), "a step's users are the period's");
    const auto items = period_->histories.Of(found->second);
    for (const uint32_t item : items.first(period_->known[found->second]))
      user.items.push_back({item, 0});
  }
  return steps_;
}

Status PeriodDriver::Step(train::Learner& learner, std::span<const uint64_t> chosen) {
  stream::StepBatch step;
  step.kind = opened_ ? Kind::kPeriodNext : Kind::kPeriodFirst;
  for (const uint64_t unit : chosen)
    AppendUnit(all_.examples, unit == 0 ? 0 : unit_end_[unit - 1], unit_end_[unit], &step);
  return Take(learner, &step);
}

Status PeriodDriver::StepOfAll(train::Learner& learner) {
  all_.kind = opened_ ? Kind::kPeriodNext : Kind::kPeriodFirst;
  return Take(learner, &all_);
}

Status PeriodDriver::StepOnce(train::Learner& learner) {
  all_.kind = Kind::kOnce;
  TACIT_RETURN_IF_ERROR(Take(learner, &all_));
  learner.TakeHistories();
  return {};
}

Status PeriodDriver::Take(train::Learner& learner, stream::StepBatch* step) {
  static const std::atomic<bool> kNever = false;
  opened_ = true;
  step->ranges = ranges_;
  step->after.step = steps_ + 1;
  step->after.period_step = 1;  // the driver has the histories: the learner need not remember any
  bill_.Add(train::Billed(*step), learner.charge(), learner.opening_charge());
  train::StepReport report;
  TACIT_ASSIGN(const bool taken, learner.TakeStep(*step, kNever, &report));
  TACIT_CHECK(taken, "a step of an experiment is never abandoned");
  ++steps_;
  return {};
}

}  // namespace tacit::lab
