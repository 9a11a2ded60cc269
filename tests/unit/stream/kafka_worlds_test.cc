// Pairs of worlds that differ in what one record holds, and in everything that may follow from it:
// how long it is on its way, how long its schema is asked for, how long learning takes, when a
// client breaks. The steps of all people, in their order, have to be the same ones, and the same
// records of others have to be learnt from.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>

#include "broker_double.h"
#include "http_responder.h"
#include "stream/kafka/schema_registry.h"
#include "stream/kafka/turns.h"
#include "stream/steps/participation.h"
#include "support/silent_noise.h"

namespace tacit::stream {
namespace {

constexpr int64_t kRoundMs = 100, kTickMs = 700, kSchemaWaitMs = 2000, kLiveMs = 6000;
constexpr uint64_t kStep = 500, kPeriod = 1500;

struct World {
  Victim victim;
  int64_t registry_back_ms = 0;  // it answers from then on
  int64_t step_ms_max = 0;       // how long learning a step takes at most
  bool poisson = false;
  uint64_t seed = 0;  // of everything that is no part of the topic
};

// The result of a world.
struct Course {
  std::vector<OffsetRange> steps;
  std::set<std::pair<int32_t, uint64_t>> dead;
  size_t records = 0, given_up = 0, breaks = 0, ticks = 0;
};

// A registry of the tests' own. kForged and what is above 11 it does not know; of kFailing it
// always fails to tell. It is away until `back_ms` of a clock that is copied into `now_ms`.
class WorldRegistry {
 public:
  explicit WorldRegistry(int64_t back_ms) : back_ms_(back_ms) {}

  std::atomic<int64_t> now_ms = 0;
  std::string url() const { return responder_.url(); }

 private:
  std::string Answer(const std::string& head) const {
    const int id = std::stoi(head.substr(head.find("ids/") + 4));
    if (now_ms < back_ms_ || id == kFailing) return HttpResponder::Reply("503 Away", "");
    if (id == kForged || id > kLate) return HttpResponder::Reply("404 Not Found", "");
    return HttpResponder::Reply("200 OK", R"({"schemaType":"JSON","schema":"{}"})");
  }

  const int64_t back_ms_;
  HttpResponder responder_{[this](const std::string& head) { return Answer(head); }};
};

class Reading {
 public:
  Reading(const TopicScript& script, const World& world)
      : script_(script),
        world_(world),
        end_ms_(script.last_arrival_ms() + 2 * kTickMs),
        random_(world.seed),
        broker_(script, world.victim, clock_, world.seed + 1),
        registry_(world.registry_back_ms),
        envelope_({.framed = true}, MakeSchemaRegistry({.url = registry_.url(),
                                                        .timeout = std::chrono::minutes(10),
                                                        .wait = milliseconds(kSchemaWaitMs)},
                                                       clock_)),
        turns_({{.topic = "t"}, clock_, &envelope_, rounds_}) {
    if (world.poisson) {
      participation_ = MakePoissonParticipation({.offsets_per_period = kPeriod,
                                                 .steps_per_period = 2,
                                                 .sampling_rate = 0.1,
                                                 .start = {},
                                                 .full_at_once = true},
                                                std::make_unique<noise::SilentNoise>());
    } else {
      participation_ =
          MakeOnceParticipation({.offsets_per_step = kStep, .start = {}, .full_at_once = true});
    }
  }

  Course Go() {
    for (int32_t p = 0; p < static_cast<int32_t>(script_.partitions.size()); ++p)
      turns_.Start({.partition = p});
    // Longer than any stall: what does not come to an end is a failure.
    while (clock_.ms() < 100'000'000) {
      registry_.now_ms = clock_.ms();
      CloseRounds();
      event::RawRecords frame;
      std::optional<LastRecord> last;
      const auto taken = turns_.Take(broker_, milliseconds(0), &frame, &last);
      if (!taken) {
        OpenAnew();
      } else if (*taken) {
        Learn(frame);
      } else if (turns_.idle() && next_round_ms_ > end_ms_) {
        participation_->Finish(Emitter());
        return course_;
      } else {
        clock_.Advance(1);
      }
    }
    ADD_FAILURE() << "it does not come to an end";
    return course_;
  }

 private:
  void CloseRounds() {
    for (; next_round_ms_ <= std::min(clock_.ms(), end_ms_); next_round_ms_ += kRoundMs) {
      std::vector<PartitionEnd> ends;
      for (size_t p = 0; p < script_.partitions.size(); ++p)
        ends.push_back({static_cast<int32_t>(p), script_.EndAt(p, next_round_ms_)});
      const bool tick = next_round_ms_ > 0 && next_round_ms_ % kTickMs == 0;
      ASSERT_TRUE(rounds_.Close(ends, tick));
    }
  }

  void OpenAnew() {
    ++course_.breaks;
    turns_.DropFetched();
    for (const auto& partition : turns_.partitions()) {
      EXPECT_TRUE(broker_.Seek(partition->id(), partition->next()));
      turns_.Start({.partition = partition->id(), .offset = partition->next()});
    }
    clock_.Advance(static_cast<int64_t>(random_() % 400));
  }

  void Learn(const event::RawRecords& frame) {
    event::Batch batch;
    batch.partition = frame.partition;
    auto fault = frame.faults.begin();
    for (uint32_t i = 0; i < frame.size(); ++i) {
      if (fault != frame.faults.end() && fault->index == i) {
        course_.given_up += fault->reason.find("not answered for 2 s") != std::string::npos;
        course_.dead.insert({frame.partition, frame.first_offset + i});
        ++fault;
        continue;
      }
      batch.offset.push_back(frame.first_offset + i);
      batch.timestamp_ms.push_back(frame.timestamp_ms[i]);
      batch.label.push_back(0);
    }
    course_.records += frame.size();
    course_.ticks += frame.cuts.size();
    ASSERT_TRUE(participation_->Cut(frame, batch, Emitter()));
  }

  Participation::Emit Emitter() {
    return [this](StepBatch&& step) {
      if (step.preview()) return true;
      course_.steps.insert(course_.steps.end(), step.ranges.begin(), step.ranges.end());
      if (world_.step_ms_max > 0)
        clock_.Advance(static_cast<int64_t>(random_() % static_cast<uint64_t>(world_.step_ms_max)));
      return true;
    };
  }

  const TopicScript& script_;
  const World world_;
  const int64_t end_ms_;  // the last round, in every world
  std::mt19937_64 random_;
  SetClock clock_;
  BrokerDouble broker_;
  WorldRegistry registry_;
  event::Envelope envelope_;
  RoundQueue rounds_;
  KafkaTurns turns_;
  std::unique_ptr<Participation> participation_;
  int64_t next_round_ms_ = 0;
  Course course_;
};

uint64_t Records(const TopicScript& script) {
  uint64_t records = 0;
  for (const auto& partition : script.partitions) records += partition.size();
  return records;
}

// Describes where two courses part, for a reader.
std::string Difference(const Course& a, const Course& b) {
  for (size_t i = 0; i < std::max(a.steps.size(), b.steps.size()); ++i) {
    if (i < a.steps.size() && i < b.steps.size() && a.steps[i] == b.steps[i]) continue;
    const auto text = [&](const Course& course) {
      if (i >= course.steps.size()) return std::string("none");
      const OffsetRange& range = course.steps[i];
      return "partition " + std::to_string(range.partition) + " [" + std::to_string(range.begin) +
             ", " + std::to_string(range.end) + ")";
    };
    return "step " + std::to_string(i) + ": " + text(a) + " or " + text(b);
  }
  return "";
}

class KafkaWorlds : public testing::TestWithParam<bool> {};

TEST_P(KafkaWorlds, TheOrderOfStepsTellsNothingOfARecord) {
  constexpr int kPairs = 24;
  std::random_device device;
  Course sum;
  size_t overtaken = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    const uint64_t seed = (uint64_t{device()} << 32) | device();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const TopicScript script = TopicScript::Draw(random, 3, kLiveMs);
    const auto& records = script.partitions[random() % 3];
    const auto partition = static_cast<int32_t>(&records - script.partitions.data());
    World there{.victim = {partition, records[random() % records.size()].offset},
                .step_ms_max = 60,
                .poisson = GetParam(),
                .seed = random()};
    World other = there;
    constexpr Victim::Kind kKinds[] = {Victim::Kind::kNull,    Victim::Kind::kLarge,
                                       Victim::Kind::kForged,  Victim::Kind::kForged,
                                       Victim::Kind::kFailing, Victim::Kind::kLate};
    const int kind = pair % static_cast<int>(std::size(kKinds));
    other.victim.kind = kKinds[kind];
    // It is back in time for all records in some worlds, and not for the first ones in others.
    if (kind == 3) there.registry_back_ms = other.registry_back_ms = 1500;
    if (kind == 5) there.registry_back_ms = other.registry_back_ms = 4000;
    other.step_ms_max = static_cast<int64_t>(random() % 200);
    other.seed = random();
    Course a = Reading(script, there).Go(), b = Reading(script, other).Go();
    ASSERT_EQ(Difference(a, b), "");
    EXPECT_EQ(a.records, Records(script));
    EXPECT_EQ(b.records, Records(script));
    const std::pair<int32_t, uint64_t> victim(there.victim.partition, there.victim.offset);
    if (kind != 5) {
      EXPECT_EQ(a.dead.count(victim), 0u);
      EXPECT_EQ(b.dead.count(victim), kind == 1 ? 0u : 1u);
      a.dead.erase(victim);
      b.dead.erase(victim);
      EXPECT_EQ(a.dead, b.dead) << "others have other parts";
      EXPECT_EQ(a.given_up + b.given_up, 0u);
    }
    sum.dead.merge(a.dead);
    sum.given_up += std::min(a.given_up, b.given_up);
    sum.ticks += a.ticks;
    sum.breaks += a.breaks + b.breaks;
    for (size_t i = 1; i < a.steps.size(); ++i)
      overtaken += a.steps[i].partition != a.steps[i - 1].partition;
  }
  // The worlds contain the cases that they are to have.
  EXPECT_GT(overtaken, 10u * kPairs);
  EXPECT_GT(sum.ticks, 3u * kPairs);
  EXPECT_GT(sum.breaks, size_t{kPairs});
  EXPECT_GE(sum.given_up, size_t{kPairs});
  EXPECT_GT(sum.dead.size(), 5u * kPairs);
}

INSTANTIATE_TEST_SUITE_P(Participations, KafkaWorlds, testing::Bool(),
                         [](const auto& info) { return info.param ? "poisson" : "once"; });

}  // namespace
}  // namespace tacit::stream
