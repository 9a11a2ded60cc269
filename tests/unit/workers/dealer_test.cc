#include "workers/dealer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/text.h"
#include "metrics/families.h"
#include "support/held_clock.h"
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
  Status plan_status() const override {
    return full ? Fail(ErrorCode::kUnavailable, "plan is full") : Status();
  }
  Status DeleteShown() override {
    if (kept) return Fail(ErrorCode::kRefused, "not allowed");
    deleted = read;
    return {};
  }

  std::vector<KafkaRecord> sums;
  size_t old = 0;  // sums that were there before the dealer
  std::vector<Plan> plans;
  size_t read = 0, deleted = 0;
  bool away = false, full = false, kept = false, endless = false;

 private:
  bool caught_up_ = false;
};

class DealerTest : public ::testing::Test {
 protected:
  void Begin(uint64_t version, const Ranges& ranges = {{0, 10, 50}, {1, 20, 60}}) {
    head_ = Digest{static_cast<uint8_t>(100 + version)};
    stream::SharedPeriod period{
        .store = {.lineage = "a", .sequence = version, .head = ToHex(head_)},
        .step = version,
        .ranges = ranges};
    for (const OffsetRange& range : ranges)
      period.before[range.partition] = *topic_.Before(range.partition, range.begin);
    dealer_.Begin(std::move(period));
  }
  PeriodPiece Next() {
    auto piece = dealer_.Next(milliseconds(0));
    EXPECT_TRUE(piece) << piece.error().message;
    return piece.value_or(PeriodPiece());
  }
  void Pass(milliseconds time) { clock_.Pass(time); }
  void Hello(const std::string& worker, const Digest& build = kDealerBuild) {
    topics_.sums.push_back(SealHello(kDealerKey, {.origin = {worker, head_, build}, .version = 1}));
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
    const Status read = dealer_.HaveRead(last);
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

  const ToyTopic topic_{3, 2, 100};
  test::HeldClock clock_;
  metrics::Registry registry_;
  HeldTopics topics_;
  Digest head_{};
  Dealer dealer_{{.key = kDealerKey,
                  .build = kDealerBuild,
                  .events = [](std::string_view part) -> Result<uint64_t> {
                    if (part.ends_with("bad")) return Fail(ErrorCode::kCorruption, "bad part");
                    ToySums sums;
                    sums.Add(std::string(part));
                    return sums.count;
                  }},
                 topics_,
                 clock_,
                 registry_};
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
  EXPECT_EQ(dealer_.Last().at(1), *topic_.Before(1, 60));
}

TEST_F(DealerTest, WorkersSumAllWhereTheyAreThere) {
  Begin(1);
  Join({"w-1", "w-2"});
  ASSERT_EQ(topics_.plans.size(), 1u);
  EXPECT_EQ(topics_.plans[0].head, head_);
  EXPECT_EQ(topics_.plans[0].version, 1u);
  EXPECT_EQ(topics_.plans[0].learners, (std::vector<LearnerStep>{{.key = 0, .step = 1}}));
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
  EXPECT_EQ(dealer_.trouble(), "");
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
  EXPECT_THAT(dealer_.trouble(), AllOf(HasSubstr("are not deleted"), HasSubstr("not allowed")));
  topics_.kept = false;
  Hello("w-1");
  Next();
  Begin(4);
  EXPECT_EQ(dealer_.trouble(), "");
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
  EXPECT_THAT(topics_.plans, IsEmpty());
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
  EXPECT_THAT(dealer_.trouble(), AllOf(HasSubstr("sums alone"), HasSubstr("sums are away")));
  Read({{0, 10, 50}, {1, 20, 60}});
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  topics_.away = false;
  Begin(2);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kRanges);
  EXPECT_EQ(dealer_.trouble(), "");
}

TEST_F(DealerTest, WhereNoPlanCanBeWrittenTheTrainerReadsAllOfIt) {
  Begin(1);
  topics_.full = true;
  Join({"w-1", "w-2"});
  EXPECT_THAT(dealer_.trouble(), AllOf(HasSubstr("plans are not written"), HasSubstr("full")));
  Read({{0, 10, 50}, {1, 20, 60}});
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  topics_.full = false;
  Begin(2);
  Hello("w-1");
  Next();
  EXPECT_EQ(Planned("w-1"), (Ranges{{0, 10, 50}, {1, 20, 60}}));
  EXPECT_EQ(dealer_.trouble(), "");
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

// The trainer does not try what has ended three workers, and says that it waits.
TEST_F(DealerTest, ASliceThatEndsThreeWorkersIsTold) {
  Begin(1);
  Join({"w-1"});
  for (const char* next : {"w-2", "w-3", "w-4"}) {
    EXPECT_EQ(dealer_.trouble(), "");
    Pass(milliseconds(3500));  // the one before says nothing any more
    Hello(next);
    EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  }
  EXPECT_THAT(dealer_.trouble(), AllOf(HasSubstr("a slice has ended three workers"),
                                       HasSubstr("begins at offset 10 of partition 0")));
  Pass(milliseconds(1100));
  Hello("w-4");
  Next();
  EXPECT_EQ(Planned("w-4"), (Ranges{{0, 10, 50}, {1, 20, 60}}));
  EXPECT_EQ(dealer_.trouble(), "");
}

TEST_F(DealerTest, ALateWorkerIsNamedUntilItDelivers) {
  Begin(1);
  Join({"w-1"});
  for (int i = 0; i < 2; ++i) {
    Pass(milliseconds(2501));
    Hello("w-1");
    EXPECT_EQ(dealer_.trouble(), "");
    EXPECT_EQ(Next().kind, i == 0 ? PeriodPiece::Kind::kNothing : PeriodPiece::Kind::kRanges);
  }
  EXPECT_THAT(dealer_.trouble(), AllOf(HasSubstr("have delivered nothing since a slice came late"),
                                       HasSubstr(": 'w-1' (late slices: 1)")));
  Read({{0, 10, 50}, {1, 20, 60}});
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  for (const uint64_t version : {2, 3}) {
    Begin(version);
    Hello("w-1");
    const PeriodPiece piece = Next();
    ASSERT_EQ(piece.kind, PeriodPiece::Kind::kRanges);
    EXPECT_EQ(CountOffsets(Planned("w-1")), version == 2 ? 0u : 5u);
    EXPECT_THAT(dealer_.trouble(), HasSubstr("'w-1'"));
    Read(piece.ranges);
  }
  Deliver("w-1", Sum(Planned("w-1")));
  Pass(milliseconds(100));
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kSums);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  Begin(4);
  Hello("w-1");
  Next();
  EXPECT_EQ(dealer_.trouble(), "");
  EXPECT_EQ(CountOffsets(Planned("w-1")), 80u);
}

TEST_F(DealerTest, CopiesThatDifferStopLearningAndNameBothWorkers) {
  Begin(1);
  Join({"w-1"});
  Body body = Sum({{0, 10, 50}});
  Deliver("w-1", body);
  body.sums.back() ^= 1;
  Deliver("w-2", body);
  const auto piece = dealer_.Next(milliseconds(0));
  ASSERT_FALSE(piece);
  EXPECT_EQ(piece.error().code, ErrorCode::kRefused);
  EXPECT_THAT(piece.error().message, HasSubstr("workers 'w-1' and 'w-2' have other sums"));
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
  for (uint64_t SummedRange::*count :
       {&SummedRange::unreadable, &SummedRange::opted_out, &SummedRange::empty}) {
    Body other = body;
    ++(other.ranges[0].*count);
    Deliver("w-1", other);
    EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  }
  EXPECT_EQ(Count("tacit_slices_refused_total", {{"why", "period"}}), 3);
  // Two that make up for each other cannot be told.
  Body other = body;
  other.ranges[0].unreadable += other.ranges[0].empty;
  other.ranges[0].empty = 0;
  Deliver("w-1", other);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kSums);
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
