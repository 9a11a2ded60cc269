// A dealer hears who is there, who is gone and who is late.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dealer_rig.h"
#include "workers/dealer.h"

namespace tacit::workers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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
    Hello("w-1", kDealerBuild, /*leaves=*/false, "its disk\x1b is full");
    EXPECT_EQ(dealer_->trouble(), "");
    EXPECT_EQ(Next().kind, i == 0 ? PeriodPiece::Kind::kNothing : PeriodPiece::Kind::kRanges);
  }
  EXPECT_THAT(dealer_->trouble(), AllOf(HasSubstr("have delivered nothing since a slice came late"),
                                        HasSubstr(": 'w-1' (late slices: 1; it says: its disk")));
  EXPECT_THAT(dealer_->trouble(), Not(HasSubstr("\x1b")));
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

// A worker that has no model yet, or follows another feed, would cost patience with each slice.
TEST_F(DealerTest, AWorkerGetsSlicesOnceItHasTheModel) {
  const auto hello = [&](const std::string& worker, const Digest& model) {
    Hello(worker, kDealerBuild, /*leaves=*/false, "", model);
  };
  const Ranges all{{0, 10, 50}, {1, 20, 60}};
  const metrics::Gauge there = registry_.AddGauge("tacit_workers");
  Begin(1);
  Next();
  hello("w-1", {});
  hello("w-2", Digest{7});
  Join({"w-3"});
  EXPECT_EQ(Planned("w-3"), all);
  EXPECT_EQ(there.value(), 1);
  hello("w-2", head_);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
  EXPECT_EQ(there.value(), 2);
  const auto end = [&](const std::string& worker) {
    Deliver(worker, Sum(Planned(worker)));
    EXPECT_EQ(Next().kind, PeriodPiece::Kind::kSums);
  };
  end("w-3");
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);

  // As a period begins, all have the model of the one before.
  const Digest before = head_;
  Begin(2);
  for (const char* worker : {"w-2", "w-3"}) hello(worker, before);
  hello("w-1", {});
  Next();
  EXPECT_EQ(CountOffsets(Planned("w-2")) + CountOffsets(Planned("w-3")), 80u);
  ASSERT_FALSE(Planned("w-2").empty());
  ASSERT_FALSE(Planned("w-3").empty());
  // One that loses its model in mid-slice gives it back, and has not died of it.
  end("w-2");
  hello("w-3", {});
  const PeriodPiece given_back = Next();
  ASSERT_EQ(given_back.kind, PeriodPiece::Kind::kNothing);
  EXPECT_FALSE(Planned("w-2").empty());
  end("w-2");
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);

  // Here w-3 is two models behind, and w-1 has caught up.
  Begin(3);
  hello("w-3", before);
  hello("w-1", head_);
  hello("w-2", head_);
  Next();
  EXPECT_THAT(Planned("w-3"), IsEmpty());
  EXPECT_EQ(CountOffsets(Planned("w-1")) + CountOffsets(Planned("w-2")), 80u);
  EXPECT_FALSE(Planned("w-1").empty());
  EXPECT_EQ(dealer_->trouble(), "");
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
