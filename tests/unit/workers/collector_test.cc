#include "workers/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "toy_topic.h"

namespace tacit::workers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kHeld = 8 << 20;

class CollectorTest : public ::testing::Test {
 protected:
  CollectorTest() { collector_.Begin(SomePeriod()); }

  Period SomePeriod() const {
    Period period{
        .head = head_, .build = build_, .ranges = {{0, 20, 60}, {1, 5, 45}}, .before = {}};
    for (const OffsetRange& range : period.ranges)
      period.before[range.partition] = *topic_.Before(range.partition, range.begin);
    return period;
  }
  Body Sum(const Ranges& ranges) const { return ToyBody(topic_, head_, ranges); }
  std::vector<KafkaRecord> Sealed(const Body& body, const std::string& worker = "w") const {
    return SealBody(key_, {worker, head_, build_}, EncodeBody(body));
  }
  Taken Take(const KafkaRecord& record) {
    const auto read = ReadSums(record.key, record.value);
    EXPECT_TRUE(read) << read.error().message;
    Taken taken = collector_.Take(*read);
    const auto& forgotten = collector_.forgotten();
    forgotten_.insert(forgotten_.end(), forgotten.begin(), forgotten.end());
    return taken;
  }
  // The outcome of the last chunk.
  Taken TakeAll(const std::vector<KafkaRecord>& records) {
    Taken taken;
    for (const KafkaRecord& record : records) taken = Take(record);
    return taken;
  }
  Taken TakeBody(const Body& body, const std::string& worker = "w") {
    return TakeAll(Sealed(body, worker));
  }
  void ExpectNothingCovered() const { EXPECT_EQ(collector_.Gaps(), SomePeriod().ranges); }

  const SharedKey key_{7};
  const Digest head_{1, 2}, build_{3};
  const ToyTopic topic_{1, 3, 100};
  Collector collector_{key_, kHeld};
  std::vector<std::string> forgotten_;  // workers whose bodies were
  std::string sealed_;                  // bytes of a record that a test has made
};

TEST_F(CollectorTest, APeriodIsCompleteWhenAllIsCovered) {
  EXPECT_FALSE(collector_.complete());
  const Taken taken = TakeBody(Sum({{0, 20, 50}}));
  EXPECT_EQ(taken.outcome, Outcome::kCounted) << taken.why;
  EXPECT_EQ(taken.body, Sum({{0, 20, 50}}));
  EXPECT_EQ(collector_.Gaps(), (Ranges{{0, 50, 60}, {1, 5, 45}}));
  collector_.Claim({{0, 50, 60}, {1, 5, 44}});
  EXPECT_EQ(collector_.TakeOwn(Sum({{0, 50, 60}, {1, 5, 44}}).ranges).outcome, Outcome::kCounted);
  EXPECT_FALSE(collector_.complete());
  EXPECT_EQ(TakeBody(Sum({{1, 44, 45}})).outcome, Outcome::kCounted);
  EXPECT_TRUE(collector_.complete());
  EXPECT_THAT(collector_.Gaps(), IsEmpty());
  const std::map<int32_t, stream::LastRecord> last = {{0, *topic_.Before(0, 60)},
                                                      {1, *topic_.Before(1, 45)}};
  EXPECT_EQ(collector_.Last(), last);
  collector_.Begin(SomePeriod());
  ExpectNothingCovered();
  EXPECT_FALSE(collector_.complete());
}

TEST_F(CollectorTest, AMessageOfAnotherHeadBuildOrKeyIsLeftOut) {
  const std::string body = EncodeBody(Sum({{0, 20, 60}}));
  EXPECT_EQ(TakeAll(SealBody(key_, {"w", Digest{9}, build_}, body)).outcome, Outcome::kOldHead);
  Taken taken = TakeAll(SealBody(key_, {"w", head_, Digest{9}}, body));
  EXPECT_EQ(taken.outcome, Outcome::kOtherBuild);
  EXPECT_THAT(taken.why, HasSubstr("worker 'w' has another program"));
  taken = TakeAll(SealBody(SharedKey{8}, {"w", head_, build_}, body));
  EXPECT_EQ(taken.outcome, Outcome::kUnsealed);
  EXPECT_THAT(taken.why, AllOf(HasSubstr("worker 'w'"), HasSubstr("workers.key_file")));
  ExpectNothingCovered();
}

// A record of the period before that somebody gives this period's head.
TEST_F(CollectorTest, ARecordOfAnotherPeriodDoesNotOpen) {
  const std::string body = EncodeBody(Sum({{0, 20, 60}}));
  const KafkaRecord old = SealBody(key_, {"w", Digest{9}, build_}, body)[0];
  KafkaRecord forged = SealBody(key_, {"w", head_, build_}, body)[0];
  const size_t sealed = forged.value.size() - body.size() - sizeof(Nonce) - kTagBytes;
  forged.value.replace(sealed, std::string::npos, old.value.substr(sealed));
  EXPECT_EQ(Take(forged).outcome, Outcome::kUnsealed);
  ExpectNothingCovered();
}

TEST_F(CollectorTest, RangesOutsideThePeriodAreRefused) {
  for (const Ranges& ranges : {Ranges{{0, 19, 30}}, Ranges{{0, 50, 61}}, Ranges{{2, 20, 30}},
                               Ranges{{0, 20, 30}, {1, 4, 10}}}) {
    const Taken taken = TakeBody(Sum(ranges));
    EXPECT_EQ(taken.outcome, Outcome::kRefused);
    EXPECT_THAT(taken.why, HasSubstr("outside the period"));
  }
  ExpectNothingCovered();
}

TEST_F(CollectorTest, CopiesAndOverlapsAreLeftOutWhole) {
  ASSERT_EQ(TakeBody(Sum({{0, 30, 40}})).outcome, Outcome::kCounted);
  EXPECT_EQ(TakeBody(Sum({{0, 30, 40}}), "v").outcome, Outcome::kCovered);
  for (const Ranges& ranges :
       {Ranges{{0, 39, 41}}, Ranges{{0, 29, 31}}, Ranges{{0, 20, 60}}, Ranges{{0, 33, 34}},
        Ranges{{0, 20, 30}, {0, 39, 50}}, Ranges{{0, 35, 60}, {1, 5, 45}}})
    EXPECT_EQ(TakeBody(Sum(ranges)).outcome, Outcome::kCovered) << ranges[0].begin;
  EXPECT_EQ(collector_.Gaps(), (Ranges{{0, 20, 30}, {0, 40, 60}, {1, 5, 45}}));
}

// From the claim on, and also once they are summed.
TEST_F(CollectorTest, OfRangesThatThisProcessSumsNoMessageCounts) {
  collector_.Claim({{1, 20, 30}});
  collector_.Claim({{0, 30, 40}});
  const std::vector<Ranges> meet = {
      {{0, 30, 40}}, {{0, 39, 41}}, {{0, 20, 60}}, {{0, 20, 30}, {1, 29, 45}}};
  for (const Ranges& ranges : meet)
    EXPECT_EQ(TakeBody(Sum(ranges)).outcome, Outcome::kCovered) << ranges[0].begin;
  EXPECT_EQ(collector_.Gaps(), SomePeriod().ranges);
  EXPECT_EQ(TakeBody(Sum({{0, 20, 30}, {1, 30, 45}})).outcome, Outcome::kCounted);
  ASSERT_EQ(collector_.TakeOwn(Sum({{0, 30, 40}}).ranges).outcome, Outcome::kCounted);
  for (const Ranges& ranges : meet)
    EXPECT_EQ(TakeBody(Sum(ranges), "v").outcome, Outcome::kCovered) << ranges[0].begin;
  EXPECT_EQ(collector_.Gaps(), (Ranges{{0, 40, 60}, {1, 5, 30}}));
  collector_.Begin(SomePeriod());
  EXPECT_EQ(TakeBody(Sum({{0, 30, 40}})).outcome, Outcome::kCounted);
}

// This process has not seen the record before a range of its own. Its last one it has seen, if the
// range has a record; it may have gone since a worker behind the range has met it.
TEST_F(CollectorTest, RecordsAroundOwnRangesFollowEachOther) {
  Body own = Sum({{0, 30, 40}});
  own.ranges[0].before.reset();
  for (const bool seen : {true, false})
    for (const bool first : {true, false})
      for (const int follows : {0, 1, 2, 3, 4}) {
        SCOPED_TRACE(::testing::Message() << seen << first << follows);
        collector_.Begin(SomePeriod());
        collector_.Claim({{0, 30, 40}});
        std::vector<SummedRange> ranges = own.ranges;
        if (!seen) ranges[0].last.reset();
        Body right = Sum({{0, 40, 60}});
        if (follows == 1) right.ranges[0].before->hash ^= 1;
        if (follows == 2) right.ranges[0].before = topic_.Before(0, 35);
        if (follows == 3) right.ranges[0].before.reset();
        if (follows == 4 && seen) ranges[0].last = topic_.Before(0, 38);
        const auto take = [&](bool right_one) {
          return right_one ? TakeBody(right).outcome : collector_.TakeOwn(ranges).outcome;
        };
        EXPECT_EQ(take(!first), Outcome::kCounted);
        const bool fits = follows == 0 || !seen || (!first && follows == 4);
        EXPECT_EQ(take(first), fits ? Outcome::kCounted : Outcome::kOtherTopic);
        EXPECT_EQ(TakeBody(Sum({{0, 20, 30}})).outcome, Outcome::kCounted);
      }
}

TEST_F(CollectorTest, ACopyWithOtherSumsIsTold) {
  Body body = Sum({{0, 20, 60}});
  ASSERT_EQ(TakeBody(body, "v").outcome, Outcome::kCounted);
  body.sums[0] ^= 1;
  const Taken taken = TakeBody(body, "w");
  EXPECT_EQ(taken.outcome, Outcome::kDiffers);
  EXPECT_THAT(taken.why, HasSubstr("workers 'v' and 'w' have other sums of partition 0"));
  // One of the two did not know a schema yet.
  ++body.ranges[0].dead[1];
  const Taken others = TakeBody(body, "w");
  EXPECT_EQ(others.outcome, Outcome::kOtherRecords);
  EXPECT_THAT(others.why, HasSubstr("workers 'v' and 'w' could read other records of partition 0"));
}

// Compaction, retention or a deletion takes records between two readings of a range: the first copy
// counts, and the second is no sign of a wrong worker.
TEST_F(CollectorTest, ACopyOfOtherRecordsIsNotCompared) {
  const Body body = Sum({{0, 20, 60}});
  ASSERT_EQ(TakeBody(body, "v").outcome, Outcome::kCounted);
  const auto take = [&](auto change) {
    Body other = body;
    other.sums[0] ^= 1;
    change(&other.ranges[0]);
    return TakeBody(other, "w");
  };
  const Taken taken = take([](SummedRange* r) { ++r->empty; });
  EXPECT_EQ(taken.outcome, Outcome::kOtherRecords);
  EXPECT_THAT(taken.why, HasSubstr("workers 'v' and 'w' have met other records of partition 0"));
  EXPECT_EQ(take([](SummedRange* r) { --r->last->offset; }).outcome, Outcome::kOtherRecords);
  EXPECT_EQ(take([](SummedRange* r) { r->before.reset(); }).outcome, Outcome::kOtherRecords);
  // All of the records are the same: their number, and those at the ends.
  EXPECT_EQ(take([](SummedRange* r) { ++r->opted_out; }).outcome, Outcome::kDiffers);
  EXPECT_EQ(collector_.Gaps(), (Ranges{{1, 5, 45}}));
}

TEST_F(CollectorTest, RecordsOfAnotherTopicAreRefused) {
  // A record of it stands where each stored one does.
  uint64_t seed = 2;
  const auto meets = [&](int32_t partition, uint64_t begin) {
    const Seen before = ToyTopic(seed, 3, 100).Before(partition, begin);
    return before && before->offset == topic_.Before(partition, begin)->offset;
  };
  while (!meets(0, 20) || !meets(1, 5)) ++seed;
  const ToyTopic other(seed, 3, 100);
  const auto refused = [&](const Ranges& ranges) {
    const Taken taken = TakeBody(ToyBody(other, head_, ranges));
    return taken.outcome == Outcome::kOtherTopic &&
           taken.why.find("worker 'w' has read another topic: ") == 0;
  };
  EXPECT_TRUE(refused({{0, 20, 30}}));  // against the store's record
  ExpectNothingCovered();
  ASSERT_EQ(TakeBody(Sum({{0, 30, 40}})).outcome, Outcome::kCounted);
  EXPECT_TRUE(refused({{0, 40, 45}}));  // against the range before it
  EXPECT_TRUE(refused({{0, 25, 30}}));  // against the range behind it
  EXPECT_TRUE(refused({{0, 45, 50}, {1, 5, 9}}));
  EXPECT_EQ(collector_.Gaps(), (Ranges{{0, 20, 30}, {0, 40, 60}, {1, 5, 45}}));
  EXPECT_EQ(TakeBody(Sum({{0, 20, 30}, {0, 40, 60}})).outcome, Outcome::kCounted);
}

TEST_F(CollectorTest, ANewPartitionFollowsNoRecord) {
  Period period{.head = head_, .build = build_, .ranges = {{0, 0, 10}}, .before = {}};
  collector_.Begin(period);
  Body body = Sum({{0, 0, 10}});
  body.ranges[0].before.reset();
  EXPECT_EQ(TakeBody(body).outcome, Outcome::kCounted);
}

// The record that the store has read last may be gone, by retention or compaction; and of a
// partition that had nothing to read since the store began it has none, where older records stand.
// A record at its place, or behind it, has to be it.
TEST_F(CollectorTest, AStoredRecordThatIsGoneIsNotMissed) {
  const Body body = Sum({{0, 20, 60}});
  const auto take = [&](std::optional<stream::LastRecord> stored, workers::Seen before) {
    Period period = SomePeriod();
    period.before.erase(0);
    if (stored) period.before[0] = *stored;
    collector_.Begin(period);
    Body other = body;
    other.ranges[0].before = before;
    return TakeBody(other).outcome;
  };
  const stream::LastRecord last = *topic_.Before(0, 20), earlier = *topic_.Before(0, last.offset);
  EXPECT_EQ(take(last, last), Outcome::kCounted);
  EXPECT_EQ(take(last, earlier), Outcome::kCounted);
  EXPECT_EQ(take(last, std::nullopt), Outcome::kCounted);
  EXPECT_EQ(take(std::nullopt, last), Outcome::kCounted);
  EXPECT_EQ(take(earlier, last), Outcome::kOtherTopic);
  stream::LastRecord another = last;
  another.hash ^= 1;
  EXPECT_EQ(take(last, another), Outcome::kOtherTopic);
}

// Chunks of two senders with one name are of one body.
TEST_F(CollectorTest, ChunksComeInAnyOrderAndFromAnySender) {
  Body body = Sum({{0, 20, 60}});
  body.sums += std::string(2 * kChunkBytes, 'x');
  const auto one = Sealed(body, "v"), other = Sealed(body, "w");
  ASSERT_EQ(one.size(), 3u);
  EXPECT_EQ(Take(one[2]).outcome, Outcome::kPart);
  EXPECT_EQ(Take(other[0]).outcome, Outcome::kPart);
  EXPECT_EQ(Take(one[0]).outcome, Outcome::kPart);
  EXPECT_EQ(Take(other[2]).outcome, Outcome::kPart);
  const Taken taken = Take(other[1]);
  EXPECT_EQ(taken.outcome, Outcome::kCounted);
  EXPECT_EQ(taken.body, body);
  EXPECT_EQ(Take(one[1]).outcome, Outcome::kCovered);
}

TEST_F(CollectorTest, AChunkOfAnotherBodyIsRefused) {
  // Sealed by a worker that mixes its chunks up.
  const auto sealed = [&](const BodyName& name, uint32_t chunk, std::string_view piece) {
    const auto form = Sealed(Sum({{0, 20, 60}}))[0];
    SealedRecord record = ReadSums(form.key, form.value).value();
    record.place = ChunkPlace{.body = name, .bytes = 2 * kChunkBytes, .chunk = chunk};
    sealed_ = PeriodSeal(key_, head_).Seal(piece, record.associated);
    record.sealed = sealed_;
    return collector_.Take(record);
  };
  const std::string body(2 * kChunkBytes, 'x'), other(kChunkBytes, 'y');
  const BodyName name = PeriodSeal(key_, head_).NameOf(body);
  EXPECT_EQ(sealed(name, 0, body.substr(0, kChunkBytes)).outcome, Outcome::kPart);
  Taken taken = sealed(name, 0, other);
  EXPECT_EQ(taken.outcome, Outcome::kRefused);
  EXPECT_THAT(taken.why, HasSubstr("another one of its body contradicts"));
  taken = sealed(name, 1, other);
  EXPECT_EQ(taken.outcome, Outcome::kRefused);
  EXPECT_THAT(taken.why, HasSubstr("has a chunk of another body"));
  taken = sealed(name, 1, "too short");
  EXPECT_EQ(taken.outcome, Outcome::kUnsealed);
  EXPECT_THAT(taken.why, HasSubstr("has 9, not 524288"));
  ExpectNothingCovered();
}

TEST_F(CollectorTest, BytesThatAreNoBodyAreRefused) {
  const Taken taken = TakeAll(SealBody(key_, {"w", head_, build_}, "no body"));
  EXPECT_EQ(taken.outcome, Outcome::kRefused);
  EXPECT_THAT(taken.why, AllOf(HasSubstr("worker 'w'"), HasSubstr("is no body of sums")));
  ExpectNothingCovered();
}

// Each body has 9 chunks, and 16 chunks are held.
TEST_F(CollectorTest, MemoryIsBounded) {
  const auto body = [&](const std::string& worker, const Ranges& ranges) {
    Body made = Sum(ranges);
    made.sums.assign(8 * kChunkBytes, 'x');
    return Sealed(made, worker);
  };
  const auto one = body("one", {{0, 20, 60}}), other = body("other", {{1, 5, 45}}),
             third = body("third", {{0, 20, 30}}), fourth = body("fourth", {{0, 30, 60}});
  ASSERT_EQ(one.size(), 9u);
  EXPECT_EQ(Take(third[0]).outcome, Outcome::kPart);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(Take(one[i]).outcome, Outcome::kPart);
    EXPECT_EQ(Take(other[i]).outcome, Outcome::kPart);
  }
  // A body that has just begun does not cost those that are nearly whole.
  EXPECT_THAT(forgotten_, ElementsAre("third"));
  Taken taken = Take(fourth[0]);
  EXPECT_EQ(taken.outcome, Outcome::kNoRoom);
  EXPECT_THAT(taken.why, AllOf(HasSubstr("worker 'fourth'"), HasSubstr("at most 8388608 bytes")));
  EXPECT_EQ(Take(other[8]).outcome, Outcome::kCounted);
  EXPECT_THAT(forgotten_, ElementsAre("third", "one"));
  // Its sender sends it once. It is that of another worker as well.
  EXPECT_EQ(TakeAll(one).outcome, Outcome::kPart);
  EXPECT_EQ(TakeAll(body("another", {{0, 20, 60}})).outcome, Outcome::kCounted);
  EXPECT_EQ(TakeAll(one).outcome, Outcome::kCovered);
  EXPECT_EQ(forgotten_.size(), 2u);

  Body great = Sum({{0, 20, 60}});
  great.sums.assign(kHeld, 'x');
  collector_.Begin(SomePeriod());
  taken = Take(Sealed(great)[0]);
  EXPECT_EQ(taken.outcome, Outcome::kNoRoom);
  EXPECT_THAT(taken.why, HasSubstr("at most 8388608 are held"));
  EXPECT_EQ(Take(Sealed(great)[1]).outcome, Outcome::kPart) << "told twice";
}

// Else its other chunks would hold the room until the period's end, and nothing else became whole.
TEST_F(CollectorTest, TheRestOfAForgottenBodyTakesNoRoom) {
  const auto body = [&](const Ranges& ranges, size_t chunks) {
    Body made = Sum(ranges);
    made.sums.assign(chunks * kChunkBytes - 1000, 'x');
    return Sealed(made, std::to_string(chunks));
  };
  const auto great = body({{0, 20, 60}}, 16), half = body({{1, 5, 25}}, 9),
             small = body({{1, 25, 45}}, 2);
  Take(great[0]);
  for (const auto& chunk : {half, body({{1, 5, 25}}, 15)})
    for (size_t i = 0; i < 8; ++i) Take(chunk[i]);
  ASSERT_THAT(forgotten_, ElementsAre("16"));
  EXPECT_EQ(Take(half[8]).outcome, Outcome::kCounted);
  for (size_t i = 1; i < great.size(); ++i) EXPECT_EQ(Take(great[i]).outcome, Outcome::kPart);
  EXPECT_EQ(TakeAll(small).outcome, Outcome::kCounted);
}

// Bodies of five workers come chunk by chunk, and there is room for less than two: one is whole in
// the end.
TEST_F(CollectorTest, WhereThereIsNoRoomForAllSomeBecomeWhole) {
  std::vector<std::vector<KafkaRecord>> bodies;
  for (uint64_t i = 0; i < 5; ++i) {
    Body made = Sum({{0, 20 + 8 * i, 28 + 8 * i}});
    made.sums.assign(8 * kChunkBytes, 'x');
    bodies.push_back(Sealed(made, "w-" + std::to_string(i)));
  }
  std::map<Outcome, int> outcomes;
  for (size_t chunk = 0; chunk < bodies[0].size(); ++chunk)
    for (const auto& body : bodies) ++outcomes[Take(body[chunk]).outcome];
  EXPECT_EQ(outcomes[Outcome::kCounted], 1);
  EXPECT_EQ(forgotten_.size(), 4u);
}

// Against a set of offsets: a body counts if all of its offsets are in the period and free.
TEST(CollectorModelTest, CoverageIsThatOfASetOfOffsets) {
  const ToyTopic topic(5, 3, 100);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Period period;
    std::set<std::pair<int32_t, uint64_t>> free, all;
    for (int32_t partition = 0; partition < 3; ++partition) {
      const uint64_t begin = 1 + random() % 40;
      period.ranges.push_back({partition, begin, begin + 1 + random() % 40});
      period.before[partition] = *topic.Before(partition, begin);
      for (uint64_t at = begin; at < period.ranges.back().end; ++at) all.insert({partition, at});
    }
    free = all;
    Collector collector({}, kHeld);
    collector.Begin(period);
    const auto take = [&](const Ranges& ranges) {
      const auto records = SealBody({}, {"w", {}, {}}, EncodeBody(ToyBody(topic, {}, ranges)));
      Outcome outcome = Outcome::kPart;
      for (const KafkaRecord& record : records)
        outcome = collector.Take(ReadSums(record.key, record.value).value()).outcome;
      return outcome;
    };
    for (int round = 0; round < 400 && !free.empty(); ++round) {
      Ranges ranges;
      for (int32_t partition = 0; partition < 3; ++partition) {
        uint64_t at = random() % 80;
        for (uint64_t left = random() % 3; left > 0; --left) {
          ranges.push_back({partition, at, at + 1 + random() % 6});
          at = ranges.back().end + random() % 5;
        }
      }
      if (ranges.empty()) continue;
      bool lies = true, is_free = true;
      std::vector<std::pair<int32_t, uint64_t>> offsets;
      for (const OffsetRange& range : ranges)
        for (uint64_t at = range.begin; at < range.end; ++at)
          offsets.push_back({range.partition, at});
      for (const auto& offset : offsets) {
        lies = lies && all.contains(offset);
        is_free = is_free && free.contains(offset);
      }
      const Outcome outcome = take(ranges);
      EXPECT_EQ(outcome, !lies     ? Outcome::kRefused
                         : is_free ? Outcome::kCounted
                                   : Outcome::kCovered);
      if (outcome == Outcome::kCounted)
        for (const auto& offset : offsets) free.erase(offset);
      std::vector<std::pair<int32_t, uint64_t>> gaps;
      for (const OffsetRange& range : collector.Gaps())
        for (uint64_t at = range.begin; at < range.end; ++at) gaps.push_back({range.partition, at});
      EXPECT_TRUE(std::ranges::equal(gaps, free));
      EXPECT_EQ(collector.complete(), free.empty());
    }
    if (free.empty()) continue;
    collector.Claim(collector.Gaps());
    EXPECT_EQ(collector.TakeOwn(ToyBody(topic, {}, collector.Gaps()).ranges).outcome,
              Outcome::kCounted);
    EXPECT_TRUE(collector.complete());
  }
}

}  // namespace
}  // namespace tacit::workers
