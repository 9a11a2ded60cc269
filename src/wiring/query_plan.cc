#include "wiring/query_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace tacit::wiring {
namespace {

using privacy::Query;

// Returns the query under which a charge lists this one.
Query AsCharged(Query query) {
  return query == Query::kSequenceGradient ? Query::kGradient : query;
}

}  // namespace

privacy::Unit UnitOf(const config::Learner& learner) {
  return learner.privacy.of_users() ? privacy::Unit::kUser : privacy::Unit::kEvent;
}

privacy::ParticipationMode ModeOf(const config::Learner& learner) {
  return learner.participation.mode == config::Participation::Mode::kOnce
             ? privacy::ParticipationMode::kOnce
             : privacy::ParticipationMode::kPoisson;
}

std::vector<Query> QueriesOf(const config::Learner& learner,
                             std::span<const MechanismMaker> kinds) {
  const config::Mechanism& m = learner.mechanism;
  if (!m.traits().adds_noise) return {Query::kUnnoised};
  if (learner.model.kind == config::Model::Kind::kTransitions) return {Query::kPeriodCounts};
  const bool sequence = learner.model.kind == config::Model::Kind::kSequence;
  std::vector<Query> queries = {sequence ? Query::kSequenceGradient : Query::kGradient};
  if (const auto asks = RowOf(kinds, m.kind).asks) queries.push_back(*asks);
  if (m.clipping == config::Mechanism::Clipping::kQuantile) queries.push_back(Query::kClipQuantile);
  if (m.observes_periods())
    queries.push_back(m.vocabulary.query == config::Vocabulary::Query::kGumbel
                          ? Query::kTopRows
                          : Query::kRowHistogram);
  return queries;
}

Status CheckQueries(const config::Learner& learner) {
  const auto mode = ModeOf(learner);
  const auto unit = UnitOf(learner);
  const auto refused = privacy::RefusedOf(QueriesOf(learner), mode, unit);
  if (!refused) return {};
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("learner '{}': participation.mode {} with privacy.unit {}: {} has no price there "
                  "and is refused",
                  learner.id, privacy::Name(mode), privacy::Name(unit), privacy::Name(*refused)));
}

void CheckCharges(const config::Learner& learner, const privacy::Charge& step,
                  const std::optional<privacy::Charge>& opening) {
  std::vector<Query> asked, charged = privacy::QueriesOf(step);
  for (const Query query : QueriesOf(learner)) asked.push_back(AsCharged(query));
  if (opening)
    for (const Query query : privacy::QueriesOf(*opening)) charged.push_back(query);
  std::ranges::sort(asked);
  std::ranges::sort(charged);
  TACIT_CHECK(asked == charged, "a learner asks what it is not charged for");
}

}  // namespace tacit::wiring
