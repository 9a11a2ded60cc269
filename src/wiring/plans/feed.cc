#include "wiring/plans/feed.h"

#include <utility>

#include "wiring/plans/kafka.h"

namespace tacit::wiring {

Result<stream::KafkaProperties> FeedProperties(const config::Config& config) {
  return KafkaPropertiesOf(config.kafka);
}

Result<feed::PublisherOptions> MakePublisherOptions(const config::Config& config) {
  feed::PublisherOptions options{.topic = config.feed.topic};
  TACIT_ASSIGN(options.properties, FeedProperties(config));
  return options;
}

}  // namespace tacit::wiring
