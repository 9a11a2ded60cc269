#include "wiring/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/text.h"
#include "store/witness.h"
#include "train/position.h"
#include "wiring/source.h"

namespace tacit::wiring {
namespace {

constexpr std::string_view kWhereItStopped =
    "restore it with the configuration that the lost store ran with; what may change, may be "
    "changed afterwards";

// The offsets that the lost steps covered, in each partition: from where the checkpoint reads on to
// where the lost store stood. A period that was unfinished then is among them.
std::vector<OffsetRange> RangesBetween(const stream::Position& from, const stream::Position& to) {
  std::map<int32_t, uint64_t> begins;
  for (const OffsetRange& range : from.next) begins[range.partition] = range.begin;
  std::vector<OffsetRange> ranges;
  for (const OffsetRange& range : to.next) {
    const uint64_t begin = begins[range.partition];  // 0: the checkpoint had not read there
    const uint64_t end = std::max(range.begin, range.end);
    if (begin < end) ranges.push_back({range.partition, begin, end});
  }
  return ranges;
}

// The promise that was charged is the one that the configuration makes, at one of its prices.
bool IsCharged(const store::WitnessedLearner::Charged& charged, const LearnerPlan& plan) {
  const privacy::Promise& promise = plan.promise;
  return (charged.charge == plan.charge || charged.charge == plan.opening_charge) &&
         charged.unit == promise.unit && charged.adjacency == promise.adjacency &&
         charged.participation == promise.participation && charged.bounds == promise.bounds &&
         charged.delta == promise.delta;
}

auto RefuseLearner(const LearnerPlan& plan, std::string_view why) {
  return Fail(ErrorCode::kRefused, fmt::format("learner '{}': {}", plan.id, why));
}

// A witness or mark, as far as it was read.
struct Memory {
  std::string path;
  std::optional<store::WitnessSight> sight;
};

// The newer one of witness and mark.
Result<std::pair<std::string, store::WitnessRecord>> NewestMemory(const Assembly& assembly) {
  const store::StoreOptions options = MakeStoreOptions(assembly);
  std::vector<Memory> memories;
  for (const std::string& path : {options.witness, options.mark}) {
    if (path.empty()) continue;
    TACIT_ASSIGN(auto sight, store::WitnessFile::Read(path));
    if (!sight) continue;
    if (sight->in_doubt)
      return Fail(ErrorCode::kRefused,
                  fmt::format("half of {} is damaged, and may have held a newer commit than {}: "
                              "what was learnt then cannot be charged",
                              path, sight->record.seq.value));
    memories.push_back({path, std::move(sight)});
  }
  if (memories.empty())
    return Fail(ErrorCode::kRefused,
                fmt::format("nothing remembers how far store {} went: a restore needs its witness "
                            "(store.witness: {}) or its mark (source.mark: {}), to charge what was "
                            "learnt after the checkpoint",
                            options.path, options.witness.empty() ? "none" : options.witness,
                            options.mark.empty() ? "none" : options.mark));
  if (memories.size() == 2 &&
      memories[0].sight->record.lineage != memories[1].sight->record.lineage)
    return Fail(ErrorCode::kRefused,
                fmt::format("{} and {} are of different stores: lineage {} and {}",
                            memories[0].path, memories[1].path, memories[0].sight->record.lineage,
                            memories[1].sight->record.lineage));
  const auto newest = std::ranges::max_element(
      memories, {}, [](const Memory& memory) { return memory.sight->record.seq; });
  return std::pair(newest->path, newest->sight->record);
}

Status CheckMemory(const std::string& path, const store::WitnessRecord& record,
                   const std::string& folder, const store::CheckpointManifest& checkpoint) {
  const auto refuse = [&](std::string_view why) {
    return Fail(ErrorCode::kRefused,
                fmt::format("checkpoint {} and {} do not belong together: {}", folder, path, why));
  };
  if (record.lineage != checkpoint.lineage)
    return refuse(fmt::format("lineage {} and {}", checkpoint.lineage, record.lineage));
  if (record.seq < checkpoint.commit)
    return refuse(
        fmt::format("the checkpoint is of commit {}, which is newer than {}, where the "
                    "other ends",
                    checkpoint.commit.value, record.seq.value));
  if (record.seq == checkpoint.commit && record.head != checkpoint.head)
    return refuse(
        fmt::format("their commits {} have different ledger heads", checkpoint.commit.value));
  if (record.seq > checkpoint.commit && record.learners.empty())
    return refuse("the program that wrote the latter did not note what a restore must charge");
  return {};
}

// The steps of each learner after the checkpoint. Every learner that took one must be configured.
Result<std::vector<store::LearnerGap>> FindGaps(const Assembly& assembly, const std::string& folder,
                                                const store::WitnessRecord& record) {
  TACIT_ASSIGN(const auto checkpointed, store::ReadCheckpointed(folder));
  std::vector<store::LearnerGap> gaps;
  for (const store::WitnessedLearner& to : record.learners) {
    const auto known = std::ranges::find(checkpointed, to.name, &store::CheckpointedLearner::name);
    const store::CheckpointedLearner from =
        known != checkpointed.end() ? *known : store::CheckpointedLearner{to.name, 0, ""};
    const auto plan = std::ranges::find(assembly.learners, to.name, &LearnerPlan::id);
    if (plan == assembly.learners.end()) {
      if (to.steps == from.steps) continue;
      return Fail(
          ErrorCode::kRefused,
          fmt::format("learner '{}' took {} after the checkpoint, and is not configured: {}",
                      to.name, Counted(to.steps - from.steps, "step"), kWhereItStopped));
    }
    const size_t place = static_cast<size_t>(plan - assembly.learners.begin());
    TACIT_ASSIGN(auto gap, FindGap(*plan, assembly.config.learners[place], from, to,
                                   TopicOf(assembly.config.source)));
    if (gap) gaps.push_back(*std::move(gap));
  }
  return gaps;
}

}  // namespace

Result<std::optional<store::LearnerGap>> FindGap(const LearnerPlan& plan,
                                                 const config::Learner& learner,
                                                 const store::CheckpointedLearner& from,
                                                 const store::WitnessedLearner& to,
                                                 const std::string& topic) {
  if (to.steps < from.steps)
    return RefuseLearner(plan, fmt::format("it had taken {} steps at the checkpoint, and {} later: "
                                           "these are two stores that went different ways",
                                           from.steps, to.steps));
  // The rest of a period whose blocks are paid for costs nothing more, yet moves the learner on.
  const bool paid = plan.charge.block_steps > 0 && to.position && *to.position != from.position;
  if (to.steps == from.steps && !paid) return std::optional<store::LearnerGap>{};
  if (!to.position)
    return RefuseLearner(plan,
                         "its position was too long to be remembered, so that its records "
                         "after the checkpoint would be learnt from twice");
  const bool unpaid = to.steps == from.steps && to.charged && to.charged->charge != plan.charge;
  if (!to.charged || !IsCharged(*to.charged, plan) || unpaid)
    return RefuseLearner(plan, fmt::format("its steps after the checkpoint were charged at another "
                                           "price, or promised something else: {}",
                                           kWhereItStopped));
  TACIT_ASSIGN(const stream::Position begin, train::DecodePosition(from.position));
  TACIT_ASSIGN(const stream::Position end, train::DecodePosition(*to.position));
  const bool of_users = plan.promise.unit == privacy::Unit::kUser;
  if (begin.pass != end.pass && !of_users)
    return RefuseLearner(plan,
                         "a pass over its source ended after the checkpoint: how often each "
                         "event was learnt from cannot be said");

  const bool once = plan.promise.participation == privacy::ParticipationMode::kOnce;
  const uint64_t period_steps = once ? 1 : learner.participation.PeriodSteps();
  const uint64_t taken = to.steps - from.steps;
  // Blocks are charged by whole periods. (What was charged includes openings.)
  const bool in_blocks = plan.charge.block_steps > 0;
  const uint64_t steps =
      in_blocks ? (taken + period_steps - 1) / period_steps * period_steps : taken;
  const auto ranges = RangesBetween(begin, end);
  const auto charge = [&](const privacy::Charge& price, uint64_t times, uint64_t per_offset) {
    return privacy::CommitCharge{.learner = plan.id,
                                 .charge = price,
                                 .steps = times,
                                 .steps_per_offset = per_offset,
                                 .topic = topic,
                                 .ranges = ranges,
                                 .paid_steps = times == 0 ? end.step - begin.step : 0};
  };
  // A period that was begun anew was charged once more on the same records.
  const uint64_t per_period = (1 + end.begun_anew - begin.begun_anew) * period_steps;
  store::LearnerGap gap{.learner = plan.index, .charges = {}, .position = *to.position};
  if (plan.opening_charge && steps > 0)
    gap.charges.push_back(
        charge(*plan.opening_charge, std::min(taken, end.period - begin.period + 1), 1));
  gap.charges.push_back(charge(plan.charge, steps, std::min(steps, per_period)));
  gap.step = end.step;
  if (!of_users) return std::optional(std::move(gap));
  // A period's users are counted for all of its steps when it opens; blocks are charged then too.
  gap.of_users = true;
  const uint64_t not_charged = in_blocks ? 0 : plan.promise.bounds.period_steps;
  gap.user_steps = static_cast<uint32_t>(
      std::min<uint64_t>(steps + not_charged, std::numeric_limits<uint32_t>::max()));
  gap.most_uses = to.most_uses;
  gap.period = end.period;
  return std::optional(std::move(gap));
}

Result<RestoreReport> RestoreStore(const Assembly& assembly, const std::string& folder) {
  TACIT_ASSIGN(const store::CheckpointManifest checkpoint, store::ReadManifest(folder));
  TACIT_ASSIGN(const auto memory, NewestMemory(assembly));
  const auto& [path, record] = memory;
  TACIT_RETURN_IF_ERROR(CheckMemory(path, record, folder, checkpoint));
  RestoreReport report{.restored = {}, .remembered_by = path, .through = record.seq, .gaps = {}};
  if (record.seq > checkpoint.commit) {
    TACIT_ASSIGN(report.gaps, FindGaps(assembly, folder, record));
  }
  TACIT_ASSIGN(report.restored, store::RestoreCheckpoint({.checkpoint = folder,
                                                          .store = MakeStoreOptions(assembly),
                                                          .through = record.seq,
                                                          .head = record.head,
                                                          .gaps = report.gaps}));
  return report;
}

}  // namespace tacit::wiring
