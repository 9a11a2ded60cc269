#include "workers/dealer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "dealer_rig.h"

namespace tacit::workers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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
  // No worker could have a model: an alert would be wrong.
  const metrics::Gauge workers = registry_.AddGauge("tacit_workers");
  EXPECT_TRUE(std::isnan(workers.value()));
  Begin(1);
  Join({});
  EXPECT_EQ(workers.value(), 0);
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
  EXPECT_EQ(EncodeParts({{.key = 0, .bytes = piece.sums[0].bytes}}), one.sums);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing) << "a copy was handed on";
  Deliver("w-2", two);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kSums);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  EXPECT_EQ(Count("tacit_slices_total", {{"by", "workers"}}), 2);
  EXPECT_EQ(Count("tacit_slices_total", {{"by", "trainer"}}), 0);
  EXPECT_EQ(Count("tacit_slices_repeated_total"), 1);
  EXPECT_EQ(dealer_->trouble(), "");
}

// A message has a part of each learner of the period, and each part all of its events.
TEST_F(DealerTest, TheSumsAreThoseOfThePeriodsLearners) {
  const LearnerIndex first(0), second(1);
  Begin(1, {{0, 10, 50}}, {second, first});
  Join({"w-1"});
  EXPECT_EQ(topics_.plans.back().learners,
            (std::vector<LearnerStep>{{.key = 0, .step = 1}, {.key = 7, .step = 1}}));
  const Body alone = Sum({{0, 10, 50}});
  const std::string part = DecodeParts(alone.sums).value()[0].bytes;
  const std::string fewer = DecodeParts(Sum({{0, 10, 49}}).sums).value()[0].bytes;
  Body both = alone;
  int refused = 0;
  for (const std::vector<LearnerPart>& parts :
       std::vector<std::vector<LearnerPart>>{{{0, part}},
                                             {{7, part}},
                                             {{0, part}, {7, fewer}},
                                             {{0, fewer}, {7, part}},
                                             {{0, part}, {6, part}, {7, part}},
                                             {{0, part}, {7, "bad"}}}) {
    both.sums = EncodeParts(parts);
    Deliver("w-1", both);
    EXPECT_EQ(Next().kind, PeriodPiece::Kind::kNothing);
    EXPECT_EQ(Count("tacit_slices_refused_total", {{"why", "period"}}), ++refused);
  }
  both.sums = EncodeParts({{0, part}, {7, part}});
  Deliver("w-1", both);
  const PeriodPiece piece = Next();
  ASSERT_EQ(piece.sums.size(), 2u);
  EXPECT_EQ(piece.sums[0].learner, first);
  EXPECT_EQ(piece.sums[1].learner, second);
  EXPECT_EQ(piece.sums[1].bytes, part);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kEnd);
  // A learner that is ahead has no part.
  Begin(2, {{0, 50, 60}}, {second});
  Next();
  EXPECT_EQ(topics_.plans.back().learners, (std::vector<LearnerStep>{{.key = 7, .step = 2}}));
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

// Sums that find no room are counted and told, until a period has gone without. The trainer sums
// their slice at once.
TEST_F(DealerTest, SumsWithoutRoomAreToldAndTheTrainers) {
  const auto deliver = [&](const std::string& worker, size_t bytes, size_t chunks) {
    const size_t before = topics_.sums.size();
    Body body = Sum({{0, 10, 50}});
    body.sums.assign(bytes, 'x');
    Deliver(worker, body);
    topics_.sums.resize(before + chunks);
    return Next();
  };
  const auto refused = [&] { return Count("tacit_slices_refused_total", {{"why", "memory"}}); };
  const size_t chunk = kChunkBytes;
  Begin(1);
  Join({"w-1", "w-2"});
  const Ranges slice = Planned("w-1"), others = Planned("w-2");
  PeriodPiece piece = deliver("w-1", 4 * chunk, 1);
  EXPECT_EQ(refused(), 1) << "a body that is too large by itself";
  EXPECT_EQ(piece.kind, PeriodPiece::Kind::kRanges);
  EXPECT_EQ(piece.ranges, slice);
  EXPECT_EQ(Planned(""), slice);
  EXPECT_EQ(Planned("w-2"), others);
  EXPECT_THAT(dealer_->trouble(), AllOf(HasSubstr("have no room here"), HasSubstr("'w-1'")));
  Begin(2);
  EXPECT_THAT(dealer_->trouble(), HasSubstr("have no room here"));
  Begin(3);
  EXPECT_EQ(dealer_->trouble(), "");
  // A body that goes for another one.
  EXPECT_EQ(deliver("w-1", 2 * chunk, 1).kind, PeriodPiece::Kind::kNothing);
  EXPECT_EQ(refused(), 1);
  const Ranges forgotten = Planned("w-1");
  EXPECT_THAT(forgotten, Not(IsEmpty()));
  piece = deliver("w-2", 4 * chunk - 1000, 4);
  EXPECT_EQ(refused(), 2);
  EXPECT_EQ(piece.ranges, forgotten);
  EXPECT_THAT(dealer_->trouble(),
              AllOf(HasSubstr("have no room here"), HasSubstr("'w-1'"), HasSubstr("forgotten")));
}

// No worker could read offsets that retention took. The trainer decides about them: they are in the
// period and on the ledger.
TEST_F(DealerTest, OffsetsThatAreLostAreTheTrainers) {
  Begin(1, {{0, 10, 50}, {1, 20, 60}}, {LearnerIndex(0)}, /*lost=*/{{0, 10, 30}});
  Join({"w-1"});
  EXPECT_EQ(Planned(""), (Ranges{{0, 10, 30}}));
  EXPECT_EQ(Planned("w-1"), (Ranges{{0, 30, 50}, {1, 20, 60}}));
  EXPECT_TRUE(dealer_->HaveRead({std::nullopt}));
  Body rest = Sum(Planned("w-1"));
  rest.ranges[0].before.reset();  // it is gone as well
  Deliver("w-1", rest);
  EXPECT_EQ(Next().kind, PeriodPiece::Kind::kSums);
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
  EXPECT_EQ(EncodeParts({{.key = 0, .bytes = sums.sums[0].bytes}}), body.sums);
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
  Hello("w-2", kDealerBuild, /*leaves=*/true);
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
    const SetClock clock;
    metrics::Registry registry;
    HeldTopics topics;
    Dealer dealer({.key = kDealerKey, .check = share}, topics, clock, registry);
    dealer.SetStore({{LearnerIndex(0), 0}}, kDealerBuild, secret);
    const Digest head{101};
    dealer.Begin({.store = {.lineage = "a", .sequence = 1, .head = ToHex(head)},
                  .learners = {LearnerIndex(0)},
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

}  // namespace
}  // namespace tacit::workers
