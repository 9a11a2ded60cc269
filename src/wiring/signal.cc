#include "wiring/signal.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace tacit::wiring {
namespace {

bool IsPeriod(const config::Learner& learner) { return !learner.model.traits().only_once.empty(); }

uint64_t RecordsOfStep(const config::Participation& p, std::optional<uint64_t> file_records) {
  if (p.holds_periods() || !file_records) return p.batch;
  return std::min(p.batch, *file_records * p.step_files);
}

std::string NoiseText(const config::Learner& learner, const LearnerPlan& plan) {
  return fmt::format("{:.2g} times what a {} adds", plan.model->NoiseInUnits(),
                     learner.privacy.of_users() ? "user" : "record");
}

}  // namespace

std::string SignalText(const config::Learner& learner, const LearnerPlan& plan,
                       std::optional<uint64_t> file_records) {
  if (!plan.charge.Bounded()) return "none";
  const config::Participation& p = learner.participation;
  const bool expects_users = p.holds_periods() && learner.privacy.of_users();
  return fmt::format("{} to a number; a {} has {} {}", NoiseText(learner, plan),
                     IsPeriod(learner) ? "period" : "step", p.holds_periods() ? "some" : "at most",
                     Counted(RecordsOfStep(p, file_records), expects_users ? "user" : "record"));
}

std::string TooFewRecords(const config::Learner& learner, const LearnerPlan& plan,
                          std::optional<uint64_t> file_records, bool one_file) {
  const config::Participation& p = learner.participation;
  const uint64_t records = RecordsOfStep(p, file_records);
  if (!plan.charge.Bounded() || !IsPeriod(learner) || records >= kEnoughRecords) return "";
  const std::string longer =
      p.batch < kEnoughRecords ? "a larger participation.batch makes periods longer"
      : one_file               ? "there is no other file: more records make the period longer"
                               : fmt::format(
                                     "participation.step_files: {} makes periods longer",
                                     (kEnoughRecords + *file_records - 1) / std::max<uint64_t>(1, *file_records));
  return fmt::format(
      "learner '{}': a period has at most {}, and noise is {}: with fewer than some {} it hides "
      "nearly all there is to learn. {}; a larger privacy.epsilon makes noise smaller",
      plan.id, Counted(records, "record"), NoiseText(learner, plan), WithThousands(kEnoughRecords),
      longer);
}

}  // namespace tacit::wiring
