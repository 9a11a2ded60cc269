#include <fmt/format.h>

#include "config/sections.h"

namespace tacit::config {

void DescribeFeed(Fields& fields, Feed& feed) {
  fields.Text({"topic", "The topic. Empty: nothing is published."}, &feed.topic);
  const Use used = UsedIf(!feed.topic.empty());
  fields.Integer({"interval_ms",
                  "The least time between two versions. A version may be of several commits. "
                  "Shorter: fresher answers, more records."},
                 &feed.interval_ms, 10, 3'600'000, used);
  fields.Integer({"max_age_ms",
                  "The age from which a commit that is not published makes `/readyz` degraded, and "
                  "so does the version that a replica serves. More than `feed.interval_ms`."},
                 &feed.max_age_ms, 100, 86'400'000, used);
  fields.Bytes({"backlog_bytes",
                "Commits that the store keeps until they are published. Beyond it the next version "
                "is sent whole."},
               &feed.backlog_bytes, 1ull << 20, 1ull << 40);
}

Status CheckFeed(const Place& place, const Config& config) {
  const Feed& feed = config.feed;
  if (feed.topic.empty()) return {};
  const Place topic = place.Key("topic");
  if (!GoodTopic(feed.topic)) return topic.Fail(fmt::format("'{}' is no topic's name", feed.topic));
  if (config.source.traits().keys.has("kafka") && feed.topic == config.source.topic)
    return topic.Fail("is source.topic itself: the model would be read as interactions");
  if (feed.topic == config.kafka.dead_letter_topic)
    return topic.Fail("is the topic of dead letters: these would be read as a model");
  if (feed.max_age_ms <= feed.interval_ms)
    return place.Key("max_age_ms")
        .Fail(fmt::format("must be more than feed.interval_ms, {}, is {}: every version would be "
                          "too old",
                          feed.interval_ms, feed.max_age_ms));
  return {};
}

}  // namespace tacit::config
