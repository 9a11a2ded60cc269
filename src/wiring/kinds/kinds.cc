#include "wiring/kinds/kinds.h"

namespace tacit::wiring {

std::span<const LearnerKind> AllLearnerKinds() {
  static const LearnerKind kinds[] = {ClickKind(), SequenceKind(), TransitionsKind(), LinearKind()};
  static_assert(std::size(kinds) == static_cast<size_t>(config::kLastModel) + 1);
  return kinds;
}

bool ComesInParts(const ModelPlan& model, const config::Learner& learner,
                  const config::Source& source) {
  return source.traits().has_files && !learner.privacy.of_users() && model.SumsUp();
}

}  // namespace tacit::wiring
