#include "train/intake.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <tuple>

#include "event/codec.h"
#include "support/eventually.h"
#include "unit/train/intake_bench.h"

namespace tacit::train {
namespace {

// A topic of `records` lines "label TAB number", with file ends at given offsets; line i has label
// i % 2 and number i. Some lines are bad.
class ListSource final : public stream::Source {
 public:
  ListSource(uint64_t records, std::vector<uint64_t> ends, std::vector<uint64_t> bad, uint64_t seed)
      : records_(records), ends_(std::move(ends)), bad_(std::move(bad)), random_(seed) {}

  std::string topic() const override { return "list"; }
  std::vector<int32_t> partitions() const override { return {0}; }
  Result<stream::PollOutcome> Poll(std::chrono::milliseconds, event::RawRecords* out) override {
    out->Clear();
    if (paused_) return stream::PollOutcome::kNothing;
    if (fail_at && next_ >= *fail_at) return Fail(ErrorCode::kIo, "the list is torn");
    if (next_ >= records_) return stream::PollOutcome::kEnd;
    out->first_offset = next_;
    out->origin = "list";
    const uint64_t n = std::min<uint64_t>(1 + random_() % 40, records_ - next_);
    for (uint64_t i = next_; i < next_ + n; ++i) {
      const bool bad = std::find(bad_.begin(), bad_.end(), i) != bad_.end();
      out->bytes +=
          bad ? std::string("nonsense") : std::to_string(i % 2) + "\t" + std::to_string(i);
      out->end.push_back(static_cast<uint32_t>(out->bytes.size()));
    }
    next_ += n;
    for (const uint64_t end : ends_)
      if (end > out->first_offset && end <= next_)
        out->cuts.push_back({event::PublicCut::Kind::kFileEnd, end, "file"});
    return stream::PollOutcome::kRecords;
  }
  Status Seek(std::span<const stream::PartitionOffset> positions) override {
    ++seeks;
    asked.assign(positions.begin(), positions.end());
    next_ = positions.empty() || positions[0].from_beginning ? 0 : positions[0].offset;
    return {};
  }
  void Pause(std::span<const int32_t>) override { paused_ = true; }
  void Resume(std::span<const int32_t>) override { paused_ = false; }
  void Advise(std::span<const stream::PartitionOffset>, const stream::StoreClaim&) override {}
  uint64_t RecordsAfter(std::span<const stream::PartitionOffset>) const override { return 0; }
  std::string Identity() const override { return "read to " + std::to_string(next_); }
  Status VerifyIdentity(const std::string&) override { return {}; }

  int seeks = 0;
  std::vector<stream::PartitionOffset> asked;  // by the last Seek
  std::optional<uint64_t> fail_at;

 private:
  bool paused_ = false;
  uint64_t records_, next_ = 0;
  std::vector<uint64_t> ends_, bad_;
  std::mt19937_64 random_;
};

IntakeOptions::Learner::MakeParticipation Once(uint64_t offsets) {
  return [offsets](stream::Position start) {
    return stream::MakeOnceParticipation({.offsets_per_step = offsets, .start = std::move(start)});
  };
}

// A step without its examples' columns.
struct Seen {
  uint16_t learner;
  uint64_t begin, end, step, period;
  std::vector<uint64_t> offsets;
};

std::vector<Seen> Drain(Intake& intake) {
  std::vector<Seen> seen;
  while (auto step = intake.steps().Pop()) {
    EXPECT_EQ(step->batch.ranges.size(), 1u);
    seen.push_back({step->learner.value, step->batch.ranges[0].begin, step->batch.ranges[0].end,
                    step->batch.after.step, step->batch.after.pass, step->batch.examples.offset});
  }
  return seen;
}

TEST(IntakeTest, EveryRecordIsInOneStepOfEachLearnerAndPass) {
  Bench bench;
  ListSource source(1000, {300, 1000}, {17, 512}, 5);
  Intake intake({.learners = {{LearnerIndex(0), Once(64), {}}, {LearnerIndex(1), Once(100), {}}},
                 .passes = 2},
                source, *bench.codec, bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  const auto seen = Drain(intake);
  ASSERT_TRUE(intake.status());
  for (uint16_t learner = 0; learner < 2; ++learner) {
    uint64_t next = 0, period = 0, steps = 0;
    std::map<uint64_t, int> count;
    for (const Seen& s : seen) {
      if (s.learner != learner) continue;
      if (s.period != period) {
        EXPECT_EQ(next, 1000u);
        next = 0;
        period = s.period;
      }
      EXPECT_EQ(s.begin, next);
      EXPECT_LE(s.end - s.begin, learner == 0 ? 64u : 100u);
      EXPECT_FALSE(s.begin < 300 && s.end > 300) << "a step across a file end";
      EXPECT_EQ(s.step, ++steps) << "steps are numbered through the passes";
      for (const uint64_t offset : s.offsets) ++count[offset];
      next = s.end;
    }
    EXPECT_EQ(period, 1u);
    EXPECT_EQ(count.size(), 998u);
    for (const auto& [offset, times] : count) EXPECT_EQ(times, 2) << offset;
  }
  EXPECT_EQ(intake.records_dead(), 4u);
}

TEST(IntakeTest, LearnersGoOnFromTheirOwnPositions) {
  Bench bench;
  ListSource source(500, {500}, {}, 6);
  const stream::Position ahead{
      .pass = 0, .period_start = {{0, 0, 0}}, .next = {{0, 333, 333}}, .step = 9};
  Intake intake({.learners = {{LearnerIndex(0), Once(50), {}}, {LearnerIndex(1), Once(50), ahead}}},
                source, *bench.codec, bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  uint64_t first = 0, second = 0;
  for (const Seen& s : Drain(intake)) {
    if (s.learner == 0) {
      EXPECT_EQ(s.begin, first);
      first = s.end;
    } else {
      if (second == 0) {
        EXPECT_EQ(s.begin, 333u);
        EXPECT_EQ(s.step, 10u);
      }
      for (const uint64_t offset : s.offsets) EXPECT_GE(offset, 333u);
      second = s.end;
    }
  }
  EXPECT_EQ(first, 500u);
  EXPECT_EQ(second, 500u);
}

// Offsets that were read wait until they are in a step.
TEST(IntakeTest, OffsetsThatNoStepHasWait) {
  Bench bench;
  ListSource source(500, {}, {}, 6);
  source.fail_at = 500;
  const stream::Position ahead{
      .pass = 0, .period_start = {{0, 0, 0}}, .next = {{0, 333, 333}}, .step = 9};
  Intake intake(
      {.learners = {{LearnerIndex(0), Once(70), {}}, {LearnerIndex(1), Once(400), ahead}}}, source,
      *bench.codec, bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  EXPECT_EQ(Drain(intake).size(), 7u);
  EXPECT_EQ(intake.records_read(), 500u);
  EXPECT_EQ(intake.offsets_waiting(LearnerIndex(0)), 10u);
  EXPECT_EQ(intake.offsets_waiting(LearnerIndex(1)), 167u);
  intake.Retire(LearnerIndex(1));
  EXPECT_EQ(intake.offsets_waiting(LearnerIndex(1)), 0u) << "it waits for nothing any more";
}

// It would hold the others back for ever, and have records read that retention may have taken.
TEST(IntakeTest, NothingIsReadForALearnerThatIsSpent) {
  Bench bench;
  const auto at = [](uint64_t offset) {
    return stream::Position{
        .pass = 0, .period_start = {{0, 0, 0}}, .next = {{0, offset, offset}}, .step = 9};
  };
  ListSource source(500, {500}, {}, 6);
  Intake intake({.learners = {{LearnerIndex(0), Once(50), at(120), true},
                              {LearnerIndex(1), Once(50), at(333)}}},
                source, *bench.codec, bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  uint64_t next = 333;
  for (const Seen& s : Drain(intake)) {
    EXPECT_EQ(s.learner, 1u);
    EXPECT_EQ(s.begin, next);
    next = s.end;
  }
  EXPECT_EQ(next, 500u);
  ASSERT_EQ(source.asked.size(), 1u);
  EXPECT_EQ(source.asked[0].offset, 333u);
  EXPECT_EQ(intake.records_read(), 167u);

  // No offset is asked for where all are, and nothing is read.
  ListSource unread(500, {500}, {}, 6);
  Intake none({.learners = {{LearnerIndex(0), Once(50), at(120), true},
                            {LearnerIndex(1), Once(50), at(333), true}}},
              unread, *bench.codec, bench.transform, bench.sink);
  ASSERT_TRUE(none.Start());
  EXPECT_TRUE(Drain(none).empty());
  EXPECT_TRUE(none.status());
  EXPECT_EQ(unread.seeks, 1);
  ASSERT_EQ(unread.asked.size(), 1u);
  EXPECT_EQ(unread.asked[0].offset, stream::PartitionOffset::kNowhere);
  EXPECT_EQ(none.records_read(), 0u);
}

// Periods of others that came before its end would be held until it is over, however many.
TEST(IntakeTest, ABegunPeriodIsAskedForBeforeOtherPartitions) {
  Bench bench;
  ListSource source(500, {500}, {}, 6);
  const stream::Position begun{.pass = 0,
                               .period_start = {{0, 20, 20}, {1, 7, 7}},
                               .next = {{0, 20, 120}, {1, 7, 7}},
                               .step = 9,
                               .period_step = 2};
  Intake intake({.learners = {{LearnerIndex(0), Once(50), {}}, {LearnerIndex(1), Once(50), begun}}},
                source, *bench.codec, bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  Drain(intake);
  ASSERT_EQ(source.asked.size(), 2u);
  EXPECT_EQ(source.asked[0].first_until, 120u);
  EXPECT_EQ(source.asked[1].first_until, 0u);
}

TEST(IntakeTest, ALearnerInTheSecondPassDoesNotSeeTheFirst) {
  Bench bench;
  ListSource source(200, {200}, {}, 7);
  const stream::Position second_pass{
      .pass = 1, .period_start = {}, .next = {{0, 100, 100}}, .step = 12};
  Intake intake({.learners = {{LearnerIndex(0), Once(50), second_pass}}, .passes = 2}, source,
                *bench.codec, bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  const auto seen = Drain(intake);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].begin, 100u);
  EXPECT_EQ(seen[0].period, 1u);
  EXPECT_EQ(source.seeks, 1);
}

TEST(IntakeTest, ASourceThatFailsEndsTheIntakeAndSaysWhy) {
  Bench bench;
  ListSource source(500, {}, {}, 8);
  source.fail_at = 200;
  Intake intake({.learners = {{LearnerIndex(0), Once(50), {}}}}, source, *bench.codec,
                bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  Drain(intake);
  ASSERT_FALSE(intake.status());
  EXPECT_EQ(intake.status().error().message, "the list is torn");
}

TEST(IntakeTest, ADeadLetterThatWaitsToBeKeptHoldsUpRecordsButNotTheStop) {
  Bench bench;
  bench.sink.waits = true;
  ListSource source(500, {}, {130}, 9);
  Intake intake({.learners = {{LearnerIndex(0), Once(10), {}}}}, source, *bench.codec,
                bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  uint64_t end = 0;
  std::thread taker([&] {
    for (const Seen& s : Drain(intake)) end = std::max(end, s.end);
  });
  while (!bench.sink.writing) std::this_thread::yield();
  intake.Stop();
  taker.join();
  EXPECT_LE(end, 130u);
  EXPECT_TRUE(intake.status());  // stopped, not failed
}

TEST(IntakeTest, NoRecordPassesADeadLetterThatCouldNotBeKept) {
  Bench bench;
  bench.sink.fails = true;
  ListSource source(500, {}, {130}, 9);
  Intake intake({.learners = {{LearnerIndex(0), Once(10), {}}}}, source, *bench.codec,
                bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  for (const Seen& s : Drain(intake)) EXPECT_LE(s.end, 130u);
  EXPECT_FALSE(intake.status());
}

// Decodes as the codec does, and takes longer for some runs than for others.
class UnevenCodec final : public event::Codec {
 public:
  explicit UnevenCodec(const event::Codec& codec) : codec_(codec) {}
  void Decode(const event::RawRecords& records, event::Batch* batch,
              std::vector<event::DeadLetter>* dead) const override {
    codec_.Decode(records, batch, dead);
    if (records.first_offset / 7 % 3 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(records.first_offset % 5 * 100));
  }

 private:
  const event::Codec& codec_;
};

class DecodingTest : public testing::TestWithParam<uint32_t> {};

// The oracle is one decode thread, except for the interleaving of the learners' steps, which it
// keeps as well.
TEST_P(DecodingTest, StepsDeadLettersAndNewsComeInTheSameOrder) {
  struct Told {
    std::vector<std::tuple<uint16_t, uint64_t, uint64_t, std::vector<uint64_t>, std::string>> steps;
    std::vector<uint64_t> dead, decoded;
    uint64_t good = 0;
    bool operator==(const Told&) const = default;
  };
  const auto told = [](uint32_t threads) {
    Bench bench;
    const UnevenCodec codec(*bench.codec);
    ListSource source(3000, {333, 1000, 3000}, {17, 99, 100, 512, 513, 1999}, 11);
    Told told;
    Intake intake({.learners = {{LearnerIndex(0), Once(64), {}}, {LearnerIndex(1), Once(30), {}}},
                   .windows = IntakeOptions::Windows{.offsets = 100},
                   .passes = 2,
                   .decode_threads = threads,
                   .on_decoded =
                       [&](const event::RawRecords& records, const event::Batch& batch,
                           std::span<const event::DeadLetter> dead) {
                         told.decoded.push_back(records.first_offset);
                         told.decoded.push_back(batch.size() + dead.size());
                       }},
                  source, codec, bench.transform, bench.sink);
    EXPECT_TRUE(intake.Start());
    while (auto step = intake.steps().Pop()) {
      const OffsetRange range =
          step->window_end ? step->window_end->ranges.at(0) : step->batch.ranges.at(0);
      told.steps.push_back({step->learner.value, range.begin, range.end,
                            step->batch.examples.offset, step->source_identity});
    }
    EXPECT_TRUE(intake.status());
    told.dead = bench.sink.offsets;
    told.good = intake.records_good();
    return told;
  };
  const Told one = told(1);
  EXPECT_EQ(one.good, 2 * 2994u);
  EXPECT_EQ(told(GetParam()), one);
}

TEST_P(DecodingTest, ATornSourceLosesNothingThatCameBefore) {
  Bench bench;
  const UnevenCodec codec(*bench.codec);
  ListSource source(5000, {}, {}, 8);
  source.fail_at = 2000;
  Intake intake({.learners = {{LearnerIndex(0), Once(50), {}}}, .decode_threads = GetParam()},
                source, codec, bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  const auto seen = Drain(intake);
  ASSERT_FALSE(intake.status());
  ASSERT_EQ(seen.size(), intake.records_read() / 50);
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i].begin, 50 * i);
}

TEST_P(DecodingTest, NoRecordPassesADeadLetterThatCouldNotBeKept) {
  Bench bench;
  const UnevenCodec codec(*bench.codec);
  bench.sink.fails = true;
  ListSource source(5000, {}, {1300}, 9);
  Intake intake({.learners = {{LearnerIndex(0), Once(10), {}}}, .decode_threads = GetParam()},
                source, codec, bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  for (const Seen& s : Drain(intake)) EXPECT_LE(s.end, 1300u);
  EXPECT_FALSE(intake.status());
}

INSTANTIATE_TEST_SUITE_P(Threads, DecodingTest, testing::Values(1, 2, 5));

// No step that comes before a window's end in the queue has a record from behind it.
TEST(IntakeTest, TheEndOfAWindowParts) {
  Bench bench;
  ListSource source(1000, {333}, {17, 99, 100, 512, 513}, 11);
  Intake intake({.learners = {{LearnerIndex(0), Once(64), {}}, {LearnerIndex(1), Once(30), {}}},
                 .windows = IntakeOptions::Windows{.offsets = 100},
                 .passes = 2},
                source, *bench.codec, bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  uint64_t windows = 0, reached[2] = {0, 0}, offsets[2] = {0, 0};
  std::vector<uint64_t> unreadable;
  while (auto step = intake.steps().Pop()) {
    if (step->window_end) {
      EXPECT_EQ(step->window_end->ranges.at(0),
                (OffsetRange{0, 100 * windows, 100 * (windows + 1)}));
      EXPECT_FALSE(step->source_identity.empty());
      unreadable.push_back(step->window_end->unreadable);
      ++windows;
      // A step at most is left of the learners' open ones: a full one waits for a cut.
      EXPECT_GE(reached[0] + 64, 100 * windows);
      EXPECT_GE(reached[1] + 30, 100 * windows);
      continue;
    }
    const size_t learner = step->learner.value;
    const OffsetRange& range = step->batch.ranges[0];
    offsets[learner] += step->batch.examples.size();
    if (step->batch.after.pass > 0 || windows == 10) continue;
    EXPECT_EQ(range.begin, reached[learner]);
    reached[learner] = range.end;
    EXPECT_LE(range.end, 100 * (windows + 1)) << "from behind the window's end";
  }
  EXPECT_EQ(windows, 10u) << "in the first pass alone";
  EXPECT_EQ(unreadable, (std::vector<uint64_t>{2, 1, 0, 0, 0, 2, 0, 0, 0, 0}));
  EXPECT_EQ(offsets[0], 2 * 995u) << "every good record in each pass";
  EXPECT_EQ(offsets[1], 2 * 995u);
}

// After a start the open window is read from its beginning, which only its count sees.
TEST(IntakeTest, AnOpenWindowIsCountedAnewAfterAStart) {
  Bench bench;
  ListSource source(500, {}, {210, 230, 260}, 12);
  stream::Position at;
  at.next = {{0, 250, 250}};
  Intake intake({.learners = {{LearnerIndex(0), Once(50), at}},
                 .windows = IntakeOptions::Windows{.offsets = 100, .next = {{0, 200, 200}}}},
                source, *bench.codec, bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  std::vector<uint64_t> unreadable, begins;
  while (auto step = intake.steps().Pop()) {
    if (step->window_end)
      unreadable.push_back(step->window_end->unreadable);
    else
      begins.push_back(step->batch.ranges[0].begin);
  }
  EXPECT_EQ(unreadable, (std::vector<uint64_t>{3, 0, 0}));
  EXPECT_EQ(begins, (std::vector<uint64_t>{250, 300, 350, 400, 450}));
  EXPECT_EQ(bench.sink.offsets, (std::vector<uint64_t>{260})) << "the others were told before";
}

// A breaker that was off for a while does not read again what came meanwhile, except for the window
// in which the learners are; one that has decided nothing yet begins with that, too.
TEST(IntakeTest, AWindowOfLongAgoIsForgotten) {
  Bench bench;
  for (const std::vector<OffsetRange>& next : {std::vector<OffsetRange>{{0, 200, 200}}, {}}) {
    ListSource source(1000, {}, {210}, 13);
    stream::Position at;
    at.next = {{0, 750, 750}};
    Intake intake({.learners = {{LearnerIndex(0), Once(50), at}},
                   .windows = IntakeOptions::Windows{.offsets = 100, .next = next}},
                  source, *bench.codec, bench.transform, bench.sink);
    ASSERT_TRUE(intake.Start());
    std::vector<OffsetRange> windows;
    while (auto step = intake.steps().Pop())
      if (step->window_end) windows.push_back(step->window_end->ranges.at(0));
    EXPECT_EQ(windows, (std::vector<OffsetRange>{{0, 700, 800}, {0, 800, 900}, {0, 900, 1000}}));
    EXPECT_EQ(intake.records_read(), 300u);
  }
}

// A list whose source finds a new partition, 1, while what it had is paused.
class GrowingSource final : public stream::Source {
 public:
  explicit GrowingSource(uint64_t records) : list_(records, {}, {}, 11) {}
  std::string topic() const override { return "list"; }
  std::vector<int32_t> partitions() const override {
    return grown ? std::vector<int32_t>{0, 1} : std::vector<int32_t>{0};
  }
  Result<stream::PollOutcome> Poll(std::chrono::milliseconds timeout,
                                   event::RawRecords* out) override {
    if (!paused_ || grown.exchange(true)) return list_.Poll(timeout, out);
    out->Clear();
    out->partition = 1;
    for (int i = 0; i < 10; ++i) {
      out->bytes += "1\t7";
      out->end.push_back(static_cast<uint32_t>(out->bytes.size()));
    }
    return stream::PollOutcome::kRecords;
  }
  Status Seek(std::span<const stream::PartitionOffset> positions) override {
    return list_.Seek(positions);
  }
  void Pause(std::span<const int32_t> partitions) override {
    list_.Pause(partitions);
    paused_ = true;
  }
  void Resume(std::span<const int32_t> partitions) override {
    list_.Resume(partitions);
    paused_ = false;
  }
  void Advise(std::span<const stream::PartitionOffset>, const stream::StoreClaim&) override {}
  uint64_t RecordsAfter(std::span<const stream::PartitionOffset>) const override { return 0; }
  std::string Identity() const override { return list_.Identity(); }
  Status VerifyIdentity(const std::string&) override { return {}; }

  std::atomic<bool> grown = false;

 private:
  ListSource list_;
  bool paused_ = false;
};

TEST_P(DecodingTest, APartitionThatComesWhileTheQueueIsFullIsRead) {
  Bench bench;
  GrowingSource source(2'000);
  Intake intake({.learners = {{LearnerIndex(0), Once(10), {}}}, .decode_threads = GetParam()},
                source, *bench.codec, bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  ASSERT_TRUE(test::Eventually("the queue is full", [&] { return source.grown.load(); }));
  std::map<int32_t, uint64_t> records;
  while (auto step = intake.steps().Pop())
    records[step->batch.ranges[0].partition] += step->batch.examples.size();
  ASSERT_TRUE(intake.status());
  EXPECT_EQ(records[0], 2'000u);
  EXPECT_EQ(records[1], 10u);
  EXPECT_EQ(intake.records_read(), 2'010u);
}

TEST_P(DecodingTest, StopEndsAllThreadsWhileTheQueueIsFull) {
  Bench bench;
  ListSource source(1'000'000, {}, {}, 10);
  Intake intake({.learners = {{LearnerIndex(0), Once(10), {}}}, .decode_threads = GetParam()},
                source, *bench.codec, bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  ASSERT_TRUE(intake.steps().Pop());
  intake.Stop();
  EXPECT_LT(intake.records_read(), 1'000'000u);
}

}  // namespace
}  // namespace tacit::train
