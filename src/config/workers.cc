#include <fmt/format.h>

#include "config/sections.h"

namespace tacit::config {

void DescribeWorkers(Fields& fields, Workers& workers) {
  fields.Text({"topic",
               "The beginning of two topics' names: `NAME.plan`, where the trainer says which "
               "ranges it wants summed, and `NAME.sums`, where workers send sums. Empty: the "
               "trainer sums alone."},
              &workers.topic);
  const bool used = !workers.topic.empty();
  fields.Text({"key_file",
               "The file of the key that trainer and workers share, which `tacit workers key` "
               "makes: sums are sealed with it, plans and the feed are marked. Nobody but root, "
               "tacitd's user and a group may read it."},
              &workers.key_file, RequiredIf(used));
  fields.Integer({"patience_ms",
                  "The time after which a slice is late that also takes twice as long as others. "
                  "A late slice is summed by another worker, or by the trainer."},
                 &workers.patience_ms, 100, 3'600'000, UsedIf(used));
  fields.Number({"check",
                 "The share of the workers' slices that the trainer sums up too, chosen so that no "
                 "worker knows which. A worker that has summed otherwise is named, and learning "
                 "stops."},
                &workers.check, {.min = 0, .max = 1}, UsedIf(used));
}

Status CheckWorkers(const Place& place, const Config& config) {
  const Workers& workers = config.workers;
  if (workers.topic.empty()) return {};
  const Place topic = place.Key("topic");
  const auto fail = [&](std::string_view name, std::string_view why) {
    return topic.Fail(fmt::format("'{}' {}", name, why));
  };
  for (const std::string& name : {workers.plan_topic(), workers.sums_topic()}) {
    if (!GoodTopic(name)) return fail(name, "is no topic's name");
    if (name == config.source.topic)
      return fail(name, "is source.topic itself: its records would be read as interactions");
    if (name == config.feed.topic)
      return fail(name, "is feed.topic itself: its records would be read as a model");
    if (name == config.kafka.dead_letter_topic) return fail(name, "is the topic of dead letters");
  }
  if (config.source.periods != Source::Periods::kTopic)
    return topic.Fail(
        "needs source.periods: topic, with source.kind kafka: workers sum periods of a whole "
        "topic");
  if (config.feed.topic.empty())
    return topic.Fail("needs feed.topic: workers get the model from the feed");
  if (workers.key_file.empty()) return place.Key("key_file").Fail("is empty");
  return {};
}

}  // namespace tacit::config
