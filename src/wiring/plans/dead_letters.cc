#include "wiring/plans/dead_letters.h"

#include <utility>

#include "stream/kafka/dead_letter_topic.h"

namespace tacit::wiring {

Result<std::unique_ptr<event::DeadLetterSink>> OpenDeadLetters(const config::Config& config,
                                                               const std::string& lineage) {
  if (config.kafka.dead_letter_topic.empty()) {
    const config::DeadLetters& file = config.dead_letters;
    auto sink = event::OpenDeadLetterFile(
        {.path = file.path, .max_bytes = file.max_bytes, .files = file.files});
    if (!sink) return Fail(std::move(sink.error()).Context("dead_letters.path"));
    return sink;
  }
  stream::DeadLetterTopicOptions options{.topic = config.kafka.dead_letter_topic,
                                         .source_topic = config.source.topic,
                                         .connector = "tacitd",
                                         .lineage = lineage};
  TACIT_ASSIGN(options.properties.values, config::ReadKafkaProperties(config.kafka));
  options.properties.hidden = config::KeptElsewhere(config.kafka);
  if (const std::string* group = options.properties.Find("group.id")) options.connector = *group;
  return stream::OpenDeadLetterTopic(std::move(options));
}

const std::string& PlaceOfDeadLetters(const config::Config& config) {
  return config.kafka.dead_letter_topic.empty() ? config.dead_letters.path
                                                : config.kafka.dead_letter_topic;
}

}  // namespace tacit::wiring
