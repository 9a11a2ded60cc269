// A worker behind librdkafka's mock of a broker; tests/system/kafka has a real one.
#include "daemon/worker/worker.h"

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "metrics/families.h"
#include "support/feed_forger.h"
#include "unit/stream/http_responder.h"
#include "unit/stream/mock_kafka.h"
#include "worker_rig.h"

namespace tacit::daemon {
namespace {

using workers::Outcome;

class WorkerTest : public WorkerRig<stream::MockKafka> {
 protected:
  // Learns all there is, and publishes it.
  void Begin(uint64_t seed) {
    random_.seed(seed);
    WriteEvents(900, random_);
    Learn(All());
    Publish();
  }
  std::mt19937_64 random_;
};

// Slices at random, one period after the other: each body is that of one thread over the same
// records, bit for bit, with its counts, and follows the records before.
TEST_F(WorkerTest, ABodyIsTheSumsOfOneThread) {
  Begin(1);
  const auto worker = Start("w-1");
  for (int period = 0; period < 4; ++period) SumAtRandom("w-1", random_);
  EXPECT_GT(left_out_, 0u);
  // Its own page counts what it has read.
  const auto count = [&](metrics::CounterName name, const metrics::Labels& labels = {}) {
    return registry_.AddCounter(name, labels).value();
  };
  EXPECT_TRUE(test::Eventually("all that was sent is counted",
                               [&] { return count("tacit_slices_sent_total") == 4; }));
  EXPECT_EQ(count("tacit_records_read_total"), static_cast<double>(records_));
  EXPECT_EQ(count("tacit_dead_letters_total", {{"part", "syntax"}}) +
                count("tacit_records_opted_out_total"),
            static_cast<double>(left_out_));
}

// The slices of two workers meet within a partition, and are a period for the collector.
TEST_F(WorkerTest, SlicesOfTwoWorkersCoverThePeriod) {
  Begin(2);
  const auto one = Start("w-1"), two = Start("w-2");
  const workers::Ranges ranges = All();
  const std::vector<double> rates = {1, 2};
  const auto slices = workers::CutSlices(ranges, rates);
  workers::Plan plan = PlanOf(slices[0], "w-1");
  plan.slices.push_back({"w-2", slices[1]});
  Announce(plan);
  const workers::Period period = PeriodOf(ranges);
  const auto bodies = AwaitBodies(period, 2);
  workers::Collector collector(key_, 1 << 30);
  collector.Begin(period);
  for (const workers::Body& body : bodies) {
    collector.Claim(RangesOf(body));
    EXPECT_EQ(collector.TakeOwn(body.ranges).outcome, Outcome::kCounted);
  }
  EXPECT_TRUE(collector.complete());
}

// A plan of a head that the feed has not is waited with; then the plan of the feed's head is
// summed, and nothing of the other was. Between two periods it is so for a moment, and no sign of a
// sick worker.
TEST_F(WorkerTest, APlanOfAnotherHeadIsNotSummed) {
  Begin(3);
  const auto worker = Start("w-1");
  AwaitReady(*worker, false, "no plan was read yet");
  workers::Plan stale = PlanOf({{0, 0, 50}}, "w-1");
  stale.head[0] ^= 1;
  Announce(stale);
  ASSERT_TRUE(test::Eventually("the other head is told", [&] {
    return worker->readiness().degraded_for_operators.starts_with("the plan is of head");
  }));
  EXPECT_TRUE(worker->readiness().ready);
  const workers::Ranges ranges = {{1, 5, 60}};
  Announce(PlanOf(ranges, "w-1"));
  AwaitBodies(PeriodOf(ranges));
  for (const auto& [key, value] : ReadSums().chunks)
    EXPECT_EQ(workers::ReadSums(key, value)->origin.head, store_->Latest()->head());
}

TEST_F(WorkerTest, AnotherBuildIdlesAndSaysWhy) {
  Begin(4);
  const auto other = Start("w-other", {"learners.0.mechanism.deviations=9"});
  const auto worker = Start("w-1");
  const workers::Ranges ranges = {{0, 10, 60}};
  workers::Plan plan = PlanOf({{1, 10, 60}}, "w-other");
  plan.slices.push_back({"w-1", ranges});
  Announce(plan);
  AwaitReady(*other, false, "the plan is of build");
  AwaitBodies(PeriodOf(ranges));
  ASSERT_TRUE(test::Eventually("both have said hello", [&] {
    std::set<std::string> names;
    for (const workers::Hello& hello : ReadSums().hellos) names.insert(hello.origin.worker);
    return names.size() == 2;
  }));
  for (const auto& [key, value] : ReadSums().chunks)
    EXPECT_EQ(workers::ReadSums(key, value)->origin.worker, "w-1");
}

// A plan that was not made with the key is refused.
TEST_F(WorkerTest, AForgedPlanIsNotSummed) {
  Begin(5);
  const auto worker = Start("w-1");
  workers::SharedKey another = key_;
  another[0] ^= 1;
  WritePlan(workers::EncodePlan(another, PlanOf({{0, 0, 50}}, "w-1")));
  const workers::Ranges ranges = {{1, 5, 60}};
  Announce(PlanOf(ranges, "w-1"));
  AwaitBodies(PeriodOf(ranges));
  std::map<Outcome, int> outcomes;
  Collect(PeriodOf({{0, 0, 50}}), &outcomes);
  EXPECT_EQ(outcomes[Outcome::kCounted], 0);
}

// A stranger writes a plan into the topic again: the worker stays with the newest one, which its
// hellos name.
TEST_F(WorkerTest, APlanThatIsWrittenAgainDoesNotCount) {
  Begin(7);
  const auto worker = Start("w-1");
  const std::string old = Announce(PlanOf({{1, 5, 60}}, "w-1"));
  AwaitBodies(PeriodOf({{1, 5, 60}}));
  Announce(PlanOf({{1, 60, 70}}, "w-1"));
  AwaitBodies(PeriodOf({{1, 60, 70}}));
  WritePlan(old);
  const uint64_t said = ReadSums().hellos.back().number;
  std::set<uint64_t> numbers;
  ASSERT_TRUE(test::Eventually("hellos are said after that", [&] {
    for (const workers::Hello& hello : ReadSums().hellos)
      if (hello.number >= said + 2) {
        EXPECT_EQ(hello.plan_ms, plan_ms_);
        numbers.insert(hello.number);
      }
    return numbers.size() >= 2;
  }));
}

// A slice whose dead letters cannot be written waits, and the worker says so. Letters are open from
// slice to slice.
TEST_F(WorkerTest, DeadLettersThatCannotBeWrittenAreTold) {
  Begin(13);
  const std::string folder = dir_ / "letters-of-worker";
  std::filesystem::create_directory(folder);
  const auto worker = Start("w-1", {"dead_letters.path=" + folder + "/letters"});
  const workers::Ranges first = {{0, 0, 60}}, second = {{1, 0, 60}};
  Announce(PlanOf(first, "w-1"));
  AwaitBodies(PeriodOf(first));
  std::filesystem::remove_all(folder);
  Announce(PlanOf(second, "w-1"));
  const std::string why = "dead letters cannot be written: ";
  ASSERT_TRUE(test::Eventually("the worker says so", [&] {
    const std::vector<workers::Hello> hellos = ReadSums().hellos;
    return hellos.back().trouble.find(why) != std::string::npos;
  }));
  EXPECT_THAT(worker->readiness().degraded_for_operators, ::testing::HasSubstr(why));
  EXPECT_EQ(registry_.AddGauge("tacit_dead_letters_waiting").value(), 1);
  std::filesystem::create_directory(folder);
  AwaitBodies(PeriodOf(second));
}

// A stranger who may write to the feed's topic has written another model.
TEST_F(WorkerTest, AFeedOfOtherWeightsIsNotSummedBy) {
  Begin(12);
  Learn(All());  // the first period moves no weight
  Publish();
  kafka_.Create("forged", 2);
  test::FeedForger forger;
  const auto forge = [&](const stream::KafkaTopicRecord& record) -> Status {
    kafka_.WriteKeyed("forged", record.partition, std::string(*record.key),
                      forger.Forge(record.partition, *record.key, *record.value));
    return {};
  };
  ASSERT_TRUE(stream::ReadKafkaTail(properties(), "model", 1'000'000, test::kPatience, forge));
  kafka_.Flush();
  EXPECT_GT(forger.changed(), 0u);
  const auto deceived = Start("w-deceived", {"feed.topic=forged"});
  const auto worker = Start("w-1");
  workers::Plan plan = PlanOf({{0, 10, 60}}, "w-deceived");
  plan.slices.push_back({"w-1", {{1, 10, 60}}});
  Announce(plan);
  AwaitReady(*deceived, false, "the feed has no version yet");
  ASSERT_TRUE(test::Eventually("the worker says why", [&] {
    return deceived->readiness().degraded_for_operators.find(
               "has no mark of workers.key_file that fits its rows") != std::string::npos;
  }));
  AwaitBodies(PeriodOf({{1, 10, 60}}));
  for (const auto& [key, value] : ReadSums().chunks)
    EXPECT_EQ(workers::ReadSums(key, value)->origin.worker, "w-1");
}

TEST_F(WorkerTest, AProducerThatHasFailedIsReplaced) {
  Begin(8);
  kafka_.FailProducerIds(2);
  const auto worker = Start("w-1");
  ASSERT_TRUE(test::Eventually("the failure is told", [&] {
    return worker->readiness().degraded_for_operators.find("the topic of sums: ") !=
           std::string::npos;
  }));
  Announce(PlanOf({{1, 5, 60}}, "w-1"));
  AwaitBodies(PeriodOf({{1, 5, 60}}));
  AwaitReady(*worker, true, "");
}

TEST_F(WorkerTest, ABodyThatWasNotWrittenIsSummedAgain) {
  Begin(9);
  Announce(PlanOf({{1, 5, 60}}, "w-1"));
  kafka_.FailWrites(true);
  const auto worker = Start("w-1");
  ASSERT_TRUE(test::Eventually("the body is sent again", [&] {
    return registry_.AddCounter("tacit_slices_sent_total").value() >= 2;
  }));
  kafka_.FailWrites(false);
  AwaitBodies(PeriodOf({{1, 5, 60}}));
}

// Records whose schemas are in a registry that does not answer, behind those that the model is of.
class WorkerRegistryTest : public WorkerTest {
 protected:
  // Has a worker begin a slice of such records. Its dead letters would be made at once.
  std::unique_ptr<Worker> Begin(uint64_t seed) {
    WorkerTest::Begin(seed);
    ranges_ = {{0, All()[0].end, All()[0].end + 20}};
    for (int i = 0; i < 20; ++i)
      kafka_.Write("events", 0,
                   std::string("\0\0\0\0\x07", 5) + R"({"clicked": 1, "who": "u1", "ad": "a"})");
    kafka_.Flush();
    const std::vector<std::string> more = {"source.framing=confluent", "source.schema_wait_ms=0",
                                           "source.registry.url=" + registry_double_.url()};
    auto worker = Start("w-1", more);
    const auto opt_out = train::OptOut::Read(dir_ / "out", {});
    build_ = wiring::BuildOf(
        {.assembly = *started_.back(), .key = key_, .sources = "s", .opt_out = &*opt_out});
    Announce(PlanOf(ranges_, "w-1"));
    EXPECT_TRUE(test::Eventually("the worker says what it waits for", [&] {
      const std::vector<workers::Hello> hellos = ReadSums().hellos;
      return !hellos.empty() && hellos.back().offsets == 20 &&
             hellos.back().trouble.find("not told yet wait for it") != std::string::npos;
    }));
    EXPECT_THAT(worker->readiness().degraded_for_operators,
                ::testing::HasSubstr("partition 0 waits at offset"));
    EXPECT_TRUE(ReadSums().chunks.empty());
    return worker;
  }

  std::atomic<bool> away_ = true;
  stream::HttpResponder registry_double_{[this](const std::string&) {
    if (away_) return stream::HttpResponder::Reply("503 Away", "");
    return stream::HttpResponder::Reply(
        "200 OK", R"({"schemaType":"JSON","schema":"{\"type\":\"object\"}"})");
  }};
  workers::Ranges ranges_;
};

// Letters that it made of them would count, and the records would be charged and not learnt from.
TEST_F(WorkerRegistryTest, ARegistryThatDoesNotAnswerMakesNoDeadLetters) {
  const auto worker = Begin(10);
  away_ = false;
  const auto bodies = AwaitBodies(PeriodOf(ranges_));
  ASSERT_EQ(bodies.size(), 1u);
  EXPECT_EQ(workers::RecordsOf(bodies[0]).records, 20u);
  EXPECT_EQ(workers::RecordsOf(bodies[0]).all_dead(), 0u);
}

// The trainer is told before the slice ends, which may take a while.
TEST_F(WorkerRegistryTest, AWorkerThatStopsInMidSliceSaysGoodbyeFirst) {
  Begin(11)->Stop();
  const workers::Hello last = ReadSums().hellos.back();
  EXPECT_TRUE(last.leaves);
  EXPECT_EQ(last.offsets, 20u);
}

TEST_F(WorkerTest, AWorkerThatStopsSaysGoodbye) {
  Begin(6);
  auto worker = Start("w-1");
  Announce(PlanOf({{1, 5, 60}}, "w-1"));
  AwaitReady(*worker, true, "");
  worker->Stop();
  size_t goodbyes = 0;
  for (const workers::Hello& hello : ReadSums().hellos) {
    goodbyes += hello.leaves ? 1 : 0;
    EXPECT_EQ(hello.threads, 3);
  }
  EXPECT_EQ(goodbyes, 1u);
}

}  // namespace
}  // namespace tacit::daemon
