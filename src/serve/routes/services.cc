#include "serve/routes/services.h"

#include <algorithm>

namespace tacit::serve {

std::vector<ServedLearner> LearnersOf(const Services& services) {
  std::vector<ServedLearner> learners;
  for (const ScoringModel& model : services.models)
    learners.push_back({model.index, model.promise});
  for (const RecommendModel& model : services.recommenders)
    learners.push_back({model.index, model.promise});
  std::ranges::sort(learners, {}, [](const ServedLearner& l) { return l.index.value; });
  for (const ServedQuality& quality : services.qualities)
    learners.push_back({quality.index, quality.promise});
  if (services.breaker) learners.push_back(*services.breaker);
  return learners;
}

}  // namespace tacit::serve
