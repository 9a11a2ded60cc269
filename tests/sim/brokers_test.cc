// Simulated brokers under the simulation: time passes in waits alone, lines lose what the seed
// says, and processes die. tests/contract holds the same brokers against real ones.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/brokers/cluster.h"
#include "sim/process.h"
#include "sim/scenes.h"
#include "stream/kafka/producer.h"
#include "stream/kafka/source.h"
#include "stream/kafka/topic_reader.h"

namespace tacit::sim {
namespace {

using namespace std::chrono_literals;
using stream::KafkaProducer;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int32_t kPartitions = 3;
constexpr int kRecords = 60;

stream::KafkaProperties PropertiesOf(const Cluster& cluster) {
  return {{{"bootstrap.servers", cluster.address()}, {"group.id", "readers"}}};
}

// The number of committed records by their values, as a process reads them.
std::map<std::string, int> ReadAll(const Cluster& cluster) {
  std::map<std::string, int> times;
  const Status read = stream::ReadKafkaTail(PropertiesOf(cluster), "t", 1000, 600s,
                                            [&](const stream::KafkaTopicRecord& record) -> Status {
                                              ++times[std::string(record.value.value_or("-"))];
                                              return {};
                                            });
  EXPECT_TRUE(read) << read.error().message;
  return times;
}

bool WriteNumbers(const Cluster& cluster) {
  auto producer = KafkaProducer::Open({.properties = PropertiesOf(cluster), .topic = "t"});
  if (!producer) return false;
  for (int i = 0; i < kRecords; ++i) {
    const std::string value = std::to_string(i);
    if (!(*producer)->Send({.partition = i % kPartitions, .value = value}, 600s)) return false;
    if (i % 7 == 0) std::this_thread::sleep_for(1s);
  }
  return (*producer)->Flush(3600s) && (*producer)->records_acked() == kRecords;
}

// Reads what is written meanwhile; each number comes once, in the order of its partition.
bool ReadNumbers(const Cluster& cluster) {
  stream::KafkaSourceOptions options;
  options.properties = PropertiesOf(cluster);
  options.topic = "t";
  auto source = stream::OpenKafkaSource(options, nullptr);
  if (!source || !(*source)->Seek({})) return false;
  std::map<int32_t, int> next = {{0, 0}, {1, 1}, {2, 2}};
  for (int read = 0; read < kRecords;) {
    event::RawRecords frame;
    const auto outcome = (*source)->Poll(1s, &frame);
    if (!outcome) return false;
    if (*outcome != stream::PollOutcome::kRecords) continue;
    for (size_t i = 0; i < frame.size(); ++i, ++read) {
      if (frame[i] != std::to_string(next[frame.partition])) return false;
      next[frame.partition] += kPartitions;
    }
  }
  return true;
}

// Brokers whose lines are slow and lose one request, and one answer, in this many.
Cluster::Owned Lossy(uint64_t seed, uint32_t one_in) {
  Cluster::Owned cluster = Cluster::Make(kPartitions);
  cluster->CreateTopic("t", kPartitions);
  for (Cluster::Line* line : cluster->lines()) line->latency_us = 2000;
  cluster->SetWeather(seed, one_in, one_in);
  return cluster;
}

Played PlayLines(uint64_t seed, const Cluster& cluster) {
  return Play(seed, [&cluster] {
    bool read = false;
    std::thread reader([&] { read = ReadNumbers(cluster); });
    const bool written = WriteNumbers(cluster);
    reader.join();
    return written && read;
  });
}

TEST(SimulatedBrokers, LibrdkafkaIsNotThere) {
  EXPECT_EQ(dlopen("librdkafka.so.1", RTLD_NOLOAD | RTLD_LAZY), nullptr);
}

TEST(SimulatedBrokers, AcrossLinesThatLoseRequestsAndAnswersAllComesOnce) {
  uint64_t losses = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Cluster::Owned cluster = Lossy(seed, 30);
    const Played played = PlayLines(seed, *cluster);
    EXPECT_TRUE(played.well()) << "seed " << seed << "\n" << played.outcome.finding;
    losses += cluster->losses();
  }
  EXPECT_GT(losses, 20u);
}

TEST(SimulatedBrokers, OneSeedGivesOneTrace) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    Outcome outcomes[2];
    for (Outcome& outcome : outcomes) outcome = PlayLines(seed, *Lossy(seed, 30)).outcome;
    EXPECT_EQ(outcomes[0].trace, outcomes[1].trace) << "seed " << seed;
    EXPECT_EQ(outcomes[0].time, outcomes[1].time);
  }
}

TEST(SimulatedBrokers, HoursPassInAPoll) {
  const Cluster::Owned cluster = Lossy(0, 0);
  const Played played = Play(1, [&] {
    const auto reader = stream::KafkaTopicReader::Open(PropertiesOf(*cluster), "t");
    const stream::PartitionOffset from[] = {{.partition = 0, .offset = 0}};
    if (!reader || !(*reader)->Seek(from)) return false;
    const auto read = [&] { return (*reader)->Read(2h, [](const auto&) -> Status { return {}; }); };
    if (!read() || !(*reader)->at_end()) return false;
    // The end was told, and nothing follows.
    const auto begun = std::chrono::steady_clock::now();
    return read() && std::chrono::steady_clock::now() - begun >= 2h;
  });
  EXPECT_TRUE(played.well()) << played.outcome.finding;
}

// A request that arrives and whose answer does not, comes again: it is served once.
TEST(SimulatedBrokers, AHalfOpenLineWritesOnce) {
  const Cluster::Owned cluster = Lossy(0, 0);
  const Played played = Play(1, [&] {
    auto producer = KafkaProducer::Open(
        {.properties = PropertiesOf(*cluster), .topic = "t", .transactional_id = "name"});
    if (!producer || !(*producer)->InitTransactions(60s)) return false;
    if (!(*producer)->BeginTransaction()) return false;
    const auto set = [&](bool half_open) {
      OnCluster act(*cluster);
      for (Cluster::Line* line : act->lines()) line->half_open = half_open;
    };
    set(true);
    if (!(*producer)->Send({.partition = 0, .value = "once"}, 1s)) return false;
    if ((*producer)->CommitTransaction(600s)) return false;
    set(false);
    Status committed = (*producer)->CommitTransaction(600s);
    while (!committed && committed.error().code == ErrorCode::kUnavailable)
      committed = (*producer)->CommitTransaction(600s);
    return committed && ReadAll(*cluster) == std::map<std::string, int>{{"once", 1}};
  });
  EXPECT_TRUE(played.well()) << played.outcome.finding;
}

// The process dies within its third transaction. Its successor ends that, and finds the others.
TEST(SimulatedBrokers, AProcessThatDiesLeavesWhatWasAcknowledged) {
  const Disk::Owned disk = Disk::Make();
  const Cluster::Owned cluster = Lossy(0, 0);
  const auto open = [&]() -> std::unique_ptr<KafkaProducer> {
    auto producer = KafkaProducer::Open(
        {.properties = PropertiesOf(*cluster), .topic = "t", .transactional_id = "name"});
    if (!producer || !(*producer)->InitTransactions(60s)) return nullptr;
    return *std::move(producer);
  };
  const Life first = Live({.seed = 1, .disk = disk.get()}, [&] {
    const auto producer = open();
    for (int i = 0; producer != nullptr && i < 3; ++i) {
      const std::string value = std::to_string(i);
      if (!producer->BeginTransaction()) return 1;
      if (!producer->Send({.partition = 0, .value = value}, 1s)) return 1;
      if (!producer->Flush(60s)) return 1;
      if (i == 2) std::_Exit(5);
      if (!producer->CommitTransaction(60s)) return 1;
    }
    return 1;
  });
  EXPECT_EQ(first.exit_code, 5) << first.words;
  const Life second = Live({.seed = 2, .disk = disk.get()}, [&] {
    return open() && ReadAll(*cluster) == std::map<std::string, int>{{"0", 1}, {"1", 1}} ? 0 : 1;
  });
  EXPECT_EQ(second.exit_code, 0) << second.words;
}

// A naive model of one partition: what each offset holds, and whose transaction it is in.
struct NaivePartition {
  struct Place {
    std::string value;
    int writer = -1;  // of an undecided transaction
    bool shown = true;
  };
  std::vector<Place> places;
  size_t start = 0;

  void Decide(int writer, bool commit) {
    for (Place& place : places)
      if (std::exchange(place.writer, place.writer == writer ? -1 : place.writer) == writer)
        place.shown = commit;
    places.push_back({.value = "", .shown = false});
  }
  std::vector<std::string> Shown() const {
    std::vector<std::string> shown;
    for (size_t i = 0; i < places.size() && places[i].writer < 0; ++i)
      if (i >= start && places[i].shown) shown.push_back(std::to_string(i) + places[i].value);
    return shown;
  }
};

TEST(SimulatedBrokers, RandomTransactionsAreThoseOfANaiveModel) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const Cluster::Owned cluster = Cluster::Make();
    cluster->CreateTopic("t", 1);
    NaivePartition naive;
    ProducerId ids[3];
    int32_t sequences[3] = {}, open[3] = {};
    const auto name = [](uint64_t writer) { return "writer" + std::to_string(writer); };
    for (uint64_t writer = 0; writer < 3; ++writer)
      ids[writer] = cluster->InitProducer(name(writer), 60'000).second;
    for (int step = 0; step < 60; ++step) {
      const uint64_t writer = random() % 3, what = random() % 6;
      const ClusterRecord record{.value = ":" + std::to_string(step)};
      if (what < 3) {
        ASSERT_EQ(cluster->AddPartition(name(writer), ids[writer], "t", 0), 0);
        for (int again = 0; again < 2; ++again)
          ASSERT_EQ(
              cluster->Append("t", 0, ids[writer], sequences[writer], true, {&record, 1}).offset,
              static_cast<int64_t>(naive.places.size()));
        ++sequences[writer];
        open[writer] = 1;
        naive.places.push_back({*record.value, static_cast<int>(writer)});
      } else if (what == 3) {
        cluster->Append("t", 0, {}, 0, false, {&record, 1});
        naive.places.push_back({*record.value});
      } else if (what == 4 && open[writer] != 0) {
        const bool commit = random() % 2 == 0;
        ASSERT_EQ(cluster->EndTransaction(name(writer), ids[writer], commit), 0);
        naive.Decide(static_cast<int>(writer), commit);
        open[writer] = 0;
      } else if (what == 5) {
        naive.start = std::max<size_t>(naive.start, random() % (naive.places.size() + 1));
        ASSERT_EQ(cluster->DeleteBefore("t", 0, static_cast<int64_t>(naive.start)), 0);
      }
      std::vector<std::string> shown;
      for (int64_t at = static_cast<int64_t>(naive.start);;) {
        const auto fetched = cluster->Fetch("t", 0, at, 1 + random() % 4, true);
        ASSERT_EQ(fetched.error, RD_KAFKA_RESP_ERR_NO_ERROR);
        for (const ClusterRecord& one : fetched.records)
          shown.push_back(std::to_string(one.offset) + *one.value);
        if (std::exchange(at, fetched.next) == fetched.next) break;
      }
      ASSERT_EQ(shown, naive.Shown()) << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace tacit::sim
