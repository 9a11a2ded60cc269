#include "serve/scoring/repository.h"

#include <fmt/format.h>

#include <algorithm>

namespace tacit::serve {
namespace {

size_t SizeFor(const std::vector<LearnerIndex>& learners) {
  size_t size = 0;
  for (const LearnerIndex learner : learners) size = std::max<size_t>(size, learner.value + 1);
  return size;
}

}  // namespace

LoadedModels::LoadedModels(const std::vector<LearnerIndex>& learners)
    : unloaded_(SizeFor(learners)) {}

Status LoadedModels::Check(LearnerIndex learner, std::string_view name) const {
  if (IsLoaded(learner)) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("model '{}' is unloaded: POST /v2/repository/models/{}/load at the "
                          "operator's listener loads it",
                          name, name));
}

bool LoadedModels::IsLoaded(LearnerIndex learner) const { return !unloaded_[learner.value]; }

void LoadedModels::Set(LearnerIndex learner, bool loaded) { unloaded_[learner.value] = !loaded; }

}  // namespace tacit::serve
