#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "privacy/query_table.h"
#include "wiring/plans/model_plan.h"

// Derives a learner's queries from its configuration, and checks that each has a price
// (privacy/query_table.h).
namespace tacit::wiring {

privacy::Unit UnitOf(const config::Learner& learner);
privacy::ParticipationMode ModeOf(const config::Learner& learner);

// All queries that a learner's steps and periods make to records. At least one.
std::vector<privacy::Query> QueriesOf(const config::Learner& learner,
                                      std::span<const MechanismMaker> mechanisms = AllMechanisms(),
                                      std::span<const LearnerKind> kinds = AllLearnerKinds());

// kInvalidArgument, naming learner and key, where the table refuses a query.
Status CheckQueries(const config::Learner& learner,
                    std::span<const LearnerKind> kinds = AllLearnerKinds());

// Checks that the charges cover the learner's queries. A query without a charge, or one that the
// table lacks, ends the program.
void CheckCharges(const config::Learner& learner, const privacy::Charge& step,
                  const std::optional<privacy::Charge>& opening,
                  std::span<const LearnerKind> kinds = AllLearnerKinds());

}  // namespace tacit::wiring
