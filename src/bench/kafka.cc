// Measures how fast a topic becomes batches, next to how fast librdkafka alone delivers it. The
// ways of reading take turns over the whole topic, several times, so that a machine that changes
// its speed changes it for all. CPU time per record does not depend on other users of the machine.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "bench/bench_data.h"
#include "bench/read_whole.h"
#include "bench/suite.h"
#include "config/config.h"
#include "stream/kafka/bare.h"
#include "stream/kafka/source.h"

namespace tacit::bench {
namespace {

// Reads through source, decoding and cutting, with threads and queues as in the daemon.
Result<stream::BareReading> Ingest(const wiring::Assembly& assembly,
                                   const stream::KafkaProperties& properties,
                                   const std::string& topic) {
  stream::KafkaSourceOptions options;
  options.properties = properties;
  options.topic = topic;
  options.until_end = true;
  TACIT_ASSIGN(const auto source, stream::OpenKafkaSource(std::move(options), nullptr));
  const auto codec = event::MakeCriteoTsvCodec(*assembly.transform);
  TACIT_ASSIGN(const IntakeReading read,
               ReadWhole({.learners = {},
                          .queued_records_max =
                              RowOf(config::kSources, config::SourceKind::kKafka).runs_queued},
                         *source, *codec, *assembly.transform));
  if (read.dead > 0)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("topic '{}': {} of {} records are no lines of Criteo's", topic,
                            read.dead, read.records));
  return stream::BareReading{.records = read.records, .seconds = read.seconds};
}

// CPU seconds of this process, all threads together.
double CpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// One way of reading the topic, round after round.
struct Way {
  std::vector<double> rates, cpu;  // records a second; seconds for a million records

  // `read` returns {records, seconds}.
  template <class Read>
  Status Run(Read read) {
    const double begun = CpuSeconds();
    TACIT_ASSIGN(const stream::BareReading reading, read());
    const auto records = static_cast<double>(reading.records);
    rates.push_back(records / reading.seconds);
    cpu.push_back((CpuSeconds() - begun) / records * 1e6);
    return {};
  }
};

}  // namespace

Result<std::vector<BenchRow>> BenchKafka(const BenchRequest& request) {
  if (request.brokers.empty() || request.topic.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "the kafka benchmark reads a topic of Criteo lines: name it with --brokers and "
                "--topic (tacit replay fills one)");
  TACIT_ASSIGN(const BenchSetup setup, MakeBenchSetup({}));
  stream::KafkaProperties properties;
  properties.values = {{"bootstrap.servers", request.brokers},
                       {"group.id", fmt::format("tacit-bench-{}", ::getpid())}};
  Way poll, batches, ingest;
  std::vector<double> shares;
  double record_bytes = 0;
  const auto bare = [&](stream::BareLoop loop) {
    auto reading = stream::ReadBare(properties, request.topic, loop);
    if (reading)
      record_bytes = static_cast<double>(reading->bytes) / static_cast<double>(reading->records);
    return reading;
  };
  const int rounds = request.quick ? 1 : 5;
  for (int round = 0; round < rounds; ++round) {
    TACIT_RETURN_IF_ERROR(poll.Run([&] { return bare(stream::BareLoop::kOneByOne); }));
    TACIT_RETURN_IF_ERROR(batches.Run([&] { return bare(stream::BareLoop::kBatches); }));
    TACIT_RETURN_IF_ERROR(
        ingest.Run([&] { return Ingest(setup.assembly, properties, request.topic); }));
    shares.push_back(ingest.rates.back() / std::max(poll.rates.back(), batches.rates.back()));
  }
  const auto cpu = [](const Way& way) {
    return boost::json::object{{"cpu_s_per_million", Median(way.cpu)}};
  };
  const auto cpu_note = [](const Way& way) {
    return fmt::format("({:.2f} CPU seconds for a million)", Median(way.cpu));
  };
  std::vector<BenchRow> rows{
      {.name = "kafka-bare-poll",
       .value = Median(poll.rates),
       .unit = "records/s",
       .more = cpu(poll),
       .note = cpu_note(poll)},
      {.name = "kafka-bare-batches",
       .value = Median(batches.rates),
       .unit = "records/s",
       .more = cpu(batches),
       .note = cpu_note(batches)},
      {.name = "kafka-ingest",
       .value = Median(ingest.rates),
       .unit = "records/s",
       .limit = std::max(Median(poll.rates), Median(batches.rates)),
       .more = cpu(ingest),
       .note = fmt::format("{} (of each round's faster bare loop: {:.0f} to {:.0f} %)",
                           cpu_note(ingest), 100 * *std::min_element(shares.begin(), shares.end()),
                           100 * *std::max_element(shares.begin(), shares.end()))}};
  rows[1].more["record_bytes"] = record_bytes;
  rows[2].more["share_of_each_round"] = boost::json::array(shares.begin(), shares.end());
  return rows;
}

}  // namespace tacit::bench
