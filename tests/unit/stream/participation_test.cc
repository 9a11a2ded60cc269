#include "stream/steps/participation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

namespace tacit::stream {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

// A stream of offsets [begin, end), some of whose records did not decode, with cuts.
struct Stream {
  uint64_t begin = 0, end = 0;
  std::set<uint64_t> dead;
  std::map<uint64_t, std::string> cuts;  // before this offset, the file of this name ended

  event::RawRecords Frame(uint64_t from, uint64_t to, bool with_end_cut) const {
    event::RawRecords frame;
    frame.first_offset = from;
    frame.end.resize(to - from);
    for (const auto& [offset, name] : cuts)
      if (offset > from && (offset < to || (offset == to && with_end_cut)))
        frame.cuts.push_back({event::PublicCut::Kind::kFileEnd, offset, name});
    return frame;
  }
  event::RawRecords CutOnly(uint64_t at) const {
    event::RawRecords frame;
    frame.first_offset = at;
    frame.cuts.push_back({event::PublicCut::Kind::kFileEnd, at, cuts.at(at)});
    return frame;
  }
  event::Batch Examples(uint64_t from, uint64_t to) const {
    event::Batch batch;
    batch.dense_width = 1;
    batch.slots = 1;
    for (uint64_t offset = from; offset < to; ++offset) {
      if (dead.contains(offset)) continue;
      batch.offset.push_back(offset);
      batch.timestamp_ms.push_back(0);
      batch.label.push_back(1);
      batch.dense.push_back(static_cast<float>(offset));
      batch.row.push_back(offset * 2);
      batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
    }
    return batch;
  }
};

// A step, for comparison.
struct Step {
  OffsetRange range;
  std::vector<uint64_t> offsets;
  std::vector<std::string> cuts;
  uint64_t number = 0;
  friend bool operator==(const Step&, const Step&) = default;
};

// Collects steps. `parts`: the offsets of previews since the last step; if null, none may come.
Participation::Emit Into(std::vector<Step>* steps, std::vector<uint64_t>* parts = nullptr) {
  return [steps, parts](StepBatch&& step) {
    EXPECT_EQ(step.units, step.examples.size());
    EXPECT_EQ(step.examples.slots, 1u);
    for (uint32_t i = 0; i < step.units; ++i) {
      EXPECT_EQ(step.unit_of[i], i);
      EXPECT_EQ(step.examples.Slot(i, 0)[0], step.examples.offset[i] * 2);
    }
    EXPECT_EQ(step.after.next.size(), 1u);
    if (parts != nullptr && step.kind == StepBatch::Kind::kPreview) {
      EXPECT_THAT(step.ranges, IsEmpty()) << "it is charged with its step";
      if (!steps->empty()) {
        EXPECT_EQ(step.after.next[0].begin, steps->back().range.end) << "a crash reads it again";
        EXPECT_EQ(step.after.step, steps->back().number);
      }
      EXPECT_THAT(step.examples.offset, Not(IsEmpty()));
      parts->insert(parts->end(), step.examples.offset.begin(), step.examples.offset.end());
      return true;
    }
    EXPECT_EQ(step.kind, StepBatch::Kind::kOnce);
    EXPECT_EQ(step.ranges.size(), 1u);
    EXPECT_EQ(step.after.next[0].begin, step.ranges[0].end);
    EXPECT_EQ(step.after.period_start[0].begin, 0u);
    EXPECT_EQ(step.after.period, 3u);
    Step& seen = steps->emplace_back();
    seen.range = step.ranges[0];
    if (parts != nullptr) seen.offsets = std::exchange(*parts, {});
    seen.offsets.insert(seen.offsets.end(), step.examples.offset.begin(),
                        step.examples.offset.end());
    seen.number = step.after.step;
    for (const auto& cut : step.cuts) seen.cuts.push_back(cut.name);
    return true;
  };
}

Position StartAt(uint64_t offset, uint64_t step) {
  return {.period = 3, .period_start = {{0, 0, 0}}, .next = {{0, offset, offset}}, .step = step};
}

// Steps by their definition, all at once.
std::vector<Step> NaiveSteps(const Stream& stream, uint64_t per_step, uint64_t first_step,
                             uint64_t opening = 0, uint64_t growing_from = 0,
                             uint32_t files_per_step = 1) {
  // Sizes of all steps from the very first one on.
  std::vector<uint64_t> sizes;
  if (opening > 0) sizes.push_back(opening);
  for (uint64_t size = growing_from; growing_from > 0 && size < per_step;
       size = std::max(size + 1, size * 5 / 4))
    sizes.push_back(size);
  std::vector<Step> steps;
  for (uint64_t begin = stream.begin; begin < stream.end;) {
    const uint64_t number = first_step + steps.size();
    uint64_t end = std::min(begin + (number < sizes.size() ? sizes[number] : per_step), stream.end);
    auto cut = stream.cuts.upper_bound(begin);
    for (uint32_t ended = 1; ended < files_per_step && cut != stream.cuts.end(); ++ended) ++cut;
    if (cut != stream.cuts.end()) end = std::min(end, cut->first);
    const bool at_cut = cut != stream.cuts.end() && cut->first == end;
    Step& step = steps.emplace_back();
    step.range = {0, begin, end};
    step.number = first_step + steps.size();
    for (uint64_t offset = begin; offset < end; ++offset)
      if (!stream.dead.contains(offset)) step.offsets.push_back(offset);
    if (at_cut) step.cuts.push_back(cut->second);
    begin = end;
  }
  return steps;
}

TEST(OnceTest, StepsAreTheSameHoweverTheFramesAreCut) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    Stream stream;
    stream.begin = random() % 50;
    stream.end = stream.begin + random() % 400;
    const uint64_t per_step = 1 + random() % 40;
    const double share_dead = random() % 4 == 0 ? 0.9 : 0.1;
    for (uint64_t o = stream.begin; o < stream.end; ++o) {
      if (std::uniform_real_distribution<>()(random) < share_dead) stream.dead.insert(o);
      if (random() % 30 == 0 && o > stream.begin) stream.cuts[o] = "file" + std::to_string(o);
    }
    if (random() % 2 == 0 && stream.end > stream.begin) stream.cuts[stream.end] = "last";

    std::vector<Step> steps;
    std::vector<uint64_t> parts;  // in a third of the rounds, steps come whole
    const uint64_t per_part = random() % 3 * (1 + random() % 20);
    const auto into = Into(&steps, per_part > 0 ? &parts : nullptr);
    // Learners at their very beginning, half of them with an opening, and others.
    const uint64_t first_step = random() % 2 * (1 + random() % 20),
                   opening = random() % 2 * (1 + random() % 40),
                   growing = random() % 2 * (1 + random() % 50);
    const auto files = static_cast<uint32_t>(1 + random() % 2 * (random() % 4));
    const auto once = MakeOnceParticipation({.offsets_per_step = per_step,
                                             .start = StartAt(stream.begin, first_step),
                                             .opening_offsets = opening,
                                             .growing_from = growing,
                                             .files_per_step = files,
                                             .offsets_per_part = per_part});
    const uint64_t frame_max = 1 + random() % 100;
    for (uint64_t at = stream.begin; at < stream.end;) {
      const uint64_t to = std::min(stream.end, at + 1 + random() % frame_max);
      const bool late_cut = stream.cuts.contains(to) && random() % 2 == 0;
      ASSERT_TRUE(once->Cut(stream.Frame(at, to, !late_cut), stream.Examples(at, to), into));
      if (late_cut) {
        ASSERT_TRUE(once->Cut(stream.CutOnly(to), stream.Examples(to, to), into));
      }
      at = to;
    }
    ASSERT_TRUE(once->Finish(into));
    ASSERT_EQ(steps, NaiveSteps(stream, per_step, first_step, opening, growing, files))
        << "round " << round;
  }
}

// Stopping after any step and going on from its position gives the same steps: an opening comes
// once, and so does each length of those that grow.
void GoingOnGivesTheSameSteps(uint64_t opening, uint64_t growing, uint32_t files) {
  constexpr uint64_t kPerStep = 27;
  Stream stream;
  stream.end = 200;
  stream.dead = {3, 4, 5, 6, 7, 8, 50};
  for (const uint64_t cut : {10, 20, 33, 66, 70, 100, 111, 150, 154, 200})
    stream.cuts[cut] = "file" + std::to_string(cut);
  const std::vector<Step> whole = NaiveSteps(stream, kPerStep, 0, opening, growing, files);
  for (size_t done = 0; done < whole.size(); ++done) {
    Stream rest = stream;
    rest.begin = done == 0 ? 0 : whole[done - 1].range.end;
    std::vector<Step> steps;
    const auto once = MakeOnceParticipation({.offsets_per_step = kPerStep,
                                             .start = StartAt(rest.begin, done),
                                             .opening_offsets = opening,
                                             .growing_from = growing,
                                             .files_per_step = files});
    ASSERT_TRUE(once->Cut(rest.Frame(rest.begin, stream.end, true),
                          rest.Examples(rest.begin, stream.end), Into(&steps)));
    ASSERT_TRUE(once->Finish(Into(&steps)));
    EXPECT_TRUE(std::equal(steps.begin(), steps.end(), whole.begin() + static_cast<ptrdiff_t>(done),
                           whole.end()));
  }
}
TEST(OnceTest, GoingOnFromAPositionGivesTheSameSteps) {
  for (const uint64_t opening : {0, 3, 40})
    for (const uint64_t growing : {0, 1, 4, 9})
      for (const uint32_t files : {1, 2, 3}) GoingOnGivesTheSameSteps(opening, growing, files);
}

TEST(OnceTest, AStepWithoutSurvivorsIsAStep) {
  Stream stream;
  stream.end = 20;
  for (uint64_t o = 5; o < 10; ++o) stream.dead.insert(o);
  std::vector<Step> steps;
  const auto once = MakeOnceParticipation({5, StartAt(0, 0)});
  ASSERT_TRUE(once->Cut(stream.Frame(0, 20, true), stream.Examples(0, 20), Into(&steps)));
  ASSERT_TRUE(once->Finish(Into(&steps)));
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_THAT(steps[1].offsets, IsEmpty());
  EXPECT_EQ(steps[1].range, (OffsetRange{0, 5, 10}));
}

TEST(OnceTest, EmptyFilesMakeNoSteps) {
  Stream stream;
  stream.end = 4;
  stream.cuts = {{0, "nothing"}, {4, "a"}};
  std::vector<Step> steps;
  const auto once = MakeOnceParticipation({100, StartAt(0, 0)});
  ASSERT_TRUE(once->Cut(stream.CutOnly(0), stream.Examples(0, 0), Into(&steps)));
  ASSERT_TRUE(once->Cut(stream.Frame(0, 4, true), stream.Examples(0, 4), Into(&steps)));
  ASSERT_TRUE(once->Cut(stream.CutOnly(4), stream.Examples(4, 4), Into(&steps)));
  ASSERT_TRUE(once->Finish(Into(&steps)));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_THAT(steps[0].cuts, ElementsAre("a"));
}

TEST(OnceTest, NothingIsEmittedAfterEmitSaysStop) {
  Stream stream;
  stream.end = 100;
  const auto once = MakeOnceParticipation({10, StartAt(0, 0)});
  int emitted = 0;
  EXPECT_FALSE(once->Cut(stream.Frame(0, 100, true), stream.Examples(0, 100),
                         [&](StepBatch&&) { return ++emitted < 3; }));
  EXPECT_EQ(emitted, 3);
}

TEST(OnceTest, PartitionsAreCutEachByItsOwn) {
  Stream stream;
  stream.end = 12;
  const auto once = MakeOnceParticipation({5, {}});
  std::vector<std::pair<OffsetRange, std::vector<OffsetRange>>> seen;
  const auto emit = [&](StepBatch&& step) {
    seen.emplace_back(step.ranges[0], step.after.next);
    EXPECT_EQ(step.examples.partition, step.ranges[0].partition);
    return true;
  };
  for (const int32_t partition : {4, 2}) {
    event::RawRecords frame = stream.Frame(0, 12, false);
    event::Batch examples = stream.Examples(0, 12);
    frame.partition = examples.partition = partition;
    ASSERT_TRUE(once->Cut(frame, examples, emit));
  }
  ASSERT_TRUE(once->Finish(emit));
  ASSERT_EQ(seen.size(), 6u);
  EXPECT_EQ(seen[2].first, (OffsetRange{2, 0, 5}));
  EXPECT_THAT(seen[2].second, ElementsAre(OffsetRange{4, 10, 10}, OffsetRange{2, 5, 5}));
  EXPECT_THAT(seen[5].second, ElementsAre(OffsetRange{4, 12, 12}, OffsetRange{2, 12, 12}));
}

TEST(OnceDeathTest, RecordsThatComeAgainAreAProgrammersError) {
  Stream stream;
  stream.end = 10;
  const auto once = MakeOnceParticipation({5, StartAt(3, 0)});
  const auto ignore = [](StepBatch&&) { return true; };
  EXPECT_DEATH(once->Cut(stream.Frame(2, 4, false), stream.Examples(2, 4), ignore), "repeated");
}

// Markers of transactions and compaction leave offsets without records: steps are the same as if
// these had been there and could not be decoded.
TEST(OnceTest, HolesInTheOffsetsDoNotMoveSteps) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    Stream stream;
    stream.end = 300;
    const uint64_t per_step = 1 + random() % 40;
    std::vector<Step> steps;
    const auto once = MakeOnceParticipation({per_step, StartAt(0, 0)});
    for (uint64_t at = 0; at < stream.end;) {
      const uint64_t to = std::min(stream.end, at + 1 + random() % 30);
      const bool hole = random() % 3 == 0 && to < stream.end;
      if (hole) {
        for (uint64_t o = at; o < to; ++o) stream.dead.insert(o);
      } else {
        ASSERT_TRUE(once->Cut(stream.Frame(at, to, false), stream.Examples(at, to), Into(&steps)));
      }
      at = to;
    }
    ASSERT_TRUE(once->Finish(Into(&steps)));
    ASSERT_EQ(steps, NaiveSteps(stream, per_step, 0)) << "round " << round;
  }
}

event::RawRecords CutAt(int32_t partition, uint64_t offset, event::PublicCut::Kind kind) {
  event::RawRecords frame;
  frame.partition = partition;
  frame.first_offset = offset;
  frame.cuts.push_back({kind, offset, ""});
  return frame;
}

TEST(OnceTest, AFullStepWaitsForNothingWhereNoCutCanCome) {
  Stream stream;
  stream.end = 20;
  for (const bool at_once : {false, true}) {
    std::vector<Step> steps;
    const auto once = MakeOnceParticipation(
        {.offsets_per_step = 5, .start = StartAt(0, 0), .full_at_once = at_once});
    ASSERT_TRUE(once->Cut(stream.Frame(0, 10, false), stream.Examples(0, 10), Into(&steps)));
    EXPECT_EQ(steps.size(), at_once ? 2u : 1u);
  }
}

// A step that is not full holds no more than a part.
TEST(OnceTest, PartsLeaveAsTheyAreFull) {
  Stream stream;
  stream.end = 100;
  std::vector<Step> steps;
  std::vector<uint64_t> parts;
  const auto once = MakeOnceParticipation(
      {.offsets_per_step = 100, .start = StartAt(0, 0), .offsets_per_part = 20});
  for (uint64_t at = 0; at < 100; at += 10) {
    ASSERT_TRUE(once->Cut(stream.Frame(at, at + 10, false), stream.Examples(at, at + 10),
                          Into(&steps, &parts)));
    EXPECT_EQ(parts.size(), at == 90 ? 80u : (at + 10) / 20 * 20) << "a full step is no part";
  }
  ASSERT_TRUE(once->Finish(Into(&steps, &parts)));
  EXPECT_EQ(steps, NaiveSteps(stream, 100, 0));
}

TEST(OnceTest, ATickClosesAStepWhateverFilesItIsMadeOf) {
  Stream stream;
  stream.end = 20;
  std::vector<Step> steps;
  const auto once =
      MakeOnceParticipation({.offsets_per_step = 100, .start = StartAt(0, 0), .files_per_step = 3});
  const auto tick = [&](uint64_t at) {
    return once->Cut(CutAt(0, at, event::PublicCut::Kind::kClockTick), stream.Examples(0, 0),
                     Into(&steps));
  };
  ASSERT_TRUE(tick(0));
  ASSERT_TRUE(once->Cut(stream.Frame(0, 7, false), stream.Examples(0, 7), Into(&steps)));
  ASSERT_TRUE(tick(7));
  ASSERT_TRUE(tick(7));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].range, (OffsetRange{0, 0, 7}));
}

TEST(OnceTest, WhatIsLostIsInTheStepItCutsShort) {
  Stream stream;
  stream.end = 1000;
  std::vector<Step> steps;
  const auto once = MakeOnceParticipation({10, StartAt(0, 0)});
  ASSERT_TRUE(once->Cut(stream.Frame(0, 14, false), stream.Examples(0, 14), Into(&steps)));
  ASSERT_TRUE(
      once->Cut(CutAt(0, 990, event::PublicCut::Kind::kLost), stream.Examples(0, 0), Into(&steps)));
  ASSERT_TRUE(once->Cut(stream.Frame(990, 1000, false), stream.Examples(990, 1000), Into(&steps)));
  ASSERT_TRUE(once->Finish(Into(&steps)));
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1].range, (OffsetRange{0, 10, 990}));
  EXPECT_THAT(steps[1].offsets, ElementsAre(10, 11, 12, 13));
  EXPECT_EQ(steps[2].range, (OffsetRange{0, 990, 1000}));
}

// Records of all partitions come as they come; an idle one holds up no other.
TEST(OnceTest, AnIdlePartitionHoldsNoOtherBack) {
  Stream stream;
  stream.end = 1000;
  const auto once =
      MakeOnceParticipation({.offsets_per_step = 10, .start = {}, .full_at_once = true});
  uint64_t steps = 0;
  const auto emit = [&](StepBatch&& step) {
    EXPECT_EQ(step.ranges[0].partition, 1);
    EXPECT_EQ(step.after.next[0], (OffsetRange{0, 0, 0})) << "where the idle one began";
    ++steps;
    return true;
  };
  event::RawRecords frame = stream.Frame(0, 3, false);
  ASSERT_TRUE(once->Cut(frame, stream.Examples(0, 3), emit));
  for (uint64_t at = 0; at < 1000; at += 50) {
    frame = stream.Frame(at, at + 50, false);
    frame.partition = 1;
    ASSERT_TRUE(once->Cut(frame, stream.Examples(at, at + 50), emit));
  }
  EXPECT_EQ(steps, 100u);
}

}  // namespace
}  // namespace tacit::stream
