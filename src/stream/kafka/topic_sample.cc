#include "stream/kafka/topic_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "stream/kafka/client.h"
#include "stream/kafka/topic.h"

namespace tacit::stream {
namespace {

using SampleClock = std::chrono::steady_clock;
constexpr Milliseconds kAskSlice(1000), kReadSlice(20), kBetweenAsks(50), kSettingsWithin(1000);
// Stretches of a partition that is looked at evenly, at most.
constexpr uint64_t kStretchesMost = 20;

const std::vector<std::string>& SettingsThatMatter() {
  static const std::vector<std::string> names = {"cleanup.policy", "retention.ms",
                                                 "retention.bytes", "max.message.bytes",
                                                 "message.timestamp.type"};
  return names;
}

// A consumer that nobody's group sees, which merely asks.
class Asker {
 public:
  Asker(KafkaProperties properties, std::string topic)
      : properties_(std::move(properties)), topic_(std::move(topic)) {
    // librdkafka requires a name of a consumer; nothing is committed or joined under it.
    if (properties_.Find("group.id") == nullptr)
      properties_.values.push_back({"group.id", "tacit"});
  }
  ~Asker() {
    if (client_ != nullptr) EndKafkaClient(std::move(client_), context_);
  }
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  Result<KafkaTopicFacts> Ask(Milliseconds timeout) {
    TACIT_ASSIGN(KafkaConf conf, MakeKafkaConf(properties_, KafkaRole::kConsumer, context_.get()));
    TACIT_ASSIGN(client_, MakeKafkaClient(std::move(conf), KafkaRole::kConsumer, *context_));
    rd_kafka_poll_set_consumer(client_.get());
    const auto deadline = SampleClock::now() + timeout;
    while (true) {
      const auto left = std::chrono::duration_cast<Milliseconds>(deadline - SampleClock::now());
      auto facts = AskOnce(std::clamp(left, kBetweenAsks, kAskSlice));
      if (facts) AskSettings(&*facts);
      if (facts || facts.error().code != ErrorCode::kUnavailable) return facts;
      const KafkaMessage none(  // serves errors
          rd_kafka_consumer_poll(client_.get(), static_cast<int>(kBetweenAsks.count())));
      const KafkaContext::Events events = context_->TakeEvents();
      if (!events.unauthenticated.empty())
        return Fail(ErrorCode::kIo, fmt::format("topic '{}': {}", topic_, events.unauthenticated));
      down_ = down_ || events.all_brokers_down;
      if (SampleClock::now() >= deadline) return GiveUp(facts.error().message);
    }
  }

 private:
  Result<KafkaTopicFacts> AskOnce(Milliseconds timeout) {
    TACIT_ASSIGN(const std::vector<int32_t> partitions,
                 ReadPartitions(client_.get(), topic_, timeout));
    KafkaTopicFacts facts;
    TACIT_RETURN_IF_ERROR(AskReplicas(timeout, &facts));
    TACIT_ASSIGN(facts.partitions, ReadSpans(client_.get(), topic_, partitions, timeout));
    return facts;
  }

  // Brokers that have just answered do so at once, or know no such question.
  void AskSettings(KafkaTopicFacts* facts) {
    auto settings =
        stream::AskSettings(client_.get(), topic_, SettingsThatMatter(), kSettingsWithin);
    if (settings)
      facts->settings = *std::move(settings);
    else
      facts->no_settings = settings.error().message;
  }

  // Refuses a partition without a leader, whose records nobody can read.
  Status AskReplicas(Milliseconds timeout, KafkaTopicFacts* facts) {
    const KafkaTopic handle(rd_kafka_topic_new(client_.get(), topic_.c_str(), nullptr));
    const rd_kafka_metadata_t* answer = nullptr;
    const auto asked = rd_kafka_metadata(client_.get(), 0, handle.get(), &answer,
                                         static_cast<int>(timeout.count()));
    if (asked != RD_KAFKA_RESP_ERR_NO_ERROR)
      return Unanswered(fmt::format("topic '{}'", topic_), asked);
    const KafkaMetadata metadata(answer);
    if (metadata->topic_cnt != 1) return {};
    const rd_kafka_metadata_topic_t& found = metadata->topics[0];
    for (int i = 0; i < found.partition_cnt; ++i) {
      const rd_kafka_metadata_partition_t& one = found.partitions[i];
      if (one.leader < 0)
        return Fail(ErrorCode::kUnavailable,
                    fmt::format("topic '{}': partition {} has no leader, and its records cannot be "
                                "read: look after the brokers that have it, and ask again",
                                topic_, one.id));
      const auto least = [&](uint32_t* least, int count) {
        *least =
            i == 0 ? static_cast<uint32_t>(count) : std::min(*least, static_cast<uint32_t>(count));
      };
      least(&facts->replicas, one.replica_cnt);
      least(&facts->in_sync, one.isr_cnt);
    }
    return {};
  }

  tl::unexpected<Error> GiveUp(const std::string& last) const {
    if (last.find("no leader") != std::string::npos) return Fail(ErrorCode::kUnavailable, last);
    const std::string* servers = properties_.Find("bootstrap.servers");
    return Fail(
        ErrorCode::kUnavailable,
        fmt::format("{}: {} at {}: is that where the brokers listen, and do they ask for TLS or "
                    "a password?",
                    last, down_ ? "no broker answers" : "no answer came in time",
                    servers == nullptr ? "the brokers" : *servers));
  }

  KafkaProperties properties_;
  const std::string topic_;
  const std::shared_ptr<KafkaContext> context_ = std::make_shared<KafkaContext>();
  KafkaClient client_;
  bool down_ = false;
};

// Reads the stretches that come first in their partitions, then those that come second, and so on.
class StretchReader {
 public:
  StretchReader(KafkaTopicReader& reader, const std::string& topic, Milliseconds patience)
      : reader_(reader), topic_(topic), patience_(patience) {}

  Status Read(const std::map<int32_t, OffsetRange>& round, const KafkaTopicReader::Show& show) {
    std::vector<PartitionOffset> starts;
    for (const auto& [partition, stretch] : round)
      starts.push_back({.partition = partition, .offset = stretch.begin});
    TACIT_RETURN_IF_ERROR(reader_.Seek(starts));
    const auto reached = [&] {
      return std::ranges::all_of(
          round, [&](const auto& one) { return reader_.Position(one.first) >= one.second.end; });
    };
    auto moved_at = SampleClock::now();
    uint64_t before = 0;
    while (!reached()) {
      TACIT_RETURN_IF_ERROR(reader_.Read(kReadSlice, [&](const KafkaTopicRecord& record) -> Status {
        return record.offset < round.at(record.partition).end ? show(record) : Status();
      }));
      // Behind an open transaction nothing comes.
      if (reader_.at_end()) return {};
      uint64_t now = 0;
      for (const auto& [partition, stretch] : round) now += reader_.Position(partition);
      if (now != std::exchange(before, now)) moved_at = SampleClock::now();
      if (SampleClock::now() - moved_at > patience_)
        return Fail(ErrorCode::kUnavailable,
                    fmt::format("topic '{}': nothing came for {} s{}{}", topic_,
                                static_cast<double>(patience_.count()) / 1000,
                                reader_.trouble().empty() ? "" : ": ", reader_.trouble()));
    }
    return {};
  }

 private:
  KafkaTopicReader& reader_;
  const std::string& topic_;
  const Milliseconds patience_;
};

}  // namespace

uint64_t KafkaTopicFacts::retained() const {
  uint64_t offsets = 0;
  for (const PartitionSpan& span : partitions) offsets += span.end - std::min(span.begin, span.end);
  return offsets;
}

std::string KafkaTopicFacts::Setting(const std::string& name) const {
  const auto found = settings.find(name);
  return found == settings.end() ? "" : found->second;
}

Result<KafkaTopicFacts> AskTopic(const KafkaProperties& properties, const std::string& topic,
                                 std::chrono::milliseconds timeout) {
  Asker asker(properties, topic);
  return asker.Ask(timeout);
}

std::vector<OffsetRange> ChooseStretches(std::span<const PartitionSpan> partitions,
                                         uint64_t offsets_most, KafkaSpread spread) {
  uint64_t all = 0;
  for (const PartitionSpan& span : partitions) all += span.end - std::min(span.begin, span.end);
  std::vector<OffsetRange> stretches;
  for (const PartitionSpan& span : partitions) {
    if (span.begin >= span.end) continue;
    const uint64_t size = span.end - span.begin;
    // Rounded up, so that a short partition is looked at too.
    const double part = static_cast<double>(offsets_most) / static_cast<double>(all);
    const auto share = static_cast<uint64_t>(std::ceil(part * static_cast<double>(size)));
    if (all <= offsets_most || share >= size) {
      stretches.push_back({span.partition, span.begin, span.end});
      continue;
    }
    const uint64_t count =
        spread == KafkaSpread::kFirst ? 1 : std::clamp<uint64_t>(share, 1, kStretchesMost);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t begin = span.begin + size / count * i;
      const uint64_t length = std::min(share / count + (i < share % count ? 1 : 0), size / count);
      if (length > 0) stretches.push_back({span.partition, begin, begin + length});
    }
  }
  return stretches;
}

Status ReadStretches(const KafkaProperties& properties, const std::string& topic,
                     std::span<const OffsetRange> stretches, std::chrono::milliseconds patience,
                     const KafkaTopicReader::Show& show) {
  TACIT_ASSIGN(const auto reader, KafkaTopicReader::Open(properties, topic));
  StretchReader rounds(*reader, topic, patience);
  std::map<int32_t, std::vector<OffsetRange>> by_partition;
  for (const OffsetRange& stretch : stretches) by_partition[stretch.partition].push_back(stretch);
  for (size_t i = 0;; ++i) {
    std::map<int32_t, OffsetRange> round;
    for (const auto& [partition, own] : by_partition)
      if (i < own.size()) round.emplace(partition, own[i]);
    if (round.empty()) return {};
    TACIT_RETURN_IF_ERROR(rounds.Read(round, show));
  }
}

}  // namespace tacit::stream
