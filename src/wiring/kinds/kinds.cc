#include "wiring/kinds/kinds.h"

#include <fmt/format.h>

#include "base/kind_table.h"

namespace tacit::wiring {

std::span<const LearnerKind> AllLearnerKinds() {
  static const LearnerKind kinds[] = {ClickKind(), SequenceKind(), TransitionsKind(), LinearKind()};
  static_assert(std::size(kinds) == static_cast<size_t>(config::kLastModel) + 1);
  return kinds;
}

Result<std::vector<privacy::Query>> PlanQueries(const config::Learner& learner,
                                                std::span<const LearnerKind> kinds,
                                                std::span<const MechanismMaker> mechanisms) {
  std::vector<privacy::Query> queries = {privacy::Query::kUnnoised};
  if (learner.mechanism.traits().adds_noise)
    queries = RowOf(kinds, learner.model.kind).queries(learner, mechanisms);
  const auto mode = learner.participation.mode;
  const auto unit = learner.privacy.unit;
  const auto refused = privacy::RefusedOf(queries, mode, unit);
  if (!refused) return queries;
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("learner '{}': participation.mode {} with privacy.unit {}: {} has no price there "
                  "and is refused",
                  learner.id, privacy::Name(mode), privacy::Name(unit), privacy::Name(*refused)));
}

}  // namespace tacit::wiring
