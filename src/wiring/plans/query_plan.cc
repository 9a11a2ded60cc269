#include "wiring/plans/query_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace tacit::wiring {
namespace {

using privacy::Query;

// Returns the query under which a charge lists this one.
Query AsCharged(Query query) {
  switch (query) {
    case Query::kSequenceGradient:
      return Query::kGradient;
    case Query::kItemHistogram:
    case Query::kPairCounts:
      return Query::kRowHistogram;
    default:
      return query;
  }
}

}  // namespace

privacy::Unit UnitOf(const config::Learner& learner) {
  return learner.privacy.of_users() ? privacy::Unit::kUser : privacy::Unit::kEvent;
}

privacy::ParticipationMode ModeOf(const config::Learner& learner) {
  switch (learner.participation.mode) {
    case config::Participation::Mode::kOnce:
      return privacy::ParticipationMode::kOnce;
    case config::Participation::Mode::kPoisson:
      return privacy::ParticipationMode::kPoisson;
    case config::Participation::Mode::kAllocate:
      return privacy::ParticipationMode::kAllocate;
  }
  TACIT_CHECK(false, "no such mode");
}

std::vector<Query> QueriesOf(const config::Learner& learner,
                             std::span<const MechanismMaker> mechanisms,
                             std::span<const LearnerKind> kinds) {
  if (!learner.mechanism.traits().adds_noise) return {Query::kUnnoised};
  return RowOf(kinds, learner.model.kind).queries(learner, mechanisms);
}

Status CheckQueries(const config::Learner& learner, std::span<const LearnerKind> kinds) {
  const auto mode = ModeOf(learner);
  const auto unit = UnitOf(learner);
  const auto refused = privacy::RefusedOf(QueriesOf(learner, AllMechanisms(), kinds), mode, unit);
  if (!refused) return {};
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("learner '{}': participation.mode {} with privacy.unit {}: {} has no price there "
                  "and is refused",
                  learner.id, privacy::Name(mode), privacy::Name(unit), privacy::Name(*refused)));
}

void CheckCharges(const config::Learner& learner, const privacy::Charge& step,
                  const std::optional<privacy::Charge>& opening,
                  std::span<const LearnerKind> kinds) {
  std::vector<Query> asked, charged = privacy::QueriesOf(step);
  for (const Query query : QueriesOf(learner, AllMechanisms(), kinds))
    asked.push_back(AsCharged(query));
  // The sum of a learner without noise is listed once, with its steps.
  if (opening && opening->Bounded())
    for (const Query query : privacy::QueriesOf(*opening)) charged.push_back(query);
  std::ranges::sort(asked);
  std::ranges::sort(charged);
  TACIT_CHECK(asked == charged, "a learner asks what it is not charged for");
}

}  // namespace tacit::wiring
