#include "workers/dealer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "metrics/families.h"
#include "toy_topic.h"

namespace tacit::workers {
namespace {

using std::chrono::milliseconds;
using stream::PeriodPiece;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr SharedKey kDealerKey{5};
constexpr Digest kDealerBuild{6};

// A clock that the test moves. People may have set its time of day back.
class SetClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(passed); }
  int64_t UnixMillis() const override {
    return 1'790'000'000'000 + unix_ms_off + passed / milliseconds(1);
  }

  Duration passed = std::chrono::seconds(1);
  int64_t unix_ms_off = 0;
};

// The topics in memory.
class HeldTopics final : public TrainerTopics {
 public:
  Status ReadSums(milliseconds, const Show& show) override {
    if (away) return Fail(ErrorCode::kUnavailable, "sums are away");
    while (read < sums.size()) {
      const KafkaRecord& record = sums[read++];
      if (read > old) caught_up_ = true;
      show(record.key, record.value);
    }
    caught_up_ = true;
    return {};
  }
  bool caught_up() const override { return caught_up_ && !away && !endless; }
  void WritePlan(std::string plan) override {
    if (!full) plans.push_back(DecodePlan(kDealerKey, plan).value());
  }
  bool plan_written() const override { return !full && !slow; }
  Status plan_status() const override {
    return full ? Fail(ErrorCode::kUnavailable, "plan is full") : Status();
  }
  Status DeleteShown() override {
    if (kept) return Fail(ErrorCode::kRefused, "not allowed");
    deleted = read;
    return {};
  }

  // Reading begins with the topic again.
  void Reopen() {
    old = sums.size();
    read = 0;
    caught_up_ = false;
  }

  std::vector<KafkaRecord> sums;
  size_t old = 0;  // sums that were there before the dealer
  std::vector<Plan> plans;
  size_t read = 0, deleted = 0;
  bool away = false, full = false, kept = false, endless = false, slow = false;

 private:
  bool caught_up_ = false;
};

class DealerTest : public ::testing::Test {
 protected:
  explicit DealerTest(double check = 0) : check_(check) {}

  void Begin(uint64_t version, const Ranges& ranges = {{0, 10, 50}, {1, 20, 60}}) {
    head_ = Digest{static_cast<uint8_t>(100 + version)};
    stream::SharedPeriod period{
        .store = {.lineage = "a", .sequence = version, .head = ToHex(head_)},
        .step = version,
        .ranges = ranges};
    for (const OffsetRange& range : ranges)
      period.before[range.partition] = *topic_.Before(range.partition, range.begin);
    dealer_->Begin(std::move(period));
  }
  PeriodPiece Next() {
    auto piece = dealer_->Next(milliseconds(0));
    EXPECT_TRUE(piece) << piece.error().message;
    return piece.value_or(PeriodPiece());
  }
  void Pass(milliseconds time) { clock_.passed += time; }
  // A hello that answers the newest plan.
  void Hello(const std::string& worker, const Digest& build = kDealerBuild) {
    topics_.sums.push_back(
        SealHello(kDealerKey, {.origin = {worker, head_, build},
                               .version = 1,
                               .plan_ms = topics_.plans.empty() ? 0 : topics_.plans.back().time_ms,
                               .number = ++hellos_}));
  }
  // Somebody writes into the topic again what has lain there since.
  void Replay(size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) topics_.sums.push_back(KafkaRecord(topics_.sums[i]));
  }
  void Deliver(const std::string& worker, const Body& body) {
    for (KafkaRecord& record :
         SealBody(kDealerKey, {worker, head_, kDealerBuild}, EncodeBody(body)))
      topics_.sums.push_back(std::move(record));
  }
  Body Sum(const Ranges& ranges) const { return ToyBody(topic_, head_, ranges); }
  // Has the dealer know these workers: it deals to them.
  void Join(const std::vector<std::string>& workers) {
    Next();
    for (const std::string& worker : workers) Hello(worker);
    Next();
    Pass(kFirstHellos);
    Next();
  }
  // Reads the ranges that were left to the trainer.
  void Read(const Ranges& ranges) {
    std::vector<std::optional<stream::LastRecord>> last;
    for (const SummedRange& summed : Sum(ranges).ranges) last.push_back(summed.last);
    const Status read = dealer_->HaveRead(last);
    EXPECT_TRUE(read) << read.error().message;
  }
  // The ranges of the newest plan that are this worker's; an empty name: the trainer's.
  Ranges Planned(const std::string& worker) const {
    Ranges ranges;
    for (const Slice& slice : topics_.plans.back().slices)
      if (slice.worker == worker)
        ranges.insert(ranges.end(), slice.ranges.begin(), slice.ranges.end());
    return ranges;
  }
  double Count(metrics::CounterName name, const metrics::Labels& labels = {}) {
    return registry_.AddCounter(name, labels).value();
  }

  const double check_;
  const ToyTopic topic_{3, 2, 100};
  uint64_t hellos_ = 0;
  SetClock clock_;
  metrics::Registry registry_;
  HeldTopics topics_;
  Digest head_{};
  std::unique_ptr<Dealer> dealer_ = NewDealer();

  // The trainer dies, and starts again.
  void Restart() {
    topics_.Reopen();
    dealer_ = NewDealer();
  }

 private:
  std::unique_ptr<Dealer> NewDealer() {
    return std::make_unique<Dealer>(
        DealerOptions{.key = kDealerKey,
                      .build = kDealerBuild,
                      .events = [](std::string_view part) -> Result<uint64_t> {
                        if (part.ends_with("bad")) return Fail(ErrorCode::kCorruption, "bad part");
                        ToySums sums;
                        sums.Add(std::string(part));
                        return sums.count;
                      },
                      .check = check_},
        topics_, clock_, registry_);
  }
};

TEST_F(DealerTest, TheFirstPeriodOfAStoreIsTheTrainers) {
  Hello("w-1");
  Begin(0);
  const PeriodPiece piece = Next();
  EXPECT_EQ(piece.kind, PeriodPiece::Kind::kRanges);
  EXPECT_EQ(piece.ranges, (Ranges{{0, 10, 50}, {1, 20, 60}}));
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  EXPECT_THAT(topics_.plans, IsEmpty());
  EXPECT_EQ(topics_.read, 0u);
  Read(piece.ranges);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  EXPECT_EQ(dealer_->Last().at(1), *topic_.Before(1, 60));
}

TEST_F(DealerTest, WorkersSumAllWhereTheyAreThere) {
  Begin(1);
  Join({"w-1", "w-2"});
  // The first one asks who is there.
  ASSERT_EQ(topics_.plans.size(), 2u);
  EXPECT_THAT(topics_.plans[0].slices, IsEmpty());
  EXPECT_EQ(topics_.plans[1].head, head_);
  EXPECT_EQ(topics_.plans[1].version, 1u);
  EXPECT_GT(topics_.plans[1].time_ms, topics_.plans[0].time_ms);
  EXPECT_EQ(topics_.plans[1].learners, (std::vector<LearnerStep>{{.key = 0, .step = 1}}));
  EXPECT_THAT(Planned(""), IsEmpty());
  const Body one = Sum(Planned("w-1")), two = Sum(Planned("w-2"));
  EXPECT_EQ(CountOffsets(RangesOf(one)) + CountOffsets(RangesOf(two)), 80u);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  Deliver("w-1", one);
  Deliver("w-1", one);
  PeriodPiece piece = Next();
  EXPECT_EQ(piece.kind, PeriodPiece::Kind::kSums);
  EXPECT_EQ(piece.from, "w-1");
  EXPECT_EQ(EncodeParts({{.key = 0, .bytes = piece.sums}}), one.sums);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing) << "a copy was handed on";
  Deliver("w-2", two);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kSums);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  EXPECT_EQ(Count("tacit_slices_total", {{"by", "workers"}}), 2);
  EXPECT_EQ(Count("tacit_slices_total", {{"by", "trainer"}}), 0);
  EXPECT_EQ(Count("tacit_slices_repeated_total"), 1);
  EXPECT_EQ(dealer_->trouble(), "");
}

// Sums lie in the topic until the next period begins, which is after the commit.
TEST_F(DealerTest, SumsAreDeletedOnceTheyAreCommitted) {
  Begin(1);
  Join({"w-1"});
  Deliver("w-1", Sum({{0, 10, 50}, {1, 20, 60}}));
  while (Next().kind != PeriodPiece::Kind::kEnd) EXPECT_EQ(topics_.deleted, 0u);
  EXPECT_EQ(topics_.deleted, 0u);
  Begin(2);
  EXPECT_EQ(topics_.deleted, topics_.sums.size());
  topics_.kept = true;
  Hello("w-1");
  Next();
  Begin(3);
  EXPECT_THAT(dealer_->trouble(), AllOf(HasSubstr("are not deleted"), HasSubstr("not allowed")));
  // Also where no more sums come.
  topics_.kept = false;
  Begin(4);
  EXPECT_EQ(dealer_->trouble(), "");
}

// A trainer that died before its commit: what was delivered counts, and the rest is dealt out.
TEST_F(DealerTest, AfterAStartSumsThatLieThereCount) {
  head_ = Digest{101};
  Hello("gone");
  Deliver("gone", Sum({{0, 10, 30}}));
  topics_.old = topics_.sums.size();
  Begin(1);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kSums);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing) << "hellos are waited for";
  Pass(kFirstHellos - milliseconds(1));
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing) << "hellos are waited for";
  EXPECT_EQ(topics_.plans.size(), 1u);
  Pass(milliseconds(1));
  const PeriodPiece piece = Next();
  ASSERT_EQ(piece.kind, PeriodPiece::Kind::kRanges) << "a worker that is gone was dealt to";
  EXPECT_EQ(piece.ranges, (Ranges{{0, 30, 50}, {1, 20, 60}}));
  // From then on nobody is waited for.
  Read(piece.ranges);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  Begin(2);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kRanges);
}

TEST_F(DealerTest, WithoutATopicTheTrainerSumsAlone) {
  topics_.away = true;
  Begin(1);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  Pass(kFirstHellos);
  EXPECT_EQ(Next().ranges, (Ranges{{0, 10, 50}, {1, 20, 60}}));
  EXPECT_THAT(dealer_->trouble(), AllOf(HasSubstr("sums alone"), HasSubstr("sums are away")));
  Read({{0, 10, 50}, {1, 20, 60}});
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  topics_.away = false;
  Begin(2);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kRanges);
  EXPECT_EQ(dealer_->trouble(), "");
}

TEST_F(DealerTest, WhereNoPlanCanBeWrittenTheTrainerReadsAllOfIt) {
  Begin(1);
  topics_.full = true;
  Join({"w-1", "w-2"});
  EXPECT_THAT(dealer_->trouble(), AllOf(HasSubstr("plans are not written"), HasSubstr("full")));
  Read({{0, 10, 50}, {1, 20, 60}});
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  topics_.full = false;
  // Workers have nothing to answer yet.
  Begin(2);
  Read(Next().ranges);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  Begin(3);
  Hello("w-1");
  Next();
  EXPECT_EQ(Planned("w-1"), (Ranges{{0, 10, 50}, {1, 20, 60}}));
  EXPECT_EQ(dealer_->trouble(), "");
}

// Nothing counts of a range from the moment at which the trainer begins to read it.
TEST_F(DealerTest, ALateSliceIsTheTrainersAlone) {
  Begin(1);
  Join({"w-1"});
  Pass(milliseconds(3500));  // it says nothing any more
  const PeriodPiece piece = Next();
  ASSERT_EQ(piece.kind, PeriodPiece::Kind::kRanges);
  EXPECT_EQ(piece.ranges, (Ranges{{0, 10, 50}, {1, 20, 60}}));
  Deliver("w-1", Sum(piece.ranges));
  Pass(milliseconds(100));
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  Read(piece.ranges);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  EXPECT_EQ(Count("tacit_slices_repeated_total"), 1);
}

// A partition whose leader is away has no end to be reached.
TEST_F(DealerTest, ATopicThatIsNotReadToItsEndHoldsNobodyUp) {
  topics_.endless = true;
  Begin(1);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  Pass(std::chrono::milliseconds(29'000));
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  Pass(std::chrono::milliseconds(1'000));
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  Pass(kFirstHellos);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kRanges);
}

TEST_F(DealerTest, HellosAreWaitedForOnceTheirPlanIsWritten) {
  topics_.slow = true;
  Begin(1);
  for (int i = 0; i < 29; ++i) {
    EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
    Pass(milliseconds(1000));
  }
  topics_.slow = false;
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  Hello("w-1");
  Pass(kFirstHellos);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  EXPECT_EQ(Planned("w-1"), (Ranges{{0, 10, 50}, {1, 20, 60}}));
}

// Hellos of a worker that is gone, written into the topic again, hold no slice.
TEST_F(DealerTest, AHelloThatWasHeardCountsNoMore) {
  Begin(1);
  Join({"w-1"});
  for (int i = 0; i < 4; ++i) {
    Pass(milliseconds(100));
    Hello("w-1");
    EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  }
  const size_t heard = topics_.sums.size();
  for (int i = 0; i < 3; ++i) {
    Pass(milliseconds(1000));
    Replay(0, heard);
    EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  }
  Pass(milliseconds(1000));
  Replay(0, heard);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kRanges);
}

// Nor after a start: there hellos of three gone workers would seem to end three more, and the
// trainer would not try the slice.
TEST_F(DealerTest, AHelloFromBeforeTheStartCountsNoMore) {
  Begin(1);
  Join({"w-1", "w-2", "w-3"});
  const std::vector<KafkaRecord> heard = topics_.sums;
  topics_.sums.clear();
  Pass(milliseconds(4000));
  Restart();
  Begin(1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
    topics_.sums.insert(topics_.sums.end(), heard.begin(), heard.end());
    Pass(milliseconds(750));
  }
  const PeriodPiece piece = Next();
  ASSERT_EQ(piece.kind, PeriodPiece::Kind::kRanges);
  EXPECT_EQ(piece.ranges, (Ranges{{0, 10, 50}, {1, 20, 60}}));
  // A worker that is there answers the new plan.
  Read(piece.ranges);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  Begin(2);
  Hello("w-1");
  Next();
  EXPECT_EQ(Planned("w-1"), (Ranges{{0, 10, 50}, {1, 20, 60}}));
}

// One that was kept back, and never heard, counts in the period of its plan and in the next one.
TEST_F(DealerTest, AHelloThatWasKeptBackCountsNoMore) {
  for (const uint64_t periods : {0, 1, 2, 3}) {
    SCOPED_TRACE(periods);
    topics_.sums.clear();
    Restart();
    Begin(1);
    Join({"w-1"});
    Hello("w-2");
    const KafkaRecord kept = topics_.sums.back();
    topics_.sums.pop_back();
    for (uint64_t period = 1; period <= periods; ++period) {
      Deliver("w-1", Sum({{0, 10, 50}, {1, 20, 60}}));
      while (Next().kind != PeriodPiece::Kind::kEnd) {
      }
      Begin(1 + period);
      Hello("w-1");
      if (period == periods) topics_.sums.push_back(kept);
      Next();
    }
    EXPECT_EQ(Planned("w-2").empty(), periods != 1);
    Pass(milliseconds(10'000));
  }
}

// A trainer whose clock is behind that of the one before writes plans that no worker takes, until a
// hello tells it so.
TEST_F(DealerTest, AClockThatIsBehindIsMadeUpFor) {
  Begin(1);
  Join({"w-1"});
  const int64_t newest = topics_.plans.back().time_ms;
  const std::vector<KafkaRecord> heard = topics_.sums;
  clock_.unix_ms_off = -3'600'000;
  Restart();
  Begin(1);
  Next();
  ASSERT_LT(topics_.plans.back().time_ms, newest);
  // The worker names the plan that counts for it; and so do hellos of others that are gone.
  topics_.sums.push_back(SealHello(
      kDealerKey, {.origin = {"w-1", head_, kDealerBuild}, .plan_ms = newest, .number = 900}));
  topics_.sums.insert(topics_.sums.end(), heard.begin(), heard.end());
  Next();
  EXPECT_GT(topics_.plans.back().time_ms, newest);
  topics_.sums.insert(topics_.sums.end(), heard.begin(), heard.end());
  hellos_ = 900;
  Hello("w-9");
  Next();
  Pass(kFirstHellos);
  Next();
  EXPECT_EQ(Planned("w-9"), (Ranges{{0, 10, 50}, {1, 20, 60}}));
}

// The trainer does not try what has ended three workers, and says that it waits.
TEST_F(DealerTest, ASliceThatEndsThreeWorkersIsTold) {
  Begin(1);
  Join({"w-1"});
  for (const char* next : {"w-2", "w-3", "w-4"}) {
    EXPECT_EQ(dealer_->trouble(), "");
    Pass(milliseconds(3500));  // the one before says nothing any more
    Hello(next);
    EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  }
  EXPECT_THAT(dealer_->trouble(), AllOf(HasSubstr("a slice has ended three workers"),
                                        HasSubstr("begins at offset 10 of partition 0")));
  Pass(milliseconds(1100));
  Hello("w-4");
  Next();
  EXPECT_EQ(Planned("w-4"), (Ranges{{0, 10, 50}, {1, 20, 60}}));
  EXPECT_EQ(dealer_->trouble(), "");
}

TEST_F(DealerTest, ALateWorkerIsNamedUntilItDelivers) {
  Begin(1);
  Join({"w-1"});
  for (int i = 0; i < 2; ++i) {
    Pass(milliseconds(2501));
    Hello("w-1");
    EXPECT_EQ(dealer_->trouble(), "");
    EXPECT_EQ(Next().kind, i == 0 ? PeriodPiece::Kind::kNothing : PeriodPiece::Kind::kRanges);
  }
  EXPECT_THAT(dealer_->trouble(), AllOf(HasSubstr("have delivered nothing since a slice came late"),
                                        HasSubstr(": 'w-1' (late slices: 1)")));
  Read({{0, 10, 50}, {1, 20, 60}});
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  for (const uint64_t version : {2, 3}) {
    Begin(version);
    Hello("w-1");
    const PeriodPiece piece = Next();
    ASSERT_EQ(piece.kind, PeriodPiece::Kind::kRanges);
    EXPECT_EQ(CountOffsets(Planned("w-1")), version == 2 ? 0u : 5u);
    EXPECT_THAT(dealer_->trouble(), HasSubstr("'w-1'"));
    Read(piece.ranges);
  }
  Deliver("w-1", Sum(Planned("w-1")));
  Pass(milliseconds(100));
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kSums);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  Begin(4);
  Hello("w-1");
  Next();
  EXPECT_EQ(dealer_->trouble(), "");
  EXPECT_EQ(CountOffsets(Planned("w-1")), 80u);
}

TEST_F(DealerTest, CopiesThatDifferStopLearningAndNameBothWorkers) {
  Begin(1);
  Join({"w-1"});
  Body body = Sum({{0, 10, 50}});
  Deliver("w-1", body);
  body.sums.back() ^= 1;
  Deliver("w-2", body);
  const auto piece = dealer_->Next(milliseconds(0));
  ASSERT_FALSE(piece);
  EXPECT_EQ(piece.error().code, ErrorCode::kRefused);
  EXPECT_THAT(piece.error().message, HasSubstr("workers 'w-1' and 'w-2' have other sums"));
}

// Records that were compacted away between two readings stop nothing, in either order.
TEST_F(DealerTest, RecordsThatGoMeanwhileStopNothing) {
  Begin(1);
  Join({"w-1"});
  const Body body = Sum({{0, 10, 30}, {1, 40, 60}});
  Deliver("w-1", body);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kSums);
  Body copy = body;
  ++copy.ranges[0].empty;
  copy.sums.back() ^= 1;
  Deliver("w-2", copy);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  EXPECT_EQ(Count("tacit_slices_repeated_total"), 1);
  Pass(milliseconds(3500));  // the worker is gone
  const PeriodPiece piece = Next();
  ASSERT_EQ(piece.kind, PeriodPiece::Kind::kRanges);
  ASSERT_EQ(piece.ranges, (Ranges{{0, 30, 50}, {1, 20, 40}}));
  // The trainer does not find the record any more that the worker's range follows.
  std::optional<stream::LastRecord> gone = Sum({{1, 20, 40}}).ranges[0].last;
  --gone->offset;
  gone->hash ^= 1;
  EXPECT_TRUE(dealer_->HaveRead({Sum({{0, 30, 50}}).ranges[0].last, gone}));
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
}

TEST_F(DealerTest, PartsThatDoNotFitTheLearnerDoNotCount) {
  Begin(1);
  Join({"w-1"});
  Body body = Sum({{0, 10, 50}});
  for (const std::vector<LearnerPart>& parts :
       {std::vector<LearnerPart>{},
        {{.key = 1, .bytes = "x"}},
        {{.key = 0, .bytes = "a bad"}},
        {{.key = 0, .bytes = "x"}, {.key = 1, .bytes = "x"}}}) {
    body.sums = EncodeParts(parts);
    Deliver("w-1", body);
    EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  }
  EXPECT_EQ(Count("tacit_slices_refused_total", {{"why", "period"}}), 4);
  Deliver("w-1", Sum({{0, 10, 50}}));
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kSums);
}

TEST_F(DealerTest, EachOffsetIsAnEventOrIsCountedAsNone) {
  Begin(1);
  Join({"w-1"});
  const Body body = Sum({{0, 10, 50}});
  std::vector<Body> wrong(3, body);
  ++wrong[0].ranges[0].dead[3];
  ++wrong[1].ranges[0].opted_out;
  ++wrong[2].ranges[0].empty;
  for (const Body& other : wrong) {
    Deliver("w-1", other);
    EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  }
  EXPECT_EQ(Count("tacit_slices_refused_total", {{"why", "period"}}), 3);
  // Two that make up for each other cannot be told.
  Body other = body;
  other.ranges[0].dead[0] += other.ranges[0].empty;
  other.ranges[0].empty = 0;
  Deliver("w-1", other);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kSums);
}

// The records that a worker has read come with its sums.
TEST_F(DealerTest, SumsComeWithTheCountsOfTheirRecords) {
  Begin(1);
  Join({"w-1"});
  Body body = Sum({{0, 10, 50}, {1, 20, 60}});
  const uint64_t empty = body.ranges[0].empty + body.ranges[1].empty;
  // Three records are no events.
  std::vector<LearnerPart> parts = DecodeParts(body.sums).value();
  parts[0].bytes[16] = static_cast<char>(parts[0].bytes[16] - 3);
  body.sums = EncodeParts(parts);
  body.ranges[0].dead[3] = 1;
  body.ranges[1].dead[5] = 1;
  body.ranges[1].opted_out = 1;
  Deliver("w-1", body);
  const PeriodPiece piece = Next();
  ASSERT_EQ(piece.kind, PeriodPiece::Kind::kSums);
  EXPECT_FALSE(piece.recount);
  EXPECT_EQ(piece.summed.records, 80 - empty);
  EXPECT_THAT(piece.summed.dead, ElementsAre(0, 0, 0, 1, 0, 1, 0));
  EXPECT_EQ(piece.summed.opted_out, 1u);
}

// The trainer reads what it checks, and only then gets the worker's sums, to compare them. The
// period waits for it.
class CheckingDealerTest : public DealerTest {
 protected:
  CheckingDealerTest() : DealerTest(/*check=*/1) {}
};

TEST_F(CheckingDealerTest, ABodyThatIsCheckedIsReadFirst) {
  Begin(1);
  Join({"w-1"});
  const Ranges all{{0, 10, 50}, {1, 20, 60}};
  const Body body = Sum(all);
  Deliver("w-1", body);
  Deliver("w-1", body);
  const PeriodPiece ranges = Next();
  ASSERT_EQ(ranges.kind, PeriodPiece::Kind::kRanges);
  EXPECT_EQ(ranges.ranges, all);
  EXPECT_TRUE(ranges.recount);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing) << "the period has ended before its check";
  EXPECT_EQ(Count("tacit_slices_checked_total"), 0);
  Read(all);
  const PeriodPiece sums = Next();
  ASSERT_EQ(sums.kind, PeriodPiece::Kind::kSums);
  EXPECT_TRUE(sums.recount);
  EXPECT_EQ(sums.from, "w-1");
  EXPECT_EQ(EncodeParts({{.key = 0, .bytes = sums.sums}}), body.sums);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  EXPECT_EQ(Count("tacit_slices_checked_total"), 1);
  EXPECT_EQ(Count("tacit_slices_total", {{"by", "workers"}}), 1);
  EXPECT_EQ(Count("tacit_slices_total", {{"by", "trainer"}}), 0);
  Begin(2);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
}

// A slice that nobody else sums is not held up by a check, and neither is taken for the other.
TEST_F(CheckingDealerTest, AnOwnSliceComesBeforeAChecked) {
  Begin(1);
  Join({"w-1", "w-2"});
  const Ranges first = Planned("w-1"), second = Planned("w-2");
  topics_.sums.push_back(SealHello(kDealerKey, {.origin = {"w-2", head_, kDealerBuild},
                                                .plan_ms = topics_.plans.back().time_ms,
                                                .number = ++hellos_,
                                                .leaves = true}));
  const PeriodPiece own = Next();
  ASSERT_EQ(own.kind, PeriodPiece::Kind::kRanges);
  EXPECT_EQ(own.ranges, second);
  EXPECT_FALSE(own.recount);
  Deliver("w-1", Sum(first));
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  Read(second);
  const PeriodPiece checked = Next();
  ASSERT_EQ(checked.kind, PeriodPiece::Kind::kRanges);
  EXPECT_EQ(checked.ranges, first);
  EXPECT_TRUE(checked.recount);
  Read(first);
  EXPECT_TRUE(Next().recount);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  EXPECT_EQ(Count("tacit_slices_total", {{"by", "trainer"}}), 1);
}

// Bodies are drawn by a secret of the store: the share comes out, another store draws others, and a
// restart the same.
TEST(DealerCheckTest, BodiesAreDrawnByASecretOfTheStore) {
  constexpr uint64_t kBodies = 4000;
  const ToyTopic topic(3, 1, kBodies + 1);
  const auto checked = [&](const std::string& secret, double share) {
    SetClock clock;
    metrics::Registry registry;
    HeldTopics topics;
    Dealer dealer({.key = kDealerKey, .build = kDealerBuild, .check = share}, topics, clock,
                  registry);
    dealer.SetStore(0, secret);
    const Digest head{101};
    dealer.Begin({.store = {.lineage = "a", .sequence = 1, .head = ToHex(head)},
                  .ranges = {{0, 0, kBodies + 1}}});  // one offset is not summed
    for (uint64_t offset = 0; offset < kBodies; ++offset)
      for (const KafkaRecord& record :
           SealBody(kDealerKey, {"w", head, kDealerBuild},
                    EncodeBody(ToyBody(topic, head, {{0, offset, offset + 1}}))))
        topics.sums.push_back(record);
    // Sums that are not checked come first; then the first check, which nobody reads.
    std::set<uint64_t> others;
    while (true) {
      const PeriodPiece piece = dealer.Next(milliseconds(0)).value();
      if (piece.kind != PeriodPiece::Kind::kSums) break;
      others.insert(piece.ranges[0].begin);
    }
    std::set<uint64_t> checked;
    for (uint64_t offset = 0; offset < kBodies; ++offset)
      if (!others.contains(offset)) checked.insert(offset);
    return checked;
  };
  const std::set<uint64_t> some = checked("a secret", 0.1);
  EXPECT_NEAR(static_cast<double>(some.size()), 0.1 * kBodies, 6 * std::sqrt(0.09 * kBodies));
  EXPECT_EQ(checked("a secret", 0.1), some);
  std::set<uint64_t> both;
  std::ranges::set_intersection(some, checked("another", 0.1), std::inserter(both, both.end()));
  EXPECT_LT(both.size(), some.size() / 2);
  EXPECT_TRUE(checked("a secret", 0).empty());
  EXPECT_EQ(checked("a secret", 1).size(), kBodies);
}

TEST_F(DealerTest, AWorkerOfAnotherBuildIsToldAndGetsNothing) {
  Begin(1);
  Next();
  Hello("w-1", Digest{9});
  Join({});
  EXPECT_EQ(Planned(""), (Ranges{{0, 10, 50}, {1, 20, 60}}));
  EXPECT_EQ(Count("tacit_slices_refused_total", {{"why", "build"}}), 1);
}

}  // namespace
}  // namespace tacit::workers
