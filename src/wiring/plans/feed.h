#pragma once

#include "base/result.h"
#include "config/config.h"
#include "feed/publisher.h"

namespace tacit::wiring {

// Tells how the feed of a configuration is published: its topic, and the brokers' settings with
// secrets fetched, and with workers the key that versions are marked under. REQUIRES feed.topic.
Result<feed::PublisherOptions> MakePublisherOptions(const config::Config& config);
// The brokers' settings alone, for who reads a feed.
Result<stream::KafkaProperties> FeedProperties(const config::Config& config);

}  // namespace tacit::wiring
