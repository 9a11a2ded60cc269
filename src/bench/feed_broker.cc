#include "bench/feed_broker.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "bench/bench_data.h"
#include "bench/feed_topic.h"
#include "feed/replica.h"
#include "stream/kafka/producer.h"

namespace tacit::bench {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds kAnswer(20);
constexpr std::chrono::minutes kReading(5);  // of a topic of millions of records

double Since(Steady::time_point start) {
  return std::chrono::duration<double>(Steady::now() - start).count();
}

// Brokers that have just begun need a while until they answer.
template <class Request>
Status AskAgain(Request request) {
  const auto deadline = Steady::now() + std::chrono::minutes(1);
  for (;;) {
    Status done = request();
    const bool again = !done && done.error().code == ErrorCode::kUnavailable;
    if (!again || Steady::now() > deadline) return done;
  }
}

// One transaction, as a trainer's publisher sends it.
Status Publish(stream::KafkaProducer& producer, const SyntheticModel& model,
               const SyntheticVersion& version) {
  TACIT_RETURN_IF_ERROR(producer.BeginTransaction());
  TACIT_RETURN_IF_ERROR(
      model.Send(version, [&](int32_t partition, std::string_view key, std::string_view value) {
        return producer.Send({.partition = partition, .key = key, .value = value}, kAnswer);
      }));
  return AskAgain([&] { return producer.CommitTransaction(kAnswer); });
}

struct TopicSize {
  uint64_t records = 0, bytes = 0;
};

Result<TopicSize> ReadTopicSize(const stream::KafkaProperties& properties,
                                const std::string& topic) {
  TopicSize size;
  TACIT_RETURN_IF_ERROR(stream::ReadKafkaTail(
      properties, topic, ~uint64_t{0}, kReading,
      [&](const stream::KafkaTopicRecord& record) -> Status {
        ++size.records;
        size.bytes += record.key.value_or("").size() + record.value.value_or("").size();
        return {};
      }));
  return size;
}

}  // namespace

Status BenchFeedBroker(const BenchRequest& request, const std::string& folder, FeedRates* rates,
                       std::vector<BenchRow>* rows) {
  const uint64_t model_rows = request.quick ? 20'000 : 2'000'000;
  const uint64_t version_rows = model_rows / 40, versions = request.quick ? 4 : 40;
  constexpr std::chrono::seconds kCompaction(90), kBetweenLooks(5);
  const SyntheticModel model(model_rows);
  stream::KafkaProperties properties;
  properties.values = {{"bootstrap.servers", request.brokers}};
  TACIT_ASSIGN(const TopicSize before, ReadTopicSize(properties, request.topic));
  if (before.records > 0)
    return Fail(ErrorCode::kRefused,
                fmt::format("topic '{}' has records: the feed benchmark writes into one that is "
                            "empty",
                            request.topic));
  TACIT_ASSIGN(const auto producer,
               stream::KafkaProducer::Open({.properties = properties,
                                            .topic = request.topic,
                                            .transactional_id = "tacit-bench-" + request.topic}));
  TACIT_ASSIGN(const int32_t partitions, producer->CountPartitions(kAnswer));
  if (partitions != static_cast<int32_t>(SyntheticModel::kPartitions))
    return Fail(ErrorCode::kRefused,
                fmt::format("topic '{}' has {} partitions, the feed benchmark needs {}",
                            request.topic, partitions, SyntheticModel::kPartitions));
  TACIT_RETURN_IF_ERROR(AskAgain([&] { return producer->InitTransactions(kAnswer); }));
  SyntheticVersion whole;
  whole.version = whole.whole_since = CommitSeq(1);
  whole.rows = model_rows;
  auto start = Steady::now();
  TACIT_RETURN_IF_ERROR(Publish(*producer, model, whole));
  rates->publish_rows_s = static_cast<double>(model_rows) / Since(start);

  store::ReplicaOptions options;
  options.path = folder;
  options.learners = {model.layout()};
  start = Steady::now();
  TACIT_ASSIGN(const auto store, store::ReplicaStore::Open(options));
  feed::Replica replica(*store, {model.layout()},
                        {.properties = properties, .topic = request.topic});
  const auto follow = [&](CommitSeq version) -> Status {
    const auto deadline = Steady::now() + std::chrono::minutes(10);
    while (!store->Latest() || store->Latest()->version() < version) {
      const auto stepped = replica.Step(std::chrono::milliseconds(50));
      if (!stepped && stepped.error().code != ErrorCode::kUnavailable) return Fail(stepped.error());
      if (Steady::now() > deadline)
        return Fail(ErrorCode::kUnavailable, "the replica does not get on");
    }
    return {};
  };
  TACIT_RETURN_IF_ERROR(follow(whole.version));
  rates->first_rows_s = static_cast<double>(model_rows) / Since(start);

  std::vector<double> publish_s, lag_s;
  for (uint64_t v = 1; v <= versions; ++v) {
    const SyntheticVersion next{.version = CommitSeq(v + 1),
                                .previous = CommitSeq(v),
                                .whole_since = CommitSeq(1),
                                .first = v * version_rows,
                                .rows = version_rows};
    start = Steady::now();
    TACIT_RETURN_IF_ERROR(Publish(*producer, model, next));
    publish_s.push_back(Since(start));
    start = Steady::now();
    TACIT_RETURN_IF_ERROR(follow(next.version));
    lag_s.push_back(Since(start));
  }

  // Versions that wait are read one after the other: this is the rate of one that follows.
  const double all_rows = static_cast<double>(versions * version_rows);
  for (uint64_t v = versions + 1; v <= 2 * versions; ++v)
    TACIT_RETURN_IF_ERROR(Publish(*producer, model,
                                  {.version = CommitSeq(v + 1),
                                   .previous = CommitSeq(v),
                                   .whole_since = CommitSeq(1),
                                   .first = v * version_rows,
                                   .rows = version_rows}));
  start = Steady::now();
  TACIT_RETURN_IF_ERROR(follow(CommitSeq(2 * versions + 1)));
  rates->apply_rows_s = all_rows / Since(start);

  const double live_bytes = static_cast<double>(model_rows) * rates->row_bytes;
  double factor = 0;
  for (const auto end = Steady::now() + (request.quick ? std::chrono::seconds(0) : kCompaction);;) {
    TACIT_ASSIGN(const TopicSize size, ReadTopicSize(properties, request.topic));
    factor = static_cast<double>(size.bytes) / live_bytes;
    if (Steady::now() >= end) break;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  rows->push_back({.name = "feed-broker-publish",
                   .value = rates->publish_rows_s,
                   .unit = "rows/s",
                   .more = {{"version_rows", version_rows}, {"version_s", Median(publish_s)}},
                   .note = fmt::format("a version of {} rows: {:.1f} ms", version_rows,
                                       Median(publish_s) * 1e3)});
  rows->push_back({.name = "feed-broker-first",
                   .value = rates->first_rows_s,
                   .unit = "rows/s",
                   .more = {{"rows", model_rows}},
                   .note = "a new replica, from the topic's beginning until it is ready"});
  rows->push_back(
      {.name = "feed-broker-follow",
       .value = rates->apply_rows_s,
       .unit = "rows/s",
       .more = {{"version_rows", version_rows}, {"lag_s", Median(lag_s)}},
       .note = fmt::format("one version after its commit: {:.1f} ms", Median(lag_s) * 1e3)});
  // The formula, for such a version, which waits for nothing.
  const FeedOutlook outlook =
      LookAhead(*rates, {.rows = static_cast<double>(model_rows),
                         .replicas = 1,
                         .changed_rows_s = static_cast<double>(version_rows),
                         .interval_s = 1,
                         .broker_bytes_s = 1e18});
  rows->push_back({.name = "feed-broker-computed",
                   .value = outlook.lag_s - 1,
                   .unit = "s from begin to shown, computed",
                   .limit = Median(publish_s) + Median(lag_s),
                   .note = "(measured)"});
  rows->push_back(
      {.name = "feed-broker-topic",
       .value = factor,
       .unit = "bytes over live bytes",
       .more = {{"rows", model_rows}, {"published_rows", model_rows + 2 * all_rows}},
       .note = fmt::format("after {:.3g} rows of {:.3g} in all, as the topic's settings "
                           "compact them",
                           static_cast<double>(model_rows) + 2 * all_rows,
                           static_cast<double>(model_rows))});
  return {};
}

}  // namespace tacit::bench
