#include "daemon/topic_check.h"

#include <fmt/format.h>

#include "base/text.h"
#include "stream/kafka/topic_sample.h"
#include "wiring/plans/kafka.h"

namespace tacit::daemon {
namespace {

// A machine without a way to the brokers has its answer soon.
constexpr std::chrono::milliseconds kAnswerWithin(1500);

std::string FoundText(const stream::KafkaTopicFacts& facts) {
  std::string text =
      fmt::format("has {} of {} and {} now", Counted(facts.partitions.size(), "partition"),
                  Counted(facts.replicas, "replica"), Counted(facts.retained(), "offset"));
  const std::string policy = facts.Setting("cleanup.policy");
  if (policy.find("compact") != std::string::npos)
    text += fmt::format(
        ". WARNING: its cleanup.policy is {}: of each key its brokers keep the newest record "
        "alone, "
        "so that interactions vanish, read or not",
        policy);
  return text;
}

std::string AnswerText(const config::Config& config) {
  const auto properties = wiring::KafkaPropertiesOf(config.kafka);
  if (!properties) return fmt::format("was not asked about: {}", properties.error().message);
  const auto facts = stream::AskTopic(*properties, config.source.topic, kAnswerWithin);
  if (facts) return FoundText(*facts);
  if (facts.error().code == ErrorCode::kNotFound)
    return "is NOT THERE: its brokers know no such topic. tacitd would wait until it is made";
  return fmt::format("was not seen: {}", facts.error().message);
}

}  // namespace

std::string TopicText(const config::Config& config) {
  if (!config.source.traits().keys.has("topic")) return "";
  return fmt::format("# topic {}: {}\n", config.source.topic, Printable(AnswerText(config)));
}

}  // namespace tacit::daemon
