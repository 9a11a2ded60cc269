// Participation `allocate`: each unit in exactly one step of each block, drawn independently,
// for any records, and after a crash anywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "seeded_coins.h"
#include "stream/steps/participation.h"

namespace tacit::stream {
namespace {

using event::PublicCut;

// Offsets [first, first + n); those divisible by 7 are lost. `label` is what each of them says.
void MakeFrame(uint64_t first, uint64_t n, float label, event::RawRecords* frame,
               event::Batch* batch) {
  frame->first_offset = first;
  frame->end.resize(n);
  batch->dense_width = 1;
  for (uint64_t offset = first; offset < first + n; ++offset) {
    if (offset % 7 == 0) continue;
    batch->offset.push_back(offset);
    batch->timestamp_ms.push_back(0);
    batch->label.push_back(label);
    batch->dense.push_back(label);
    batch->user.Append("u" + std::to_string(offset % 50));
  }
}

struct Run {
  uint64_t records = 0, seed = 1;
  uint64_t steps_most = ~uint64_t{0};  // then it is stopped, as by a crash
  float label = 0;
  std::vector<uint64_t> ends = {};  // file ends
};

// The steps, without previews, that are made of the records, which come in random pieces.
std::vector<StepBatch> Collect(AllocationOptions options, const Run& run) {
  std::mt19937_64 random(run.seed);
  std::vector<StepBatch> steps;
  const auto emit = [&](StepBatch&& step) {
    if (step.preview()) return true;
    if (steps.size() == run.steps_most) return false;
    steps.push_back(std::move(step));
    return true;
  };
  uint64_t next = options.start.next.empty() ? 0 : options.start.next[0].begin;
  const auto allocation =
      MakeAllocationParticipation(std::move(options), std::make_unique<SeededCoins>(run.seed));
  while (next < run.records) {
    const uint64_t n = std::min<uint64_t>(1 + random() % 300, run.records - next);
    event::RawRecords frame;
    event::Batch batch;
    MakeFrame(next, n, run.label, &frame, &batch);
    for (const uint64_t end : run.ends)
      if (end > next && end <= next + n)
        frame.cuts.push_back({PublicCut::Kind::kFileEnd, end, "day"});
    if (!allocation->Cut(frame, batch, emit)) return steps;
    next += n;
  }
  allocation->Finish(emit);
  return steps;
}

AllocationOptions Options(uint64_t period, uint64_t steps, uint64_t blocks, Position start = {}) {
  return {.offsets_per_period = period,
          .block_steps = steps,
          .blocks = blocks,
          .start = std::move(start)};
}

// The step of each block that an offset is in, by (offset, block).
using Places = std::map<std::pair<uint64_t, uint64_t>, std::vector<uint64_t>>;
void Note(const StepBatch& step, uint64_t taken_of_period, uint64_t block_steps, Places* places) {
  for (const uint64_t offset : step.examples.offset)
    (*places)[{offset, taken_of_period / block_steps}].push_back(taken_of_period % block_steps);
}
Places PlacesIn(const std::vector<StepBatch>& steps, uint64_t block_steps, uint64_t blocks) {
  Places places;
  for (size_t i = 0; i < steps.size(); ++i)
    Note(steps[i], i % (block_steps * blocks), block_steps, &places);
  return places;
}

// Every good offset is in one step of each block, in no step twice and in no other period's.
void ExpectOnceABlock(const Places& places, uint64_t records, uint64_t blocks) {
  size_t good = 0;
  for (uint64_t offset = 0; offset < records; ++offset) {
    if (offset % 7 == 0) continue;
    for (uint64_t block = 0; block < blocks; ++block, ++good) {
      const auto found = places.find({offset, block});
      ASSERT_TRUE(found != places.end()) << offset << " is in no step of block " << block;
      ASSERT_EQ(found->second.size(), 1u) << offset << " is twice in block " << block;
    }
  }
  EXPECT_EQ(places.size(), good);
}

TEST(AllocationTest, EachEventIsInOneStepOfEachBlockOfItsPeriod) {
  const auto steps = Collect(Options(1000, 5, 3), {.records = 2500, .ends = {1300}});
  const std::vector<OffsetRange> periods = {
      {0, 0, 1000}, {0, 1000, 1300}, {0, 1300, 2300}, {0, 2300, 2500}};
  ASSERT_EQ(steps.size(), periods.size() * 15);
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].ranges, std::vector<OffsetRange>{periods[i / 15]});
    EXPECT_EQ(steps[i].period_steps, 15u);
    EXPECT_EQ(steps[i].kind,
              i % 15 == 0 ? StepBatch::Kind::kPeriodFirst : StepBatch::Kind::kPeriodNext);
    EXPECT_TRUE(std::ranges::is_sorted(steps[i].examples.offset));
    for (const uint64_t offset : steps[i].examples.offset) {
      EXPECT_GE(offset, periods[i / 15].begin);
      EXPECT_LT(offset, periods[i / 15].end);
    }
  }
  ExpectOnceABlock(PlacesIn(steps, 5, 3), 2500, 3);
}

// Deviations of what was drawn from what is promised: that each step is as likely as any other (chi
// squared over the steps); that neighbours, and the blocks of one event, agree by chance alone; and
// that the sizes of steps scatter as those of independent draws do.
struct Deviations {
  double uniform = 0, neighbours = 0, blocks = 0, sizes = 0;
};
template <class Place>
Deviations DeviationsOf(const Place& place, uint64_t events, uint64_t steps, uint64_t blocks) {
  const double p = 1.0 / static_cast<double>(steps);
  double chi = 0, near = 0, again = 0, scatter = 0;
  for (uint64_t block = 0; block < blocks; ++block) {
    std::vector<double> size(steps);
    for (uint64_t event = 0; event < events; ++event) {
      ++size[place(event, block)];
      if (event > 0) near += place(event, block) == place(event - 1, block);
      if (block > 0) again += place(event, block) == place(event, block - 1);
    }
    const double mean = static_cast<double>(events) * p;
    for (const double one : size) scatter += (one - mean) * (one - mean) / mean;
  }
  std::vector<double> all(steps);
  for (uint64_t block = 0; block < blocks; ++block)
    for (uint64_t event = 0; event < events; ++event) ++all[place(event, block)];
  const double mean = static_cast<double>(events * blocks) * p;
  for (const double one : all) chi += (one - mean) * (one - mean) / mean;
  const auto of_pairs = [&](double seen, double pairs) {
    return (seen - pairs * p) / std::sqrt(pairs * p * (1 - p));
  };
  const auto free = static_cast<double>(steps - 1);
  const auto many = static_cast<double>(blocks) * free;
  return {.uniform = (chi - free) / std::sqrt(2 * free),
          .neighbours = of_pairs(near, static_cast<double>((events - 1) * blocks)),
          .blocks = of_pairs(again, static_cast<double>(events * (blocks - 1))),
          .sizes = (scatter - many) / std::sqrt(2 * many)};
}

TEST(AllocationTest, StepsAreDrawnUniformlyAndIndependently) {
  constexpr uint64_t kEvents = 3000, kSteps = 20, kBlocks = 40;
  const auto steps = Collect(Options(kEvents, kSteps, kBlocks), {.records = kEvents, .seed = 42});
  const Places places = PlacesIn(steps, kSteps, kBlocks);
  std::vector<uint64_t> good;
  for (uint64_t offset = 0; offset < kEvents; ++offset)
    if (offset % 7 != 0) good.push_back(offset);
  const auto drawn = [&](uint64_t event, uint64_t block) {
    return places.at({good[event], block})[0];
  };
  const Deviations seen = DeviationsOf(drawn, good.size(), kSteps, kBlocks);
  EXPECT_LT(std::abs(seen.uniform), 6);
  EXPECT_LT(std::abs(seen.neighbours), 6);
  EXPECT_LT(std::abs(seen.blocks), 6);
  EXPECT_LT(std::abs(seen.sizes), 6);

  // Faults are seen: steps of equal size, which are not drawn independently; one draw
  // for all blocks; one step that comes up a tenth too rarely.
  std::mt19937_64 random(1);
  std::vector<std::vector<uint64_t>> cards(kBlocks);
  for (auto& one : cards) {
    for (uint64_t event = 0; event < good.size(); ++event) one.push_back(event % kSteps);
    std::ranges::shuffle(one, random);
  }
  const auto equal = [&](uint64_t event, uint64_t block) { return cards[block][event]; };
  EXPECT_LT(DeviationsOf(equal, good.size(), kSteps, kBlocks).sizes, -12);
  const auto same = [&](uint64_t event, uint64_t) { return drawn(event, 0); };
  EXPECT_GT(DeviationsOf(same, good.size(), kSteps, kBlocks).blocks, 12);
  const auto skewed = [&](uint64_t event, uint64_t block) {
    const uint64_t step = drawn(event, block);
    return step == 0 && (event + block) % 10 == 0 ? 1 : step;
  };
  EXPECT_GT(DeviationsOf(skewed, good.size(), kSteps, kBlocks).uniform, 6);
}

// Records that say something else, or do not decode, change nobody's step.
TEST(AllocationTest, WhatRecordsSayDecidesNothing) {
  const auto places = [](float label) {
    return PlacesIn(Collect(Options(500, 8, 2), {.records = 500, .label = label}), 8, 2);
  };
  EXPECT_EQ(places(0), places(1));
  EXPECT_NE(places(0), PlacesIn(Collect(Options(500, 8, 2), {.records = 500, .seed = 2}), 8, 2))
      << "another key draws other steps";
}

// Stopped after any step and begun again, each event is in one step of each block all the same.
TEST(AllocationTest, GoesOnWithTheSameStepsAfterACrashAnywhere) {
  constexpr uint64_t kSteps = 4, kBlocks = 3, kPeriod = 400, kOfPeriod = kSteps * kBlocks;
  for (uint64_t crash = 1; crash <= 3 * kOfPeriod; ++crash) {
    SCOPED_TRACE(crash);
    auto steps = Collect(Options(kPeriod, kSteps, kBlocks),
                         {.records = 3 * kPeriod, .seed = 5, .steps_most = crash});
    ASSERT_EQ(steps.size(), crash);
    const Position start = steps.back().after;
    EXPECT_EQ(start.step, crash);
    EXPECT_EQ(start.period_step, crash % kOfPeriod);
    EXPECT_EQ(start.allocation.has_value(), crash % kOfPeriod != 0)
        << "the key is kept as long as the period lasts, and no longer";
    for (StepBatch& step :
         Collect(Options(kPeriod, kSteps, kBlocks, start), {.records = 3 * kPeriod, .seed = 6}))
      steps.push_back(std::move(step));
    ASSERT_EQ(steps.size(), 3 * kOfPeriod);
    for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i].after.step, i + 1);
    ExpectOnceABlock(PlacesIn(steps, kSteps, kBlocks), 3 * kPeriod, kBlocks);
  }
}

// With a key drawn anew some events are in a block twice, others never.
TEST(AllocationTest, AKeyDrawnAnewWithinAPeriodIsSeen) {
  auto steps = Collect(Options(400, 8, 1), {.records = 400, .seed = 5, .steps_most = 4});
  Position start = steps.back().after;
  start.allocation->key[0] ^= 1;
  for (StepBatch& step : Collect(Options(400, 8, 1, start), {.records = 400, .seed = 6}))
    steps.push_back(std::move(step));
  size_t twice = 0;
  const Places places = PlacesIn(steps, 8, 1);
  for (const auto& [place, in] : places) twice += in.size() > 1;
  EXPECT_GT(twice, 20u);
  EXPECT_LT(places.size(), 400u - 58 - 20) << "and some are in none";
}

TEST(AllocationTest, EachPeriodHasAKeyOfItsOwn) {
  const auto steps = Collect(Options(50, 2, 2), {.records = 500});
  std::set<SipHash::Key> keys;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto& allocation = steps[i].after.allocation;
    ASSERT_EQ(allocation.has_value(), i % 4 != 3);
    if (!allocation) continue;
    keys.insert(allocation->key);
    EXPECT_EQ(allocation->block_steps, 2u);
    EXPECT_EQ(allocation->period_steps, 4u);
  }
  EXPECT_EQ(keys.size(), 10u);
}

// The key of the period under way is not known, or was drawn for other blocks.
struct Unknown {
  const char* why;
  uint64_t steps, blocks;
  bool forgotten;
};
const Unknown kUnknown[] = {{"a copy that has no key", 4, 2, true},
                            {"other steps", 8, 1, false},
                            {"fewer blocks", 4, 1, false}};

TEST(AllocationTest, APeriodWithoutItsKeyIsClosed) {
  for (const Unknown& unknown : kUnknown) {
    SCOPED_TRACE(unknown.why);
    Position start = Collect(Options(400, 4, 2), {.records = 900, .steps_most = 3}).back().after;
    if (unknown.forgotten) start.allocation.reset();
    const auto rest =
        Collect(Options(400, unknown.steps, unknown.blocks, start), {.records = 900, .seed = 2});
    const uint64_t of_period = unknown.steps * unknown.blocks;
    ASSERT_EQ(rest.size(), 2 * of_period) << "the periods behind it";
    EXPECT_EQ(rest[0].ranges, (std::vector<OffsetRange>{{0, 400, 800}}));
    EXPECT_EQ(rest[0].kind, StepBatch::Kind::kPeriodFirst);
    EXPECT_EQ(rest[0].after.period, 1u);
    EXPECT_EQ(rest[0].after.begun_anew, 0u);
    EXPECT_EQ(rest[0].after.step, 4u);
  }
}

TEST(AllocationTest, APeriodWithoutItsKeyIsBegunAnewWhereThatIsPaidFor) {
  for (const Unknown& unknown : kUnknown) {
    SCOPED_TRACE(unknown.why);
    Position start = Collect(Options(400, 4, 2), {.records = 900, .steps_most = 3}).back().after;
    const auto before = start.allocation;
    if (unknown.forgotten) start.allocation.reset();
    AllocationOptions options = Options(400, unknown.steps, unknown.blocks, start);
    options.begins_anew = true;
    const auto rest = Collect(options, {.records = 900, .seed = 2});
    const uint64_t of_period = unknown.steps * unknown.blocks;
    ASSERT_EQ(rest.size(), 3 * of_period);
    EXPECT_EQ(rest[0].ranges, (std::vector<OffsetRange>{{0, 0, 400}}));
    EXPECT_EQ(rest[0].kind, StepBatch::Kind::kPeriodFirst) << "it is charged as a new one";
    EXPECT_EQ(rest[0].after.period, 1u) << "behind the part that was begun";
    EXPECT_EQ(rest[0].after.begun_anew, 1u);
    EXPECT_EQ(rest.back().after.begun_anew, 1u);
    EXPECT_NE(rest[0].after.allocation, before);
    ExpectOnceABlock(PlacesIn(rest, unknown.steps, unknown.blocks), 900, unknown.blocks);
  }
}

// Retention took the beginning of a period of which steps were taken.
TEST(AllocationTest, APeriodThatIsLostForgetsItsKey) {
  const Position start =
      Collect(Options(100, 4, 1), {.records = 100, .steps_most = 2}).back().after;
  AllocationOptions options = Options(100, 4, 1, start);
  options.full_at_once = true;
  std::vector<StepBatch> steps;
  const auto emit = [&](StepBatch&& step) {
    if (!step.preview()) steps.push_back(std::move(step));
    return true;
  };
  const auto after = MakeAllocationParticipation(options, std::make_unique<SeededCoins>(2));
  event::RawRecords lost;
  event::Batch none;
  MakeFrame(40, 0, 0, &lost, &none);
  lost.cuts.push_back({PublicCut::Kind::kLost, 40, ""});
  ASSERT_TRUE(after->Cut(lost, none, emit));
  event::RawRecords frame;
  event::Batch batch;
  MakeFrame(40, 160, 0, &frame, &batch);
  ASSERT_TRUE(after->Cut(frame, batch, emit));
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[0].kind, StepBatch::Kind::kPeriodFirst);
  EXPECT_NE(steps[0].after.allocation, start.allocation);
  EXPECT_EQ(steps[0].after.period, 1u);
}

// ---- unit user ----

class NoUses final : public AllowanceView {
 public:
  Result<uint64_t> Read(std::span<UserUses>) override { return 0; }
};

AllocationOptions OfUsers(AllowanceBook& book, uint64_t steps, uint64_t blocks, uint64_t allowance,
                          Position start = {}) {
  AllocationOptions options = Options(400, steps, blocks, std::move(start));
  options.users = UserOptions{.key = {}, .allowances = &book, .allowance = allowance};
  return options;
}

// A user is in one step of each block, with all records, and is counted for all steps at once.
TEST(AllocationTest, AUserIsInOneStepOfEachBlockWithAllRecords) {
  constexpr uint64_t kSteps = 4, kBlocks = 2, kOfPeriod = kSteps * kBlocks;
  for (uint64_t crash = 1; crash <= kOfPeriod; ++crash) {
    NoUses none;
    AllowanceBook book(none);
    auto steps = Collect(OfUsers(book, kSteps, kBlocks, 100),
                         {.records = 400, .seed = 3, .steps_most = crash});
    EXPECT_EQ(steps[0].uses.size(), 50u);
    for (const UserUses& uses : steps[0].uses) EXPECT_EQ(uses.in_period, kOfPeriod);
    for (StepBatch& step : Collect(OfUsers(book, kSteps, kBlocks, 100, steps.back().after),
                                   {.records = 400, .seed = 4}))
      steps.push_back(std::move(step));
    ASSERT_EQ(steps.size(), kOfPeriod);
    std::map<std::pair<std::string, uint64_t>, std::set<uint64_t>> in;
    Places places;
    for (uint64_t i = 0; i < kOfPeriod; ++i) {
      Note(steps[i], i, kSteps, &places);
      for (size_t e = 0; e < steps[i].examples.size(); ++e)
        in[{std::string(steps[i].examples.user[e]), i / kSteps}].insert(i);
    }
    ExpectOnceABlock(places, 400, kBlocks);
    ASSERT_EQ(in.size(), 50 * kBlocks);
    for (const auto& [user, of_block] : in) EXPECT_EQ(of_block.size(), 1u) << user.first;
  }
}

// A period that is begun anew counts its users once more; those without room are left out.
TEST(AllocationTest, UsersAreCountedForThePartBegunAndForTheNewOne) {
  for (const uint64_t allowance : {16, 15}) {
    NoUses none;
    AllowanceBook book(none);
    Position start =
        Collect(OfUsers(book, 4, 2, allowance), {.records = 400, .steps_most = 3}).back().after;
    start.allocation.reset();
    AllocationOptions options = OfUsers(book, 4, 2, allowance, start);
    options.begins_anew = true;
    const auto rest = Collect(options, {.records = 400});
    ASSERT_EQ(rest.size(), 8u);
    const bool room = allowance == 16;
    EXPECT_EQ(rest[0].uses.size(), room ? 50u : 0u);
    EXPECT_EQ(rest[0].came.users, 50u);
    EXPECT_EQ(rest[0].came.users_left_out, room ? 0u : 50u);
    EXPECT_EQ(rest[0].came.records_left_out, room ? 0u : rest[0].came.records);
    for (const UserUses& uses : rest[0].uses) EXPECT_EQ(uses.used, 16u);
  }
}

}  // namespace
}  // namespace tacit::stream
