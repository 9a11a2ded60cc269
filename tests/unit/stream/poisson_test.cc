#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <random>

#include "noise/noise.h"
#include "seeded_coins.h"
#include "stream/steps/participation.h"
#include "support/silent_noise.h"

namespace tacit::stream {
namespace {

using event::PublicCut;

// Coins from a seed: what they come to must not depend on which CSPRNG they are.
// Offsets [first, first + n) with one number each, the offset; those divisible by 7 are lost.
void MakeFrame(uint64_t first, uint64_t n, event::RawRecords* frame, event::Batch* batch) {
  frame->first_offset = first;
  frame->end.resize(n);
  batch->dense_width = 1;
  for (uint64_t offset = first; offset < first + n; ++offset) {
    if (offset % 7 == 0) continue;
    batch->offset.push_back(offset);
    batch->timestamp_ms.push_back(0);
    batch->label.push_back(0);
    batch->dense.push_back(static_cast<float>(offset));
  }
}

// Everything the participation makes of `records` offsets with file ends at `ends`, cut in random
// pieces; with `steps_max` it is stopped after this many steps, as by a crash.
std::vector<StepBatch> Collect(PoissonOptions options, uint64_t records, std::vector<uint64_t> ends,
                               uint64_t seed, uint64_t steps_max = ~uint64_t{0}) {
  std::mt19937_64 random(seed);
  std::vector<StepBatch> steps;
  uint64_t taken = 0;
  const auto emit = [&](StepBatch&& step) {
    if (!step.preview() && taken++ == steps_max) return false;
    steps.push_back(std::move(step));
    return true;
  };
  uint64_t next = options.start.next.empty() ? 0 : options.start.next[0].begin;
  const auto participation =
      MakePoissonParticipation(std::move(options), std::make_unique<SeededCoins>(seed));
  while (next < records) {
    const uint64_t n = std::min<uint64_t>(1 + random() % 300, records - next);
    event::RawRecords frame;
    event::Batch batch;
    MakeFrame(next, n, &frame, &batch);
    for (const uint64_t end : ends)
      if (end > next && end <= next + n)
        frame.cuts.push_back({PublicCut::Kind::kFileEnd, end, "day"});
    if (!participation->Cut(frame, batch, emit)) return steps;
    next += n;
  }
  participation->Finish(emit);
  return steps;
}

TEST(PoissonParticipation, APeriodsStepsAreEmittedOnceItIsClosed) {
  const auto steps = Collect(
      {.offsets_per_period = 1000, .steps_per_period = 5, .sampling_rate = 0.1, .start = {}}, 2500,
      {1300}, 1);
  // Periods: [0, 1000), [1000, 1300) cut by the file end, [1300, 2300), [2300, 2500) at the end.
  const std::vector<std::pair<uint64_t, uint64_t>> periods = {
      {0, 1000}, {1000, 1300}, {1300, 2300}, {2300, 2500}};
  size_t at = 0, cuts = 0;
  for (size_t p = 0; p < periods.size(); ++p) {
    uint64_t previewed = 0;
    for (; at < steps.size() && steps[at].preview(); ++at) {
      previewed += steps[at].examples.size();
      EXPECT_TRUE(steps[at].ranges.empty()) << "a preview is charged to nobody";
    }
    uint64_t good = 0;
    for (uint64_t offset = periods[p].first; offset < periods[p].second; ++offset)
      good += offset % 7 != 0;
    EXPECT_EQ(previewed, good);
    for (uint64_t s = 0; s < 5; ++s, ++at) {
      ASSERT_LT(at, steps.size());
      const StepBatch& step = steps[at];
      EXPECT_TRUE(step.whole_period());
      EXPECT_EQ(step.ranges, (std::vector<OffsetRange>{{0, periods[p].first, periods[p].second}}));
      EXPECT_EQ(step.after.step, p * 5 + s + 1);
      EXPECT_EQ(step.after.period, s == 4 ? p + 1 : p);
      EXPECT_EQ(step.after.period_step, s == 4 ? 0 : s + 1);
      EXPECT_EQ(step.after.next[0].begin, s == 4 ? periods[p].second : periods[p].first);
      for (const uint64_t offset : step.examples.offset) {
        EXPECT_GE(offset, periods[p].first);
        EXPECT_LT(offset, periods[p].second);
      }
      cuts += step.cuts.size();
    }
  }
  EXPECT_EQ(at, steps.size());
  EXPECT_EQ(cuts, 1u);
}

// Each event is in each step with the rate, independently of other events and other steps. The
// limits are 6 deviations; at a rate wrong by a tenth the first is far beyond.
TEST(PoissonParticipation, EachEventIsInEachStepWithTheRateIndependently) {
  constexpr double kRate = 0.05;
  constexpr uint64_t kSteps = 400, kOffsets = 2000;
  const auto check = [&](double rate) {
    const auto steps = Collect({.offsets_per_period = kOffsets,
                                .steps_per_period = kSteps,
                                .sampling_rate = rate,
                                .start = {}},
                               kOffsets, {}, 42);
    std::map<uint64_t, std::vector<uint8_t>> in;
    uint64_t s = 0;
    double total = 0, neighbours = 0, successive = 0;
    for (const StepBatch& step : steps) {
      if (step.preview()) continue;
      for (size_t i = 0; i < step.examples.size(); ++i) {
        auto& row = in[step.examples.offset[i]];
        row.resize(kSteps);
        EXPECT_EQ(row[s], 0) << "an event twice in a step";
        row[s] = 1;
        ++total;
      }
      ++s;
    }
    const double events = kOffsets - (kOffsets + 6) / 7, cells = events * kSteps;
    const std::vector<uint8_t> none(kSteps);
    for (uint64_t offset = 0; offset < kOffsets; ++offset) {
      const auto& row = in.contains(offset) ? in[offset] : none;
      const auto& next = in.contains(offset + 1) ? in[offset + 1] : none;
      for (uint64_t t = 0; t < kSteps; ++t) {
        neighbours += row[t] & next[t];
        if (t + 1 < kSteps) successive += row[t] & row[t + 1];
      }
    }
    const auto far = [&](double seen, double pairs, double p) {
      return std::abs(seen - pairs * p) / std::sqrt(pairs * p * (1 - p));
    };
    const double adjacent = kOffsets * 5.0 / 7 * kSteps;  // pairs of good neighbours
    return std::array<double, 3>{far(total, cells, kRate), far(neighbours, adjacent, kRate * kRate),
                                 far(successive, events * (kSteps - 1), kRate * kRate)};
  };
  for (const double deviations : check(kRate)) EXPECT_LT(deviations, 6);
  EXPECT_GT(check(1.1 * kRate)[0], 12);
}

TEST(PoissonParticipation, AtRateOneEveryEventIsInEveryStep) {
  for (const StepBatch& step :
       Collect({.offsets_per_period = 100, .steps_per_period = 3, .sampling_rate = 1, .start = {}},
               100, {}, 3))
    EXPECT_EQ(step.examples.size(), 85u);
}

// A crash in the middle of a period: the period is read again, the steps left are taken, no step is
// taken twice, and nothing is previewed a second time.
TEST(PoissonParticipation, GoesOnInTheMiddleOfAPeriod) {
  for (uint64_t crash = 1; crash < 12; ++crash) {
    SCOPED_TRACE(crash);
    PoissonOptions options{
        .offsets_per_period = 400, .steps_per_period = 4, .sampling_rate = 0.2, .start = {}};
    auto steps = Collect(options, 1200, {}, 5, crash);
    while (steps.back().preview()) steps.pop_back();
    options.start = steps.back().after;
    EXPECT_EQ(options.start.step, crash);
    EXPECT_EQ(options.start.next[0].begin, crash / 4 * 400);
    const bool inside = options.start.period_step != 0;
    const auto rest = Collect(options, 1200, {}, 6);
    EXPECT_EQ(rest.front().preview(), !inside);
    uint64_t expected = crash;
    for (const StepBatch& step : rest) {
      if (step.preview()) continue;
      EXPECT_EQ(step.after.step, ++expected);
      EXPECT_EQ(step.ranges[0].begin, (expected - 1) / 4 * 400);
    }
    EXPECT_EQ(expected, 12u);
  }
}

// Ranges of the periods, in order.
std::vector<std::pair<uint64_t, uint64_t>> Periods(const std::vector<StepBatch>& steps) {
  std::vector<std::pair<uint64_t, uint64_t>> periods;
  for (const StepBatch& step : steps) {
    if (step.preview()) continue;
    const std::pair<uint64_t, uint64_t> range{step.ranges[0].begin, step.ranges[0].end};
    if (periods.empty() || periods.back() != range) periods.push_back(range);
  }
  return periods;
}

TEST(PoissonParticipation, APeriodOfSeveralFilesIsClosedByTheLastOfThem) {
  using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;
  const std::vector<uint64_t> ends = {300, 700, 1000, 1400, 1500};
  const auto periods = [&](uint64_t offsets, uint32_t files, std::vector<uint64_t> at) {
    return Periods(Collect({.offsets_per_period = offsets,
                            .files_per_period = files,
                            .steps_per_period = 2,
                            .sampling_rate = 0.5,
                            .start = {}},
                           1500, std::move(at), 9));
  };
  EXPECT_EQ(periods(0, 2, ends), (Ranges{{0, 700}, {700, 1400}, {1400, 1500}}));
  EXPECT_EQ(periods(0, 4, ends), (Ranges{{0, 1400}, {1400, 1500}}));
  EXPECT_EQ(periods(0, 9, ends), (Ranges{{0, 1500}}));
  // Offsets close it too, and the files are counted from there.
  EXPECT_EQ(periods(500, 2, ends), (Ranges{{0, 500}, {500, 1000}, {1000, 1500}}));
  // An empty file counts, but not at a period's very beginning.
  EXPECT_EQ(periods(0, 2, {300, 300, 700, 700, 1500}), (Ranges{{0, 300}, {300, 700}, {700, 1500}}));
}

// Wherever it stops, the periods are those of a run that never stopped: files that ended inside the
// period under way are seen, and counted, again.
TEST(PoissonParticipation, GoesOnInAPeriodOfSeveralFiles) {
  PoissonOptions options{.offsets_per_period = 0,
                         .files_per_period = 3,
                         .steps_per_period = 4,
                         .sampling_rate = 0.2,
                         .start = {}};
  const std::vector<uint64_t> ends = {100, 250, 250, 400, 500, 800, 900, 1000, 1100};
  const auto whole = Collect(options, 1200, ends, 5);
  const auto periods = Periods(whole);
  ASSERT_EQ(periods.size(), 4u);
  for (uint64_t crash = 1; crash < 16; ++crash) {
    SCOPED_TRACE(crash);
    options.start = {};
    auto steps = Collect(options, 1200, ends, 5, crash);
    while (steps.back().preview()) steps.pop_back();
    options.start = steps.back().after;
    EXPECT_EQ(options.start.next[0].begin, periods[crash / 4].first);
    const auto rest = Periods(Collect(options, 1200, ends, 6));
    EXPECT_EQ(rest,
              (std::vector(periods.begin() + static_cast<ptrdiff_t>(crash / 4), periods.end())));
  }
}

// A frame of one partition, every record good.
struct Piece {
  event::RawRecords frame;
  event::Batch batch;
};
Piece MakePiece(int32_t partition, uint64_t first, uint64_t n) {
  Piece piece;
  MakeFrame(first, n, &piece.frame, &piece.batch);
  piece.frame.partition = piece.batch.partition = partition;
  return piece;
}
Piece MakeCut(int32_t partition, uint64_t at, PublicCut::Kind kind) {
  Piece piece = MakePiece(partition, at, 0);
  piece.frame.cuts.push_back({kind, at, ""});
  return piece;
}

OffsetRange NextOf(const Position& position, int32_t partition) {
  for (const OffsetRange& next : position.next)
    if (next.partition == partition) return next;
  return {partition, 999, 999};
}

PoissonOptions TwoPartitions(Position start = {}) {
  return {.offsets_per_period = 100,
          .steps_per_period = 4,
          .sampling_rate = 0.5,
          .start = std::move(start),
          .full_at_once = true};
}

// Stopped in the third step of a period, and read again with the other partition in front: its last
// two steps come first, on the same offsets, before anything of the other one.
TEST(PoissonParticipation, APeriodUnderWayIsFinishedBeforeAnotherPartitions) {
  std::vector<StepBatch> steps;
  const auto emit = [&](StepBatch&& step) {
    if (step.preview()) return true;
    steps.push_back(std::move(step));
    return steps.size() < 2;
  };
  const auto before = MakePoissonParticipation(TwoPartitions(), std::make_unique<SeededCoins>(1));
  const Piece other = MakePiece(1, 0, 30), first = MakePiece(0, 0, 100);
  ASSERT_TRUE(before->Cut(other.frame, other.batch, emit));
  ASSERT_FALSE(before->Cut(first.frame, first.batch, emit));
  const Position start = steps.back().after;
  EXPECT_EQ(start.period_step, 2u);
  EXPECT_EQ(NextOf(start, 0), (OffsetRange{0, 0, 100}));
  EXPECT_EQ(NextOf(start, 1), (OffsetRange{1, 0, 0}));

  steps.clear();
  const auto all = [&](StepBatch&& step) {
    // The other partition is not past a period until its steps are taken.
    if (!step.preview()) {
      const bool done = steps.size() >= 5;
      EXPECT_EQ(NextOf(step.after, 1).begin, done ? 100u : 0u) << steps.size();
      steps.push_back(std::move(step));
    }
    return true;
  };
  const auto after =
      MakePoissonParticipation(TwoPartitions(start), std::make_unique<SeededCoins>(2));
  const Piece closed = MakePiece(1, 0, 100);
  ASSERT_TRUE(after->Cut(closed.frame, closed.batch, all));
  EXPECT_TRUE(steps.empty()) << "another period while one is under way";
  ASSERT_TRUE(after->Cut(first.frame, first.batch, all));
  ASSERT_EQ(steps.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(steps[i].ranges, (std::vector<OffsetRange>{{i < 2 ? 0 : 1, 0, 100}}));
    EXPECT_EQ(steps[i].kind == StepBatch::Kind::kPeriodFirst, i == 2);
    EXPECT_EQ(steps[i].after.step, 3 + i);
  }
  EXPECT_EQ(NextOf(steps.back().after, 0), (OffsetRange{0, 100, 100}));
}

// The clock does not strike at the same offset twice.
TEST(PoissonParticipation, APeriodThatATickClosedEndsWhereItEndedWhenReadAgain) {
  std::vector<StepBatch> steps;
  const auto emit = [&](StepBatch&& step) {
    if (!step.preview()) steps.push_back(std::move(step));
    return steps.size() != 1;
  };
  const auto before = MakePoissonParticipation(TwoPartitions(), std::make_unique<SeededCoins>(1));
  const Piece some = MakePiece(0, 0, 60), tick = MakeCut(0, 60, PublicCut::Kind::kClockTick);
  ASSERT_TRUE(before->Cut(some.frame, some.batch, emit));
  ASSERT_FALSE(before->Cut(tick.frame, tick.batch, emit));
  const auto after =
      MakePoissonParticipation(TwoPartitions(steps[0].after), std::make_unique<SeededCoins>(2));
  const Piece more = MakePiece(0, 0, 90);
  ASSERT_TRUE(after->Cut(more.frame, more.batch, emit));
  ASSERT_EQ(steps.size(), 4u);
  for (const StepBatch& step : steps)
    EXPECT_EQ(step.ranges, (std::vector<OffsetRange>{{0, 0, 60}}));
  EXPECT_EQ(NextOf(steps.back().after, 0).begin, 60u);
}

// Retention took the beginning of a period of which two steps were taken: it is closed, the rest of
// it is not learnt from, and what is lost after it is reported with the next one.
TEST(PoissonParticipation, APeriodThatIsLostIsClosed) {
  const Position start{
      .period_start = {{0, 0, 0}}, .next = {{0, 0, 100}}, .step = 2, .period_step = 2};
  for (const auto& [low, told] : std::vector<std::pair<uint64_t, std::vector<OffsetRange>>>{
           {40, {{0, 100, 200}}}, {130, {{0, 100, 130}, {0, 130, 230}}}}) {
    std::vector<StepBatch> steps;
    const auto emit = [&](StepBatch&& step) {
      for (const uint64_t offset : step.examples.offset) EXPECT_GE(offset, std::max(low, 100ul));
      if (!step.preview()) steps.push_back(std::move(step));
      return true;
    };
    const auto after =
        MakePoissonParticipation(TwoPartitions(start), std::make_unique<SeededCoins>(2));
    const Piece loss = MakeCut(0, low, PublicCut::Kind::kLost);
    ASSERT_TRUE(after->Cut(loss.frame, loss.batch, emit));
    EXPECT_TRUE(steps.empty());
    const Piece rest = MakePiece(0, low, 250 - low);
    ASSERT_TRUE(after->Cut(rest.frame, rest.batch, emit));
    ASSERT_EQ(steps.size(), 4u);
    EXPECT_EQ(steps[0].ranges, told);
    EXPECT_TRUE(steps[0].kind == StepBatch::Kind::kPeriodFirst);
    EXPECT_EQ(steps[0].after.period, 1u);
    EXPECT_EQ(steps[0].after.step, 3u);
  }
}

// Retention overtook a period while it was read. Offsets decide whether steps are taken of what was
// read, and never whether a record was there: one record would bring in all of a period's steps.
TEST(PoissonParticipation, NoRecordDecidesWhetherAPeriodThatWasCutIsLearntFrom) {
  const auto steps_of = [](uint64_t read, bool nulled) {
    uint64_t steps = 0;
    const auto emit = [&](StepBatch&& step) {
      steps += !step.preview();
      return true;
    };
    const auto participation =
        MakePoissonParticipation(TwoPartitions(), std::make_unique<SeededCoins>(2));
    Piece piece = MakePiece(0, 1, read);
    if (nulled) piece.batch = EmptyLike(piece.batch);
    EXPECT_TRUE(participation->Cut(piece.frame, piece.batch, emit));
    const Piece loss = MakeCut(0, 60, PublicCut::Kind::kLost);
    EXPECT_TRUE(participation->Cut(loss.frame, loss.batch, emit));
    return steps;
  };
  EXPECT_EQ(steps_of(1, false), 4u);
  EXPECT_EQ(steps_of(1, true), 4u);
  EXPECT_EQ(steps_of(0, true), 0u) << "nothing was read";
}

// Retention took what another learner had not read, up to where this one's period begins.
TEST(PoissonParticipation, APeriodWhoseRecordsAreAllThereIsNotLost) {
  const Position start{
      .period_start = {{0, 100, 100}}, .next = {{0, 100, 200}}, .step = 2, .period_step = 2};
  std::vector<StepBatch> steps;
  const auto emit = [&](StepBatch&& step) {
    if (!step.preview()) steps.push_back(std::move(step));
    return true;
  };
  const auto after =
      MakePoissonParticipation(TwoPartitions(start), std::make_unique<SeededCoins>(2));
  const Piece loss = MakeCut(0, 100, PublicCut::Kind::kLost);
  ASSERT_TRUE(after->Cut(loss.frame, loss.batch, emit));
  const Piece rest = MakePiece(0, 100, 110);
  ASSERT_TRUE(after->Cut(rest.frame, rest.batch, emit));
  ASSERT_FALSE(steps.empty());
  EXPECT_TRUE(steps[0].kind == StepBatch::Kind::kPeriodNext);
  EXPECT_EQ(steps[0].ranges, (std::vector<OffsetRange>{{0, 100, 200}}));
  EXPECT_EQ(steps[0].after.step, 3u);
}

// A machine that is cloned within a period must not draw the batches its original draws.
TEST(PoissonParticipation, EveryStepDrawsItsCoinsFromAKeyOfItsOwn) {
  auto coins = std::make_unique<SeededCoins>(1);
  const SeededCoins& counter = *coins;
  const auto participation = MakePoissonParticipation(
      {.offsets_per_period = 50, .steps_per_period = 5, .sampling_rate = 0.5, .start = {}},
      std::move(coins));
  event::RawRecords frame;
  event::Batch batch;
  MakeFrame(0, 100, &frame, &batch);
  uint64_t steps = 0;
  participation->Cut(frame, batch, [&](StepBatch&& step) {
    if (step.preview()) return true;
    EXPECT_EQ(counter.keys, ++steps);
    return true;
  });
  EXPECT_GE(steps, 5u);
}

// A restore must know how many steps of held periods any record can have been in.
TEST(PoissonParticipation, APositionTellsTheLongestPeriodAndSinceWhen) {
  const auto options = [](uint64_t steps_per_period, const Position& start) {
    return PoissonOptions{.offsets_per_period = 100,
                          .steps_per_period = steps_per_period,
                          .sampling_rate = 0.1,
                          .start = start};
  };
  Position at = Collect(options(3, {}), 200, {}, 1).back().after;
  EXPECT_EQ(at.step, 6u);
  EXPECT_EQ(at.longest_period, 3u);
  at = Collect(options(7, at), 300, {}, 2).back().after;
  EXPECT_EQ(at.longest_period, 7u);
  at = Collect(options(2, at), 400, {}, 3).back().after;
  EXPECT_EQ(at.longest_period, 7u) << "there was one";
  EXPECT_EQ(at.begun_anew, 0u);
}

TEST(PoissonParticipation, ThePartOfAPeriodThatIsInAnotherOneTooIsTold) {
  const auto options = [](uint64_t offsets, const Position& start) {
    return PoissonOptions{
        .offsets_per_period = offsets, .steps_per_period = 5, .sampling_rate = 0.1, .start = start};
  };
  const auto begun = Collect(options(1000, {}), 1000, {}, 1, /*steps_max=*/2);
  const Position open = begun.back().after;
  ASSERT_EQ(open.period_step, 2u);
  const Position same = Collect(options(1000, open), 2000, {}, 2).back().after;
  EXPECT_EQ(same.begun_anew, 0u);
  // Offsets from 400 on were in two steps, and are in five of the next periods.
  const Position cut = Collect(options(400, open), 2000, {}, 3).back().after;
  EXPECT_EQ(cut.begun_anew, 1u);
}

}  // namespace
}  // namespace tacit::stream
