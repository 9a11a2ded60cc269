#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace tacit::serve {

// The operator's command to look for newer models, where checkpoints are served. Server threads
// call it at once. It returns true if a newer commit is served now.
struct RepositoryCommands {
  std::function<Result<bool>()> move_on;
};

// Knows which models answer: all do, until the operator unloads one. Thread-safe; all threads share
// it.
class LoadedModels {
 public:
  // `learners` are the indices of all that are served.
  explicit LoadedModels(const std::vector<LearnerIndex>& learners);

  // kUnavailable: the model is unloaded.
  Status Check(LearnerIndex learner, std::string_view name) const;
  bool IsLoaded(LearnerIndex learner) const;
  void Set(LearnerIndex learner, bool loaded);

 private:
  std::vector<std::atomic<bool>> unloaded_;  // by learner
};

}  // namespace tacit::serve
