// How fast a topic becomes batches, beside how fast librdkafka alone delivers it. All ways read the
// whole topic in turn, several times over, so that a machine that changes its pace changes it for
// all.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "app/bench/bench.h"
#include "app/bench/bench_data.h"
#include "event/dead_letters.h"
#include "stream/kafka_bare.h"
#include "stream/kafka_source.h"
#include "train/feed.h"

namespace tacit::app {
namespace {

using Steady = std::chrono::steady_clock;

// Looks when the last record has been decoded, and makes no steps.
class LookOn final : public stream::Participation {
 public:
  explicit LookOn(std::atomic<Steady::time_point>& last) : last_(last) {}

  bool Feed(const event::RawRecords&, const event::Batch&, const Emit&) override {
    last_ = Steady::now();
    return true;
  }
  bool Finish(const Emit&) override { return true; }

 private:
  std::atomic<Steady::time_point>& last_;
};

class NoDeadLetters final : public event::DeadLetterSink {
 public:
  Status Write(std::span<const event::DeadLetter>) override { return {}; }
};

// Records a second through source, decoding and cutting, threads and queues as in the daemon.
Result<double> Ingest(const Assembly& assembly, const stream::KafkaProperties& properties,
                      const std::string& topic) {
  stream::KafkaSourceOptions options;
  options.properties = properties;
  options.topic = topic;
  options.until_end = true;
  TACIT_ASSIGN(const auto source, stream::OpenKafkaSource(std::move(options), nullptr));
  const auto codec = event::MakeCriteoTsvCodec(*assembly.transform);
  NoDeadLetters dead_letters;
  std::atomic<Steady::time_point> last{};
  train::FeedOptions feed_options{.learners = {{.index = LearnerIndex(0),
                                                .participation = [&last](const stream::Position&)
                                                    -> std::unique_ptr<stream::Participation> {
                                                  return std::make_unique<LookOn>(last);
                                                },
                                                .start = {}}}};
  train::Feed feed(std::move(feed_options), *source, *codec, *assembly.transform, dead_letters);
  TACIT_RETURN_IF_ERROR(feed.Start());
  const Steady::time_point assigned = Steady::now();
  feed.steps().Pop();  // closed at the end of the topic
  feed.Stop();
  TACIT_RETURN_IF_ERROR(feed.status());
  if (feed.records_dead() > 0)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("topic '{}': {} of {} records are no lines of Criteo's", topic,
                            feed.records_dead(), feed.records_read()));
  return static_cast<double>(feed.records_read()) / Seconds(last.load() - assigned);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

Result<std::vector<BenchRow>> BenchKafka(const BenchRequest& request) {
  if (request.brokers.empty() || request.topic.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "the kafka benchmark reads a topic of Criteo lines: name it with --brokers and "
                "--topic (tacit replay fills one)");
  TACIT_ASSIGN(const BenchSetup setup, MakeBenchSetup("f32", true, 1));
  stream::KafkaProperties properties;
  properties.values = {{"bootstrap.servers", request.brokers},
                       {"group.id", fmt::format("tacit-bench-{}", ::getpid())}};
  std::vector<double> one_by_one, batches, ingest, shares;
  double record_bytes = 0;
  const int rounds = request.quick ? 1 : 5;
  for (int round = 0; round < rounds; ++round) {
    TACIT_ASSIGN(const auto one,
                 stream::ReadBare(properties, request.topic, stream::BareLoop::kOneByOne));
    TACIT_ASSIGN(const auto batch,
                 stream::ReadBare(properties, request.topic, stream::BareLoop::kBatches));
    TACIT_ASSIGN(const double ours, Ingest(setup.assembly, properties, request.topic));
    one_by_one.push_back(static_cast<double>(one.records) / one.seconds);
    batches.push_back(static_cast<double>(batch.records) / batch.seconds);
    ingest.push_back(ours);
    shares.push_back(ours / std::max(one_by_one.back(), batches.back()));
    record_bytes = static_cast<double>(batch.bytes) / static_cast<double>(batch.records);
  }
  const double bare = std::max(Median(one_by_one), Median(batches));
  return std::vector<BenchRow>{
      {.name = "kafka-bare-poll", .value = Median(one_by_one), .unit = "records/s"},
      {.name = "kafka-bare-batches",
       .value = Median(batches),
       .unit = "records/s",
       .more = {{"record_bytes", record_bytes}}},
      {.name = "kafka-ingest",
       .value = Median(ingest),
       .unit = "records/s",
       .limit = bare,
       .more = {{"share_of_each_round", boost::json::array(shares.begin(), shares.end())}},
       .note = fmt::format("(of each round's faster bare loop: {:.0f} to {:.0f} %)",
                           100 * *std::min_element(shares.begin(), shares.end()),
                           100 * *std::max_element(shares.begin(), shares.end()))}};
}

}  // namespace tacit::app
