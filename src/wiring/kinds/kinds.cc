#include "wiring/kinds/kinds.h"

namespace tacit::wiring {

std::span<const LearnerKind> AllLearnerKinds() {
  static const LearnerKind kinds[] = {ClickKind(), SequenceKind(), TransitionsKind(), LinearKind()};
  static_assert(std::size(kinds) == static_cast<size_t>(config::kLastModel) + 1);
  return kinds;
}

}  // namespace tacit::wiring
