#include "wiring/plans/feed.h"

#include <utility>

#include "model/linear/row.h"
#include "wiring/plans/kafka.h"
#include "wiring/plans/workers.h"

namespace tacit::wiring {

Result<stream::KafkaProperties> FeedProperties(const config::Config& config) {
  return KafkaPropertiesOf(config.kafka);
}

Result<feed::PublisherOptions> MakePublisherOptions(const config::Config& config) {
  feed::PublisherOptions options{.topic = config.feed.topic};
  using model::linear::kMove, model::linear::kPeriod;
  if (!config.workers.topic.empty()) {
    options.moves = {kMove - 1, kPeriod - 1};  // behind the weight
    TACIT_ASSIGN(const workers::SharedKey key, ReadWorkersKey(config.workers));
    options.mark = feed::PublisherOptions::Mark{.key = FeedMarkKey(key), .learners = {}};
    for (const config::Learner& learner : config.learners)
      options.mark->learners.push_back(learner.id);
  }
  TACIT_ASSIGN(options.properties, FeedProperties(config));
  return options;
}

}  // namespace tacit::wiring
