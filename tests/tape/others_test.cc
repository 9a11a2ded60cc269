// The records of others do not move a unit's part of any noised sum. Two runs are given the same
// of all that leaves, so that their models are the same at every step; in the second the unit is
// alone. Where sums are integers its part is the same to the last bit.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/bf16.h"
#include "tape/records.h"
#include "tape/run.h"
#include "tape/spoilt_noise.h"

namespace tacit::tape {
namespace {

using privacy::ParticipationMode;
using privacy::Query;
using testing::IsEmpty;

constexpr uint64_t kRuns = 2;  // of each case

// A choice by score has no sum; a representation is a record's own. Learners of histories draw
// their samples one unit after the other, so that one unit fewer is another sample.
bool HasSumsToCompare(const Case& tried) {
  return tried.query != Query::kRowChoice && tried.query != Query::kTopRows &&
         tried.query != Query::kRepresentation &&
         !(tried.of_items() && tried.mode == ParticipationMode::kPoisson);
}

// A click model's dense part is added up in floats, in blocks: a unit's part of it may lie this far
// off, in parts of its bound (docs/internals/model.md).
double SlackOf(const Case& tried) {
  const bool floats = !tried.of_items() && tried.query != Query::kPeriodSums;
  return floats ? 0.008 : 0;
}

void LeaveAlone(const Canary& unit, stream::StepBatch* step) {
  stream::StepBatch alone = *step;
  alone.examples = event::EmptyLike(step->examples);
  alone.unit_of.clear();
  alone.sum_block_end.clear();
  alone.units = 0;
  uint32_t last = 0;
  for (size_t i = 0; i < step->examples.size(); ++i) {
    if (!unit.Has(step->examples, i)) continue;
    if (alone.units == 0 || step->unit_of[i] != last) ++alone.units;
    last = step->unit_of[i];
    alone.unit_of.push_back(alone.units - 1);
    alone.examples.AppendRange(step->examples, i, i + 1);
  }
  *step = std::move(alone);
}

// Adds units that have all rows and all numbers, so that the runs ask about the same ones.
void CoverRows(const Subject& subject, stream::StepBatch* step) {
  if (step->preview() || subject.tried().of_items()) return;
  const std::span<const RowSpace::Table> tables =
      subject.assembly().transform->row_space().tables();
  event::Batch cover = event::EmptyLike(step->examples);
  for (uint64_t i = 0; i < subject.tried().buckets; ++i) {
    cover.offset.push_back(kOffsets + 1 + i);
    cover.timestamp_ms.push_back(0);
    cover.label.push_back(static_cast<float>(i % 2));
    cover.dense.insert(cover.dense.end(), cover.dense_width, static_cast<float>(NumberOf(i)));
    for (const RowSpace::Table& table : tables) {
      cover.row.push_back(table.first + i % table.rows);
      cover.slot_end.push_back(static_cast<uint32_t>(cover.row.size()));
    }
    cover.user.Append(fmt::format("cover-{}", i));
    step->unit_of.push_back(step->units++);
  }
  step->examples.AppendRange(cover, 0, cover.size());
  if (!step->sum_block_end.empty())
    step->sum_block_end.back() = static_cast<uint32_t>(step->examples.size());
}

// Both runs, read.
struct BothRuns {
  Reading beside, alone;

  // The largest distance between the unit's parts of a query, in parts of its bound.
  double Farthest() const {
    double most = 0;
    EXPECT_EQ(beside.parts.size(), alone.parts.size());
    for (size_t s = 0; s < std::min(beside.parts.size(), alone.parts.size()); ++s) {
      const std::vector<UnitsPart>&a = beside.parts[s], &b = alone.parts[s];
      EXPECT_EQ(a.size(), b.size()) << "step " << s;
      for (size_t p = 0; p < std::min(a.size(), b.size()); ++p)
        most = std::max(most, Apart(a[p], b[p]));
    }
    return most;
  }
  bool Moves() const {
    return std::ranges::any_of(beside.parts, [](const std::vector<UnitsPart>& step) {
      return std::ranges::any_of(step, [](const UnitsPart& part) {
        return std::ranges::any_of(part.moved, [](int64_t steps) { return steps != 0; });
      });
    });
  }

 private:
  static double Apart(const UnitsPart& a, const UnitsPart& b) {
    EXPECT_EQ(a.query, b.query);
    EXPECT_EQ(a.moved.size(), b.moved.size());
    double squared = 0;
    for (size_t i = 0; i < std::min(a.moved.size(), b.moved.size()); ++i)
      squared += std::pow(static_cast<double>(a.moved[i] - b.moved[i]), 2);
    return squared == 0 ? 0 : std::sqrt(squared) / a.bound;
  }
};

BothRuns Read(const Subject& subject, uint64_t seed, const Planted& fault = {}) {
  const Canary unit = Records(subject, seed).unit();
  const auto run = [&](bool is_alone, const std::vector<lab::TwinNoise>* leads) {
    Planted planted = fault;
    planted.leads = leads;
    planted.step = [&, is_alone](stream::StepBatch* step) {
      if (is_alone) LeaveAlone(unit, step);
      if (fault.step) fault.step(step);
      CoverRows(subject, step);
    };
    return ReadTape(subject, seed, planted);
  };
  BothRuns runs{.beside = run(false, nullptr), .alone = {}};
  runs.alone = run(true, &runs.beside.tapes);
  return runs;
}

TEST(Others, DoNotMoveAUnitsPartOfAnySum) {
  for (const Case& tried : AllCases()) {
    if (!HasSumsToCompare(tried)) continue;
    SCOPED_TRACE(tried.name());
    const Subject subject(tried);
    uint64_t moved = 0;
    for (uint64_t seed = 1; seed <= kRuns; ++seed) {
      SCOPED_TRACE(fmt::format("seed {}", seed));
      const BothRuns runs = Read(subject, seed);
      EXPECT_THAT(runs.beside.wrong, IsEmpty());
      EXPECT_THAT(runs.alone.wrong, IsEmpty());
      EXPECT_LE(runs.Farthest(), SlackOf(tried));
      moved += runs.Moves() ? 1 : 0;
    }
    EXPECT_GT(moved, 0u) << "no run shows the unit at all";
  }
}

// The sums go through bf16. (A float holds the counts of a few units exactly.)
class SumsInFloats final : public Spoilt {
 public:
  using Spoilt::Spoilt;
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    for (int64_t& value : values)
      value = static_cast<int64_t>(ops::FromBf16(ops::ToBf16(static_cast<float>(value))));
    Spoilt::AddGridGaussian(stddev, values);
  }
};

TEST(Others, SumsInFloatsAreSeen) {
  for (const Query query : {Query::kSequenceGradient, Query::kPeriodCounts, Query::kPeriodSums}) {
    SCOPED_TRACE(privacy::Name(query));
    const Subject subject(CaseOf(query));
    double farthest = 0;
    for (uint64_t seed = 1; seed <= kRuns; ++seed)
      farthest = std::max(farthest, Read(subject, seed, With<SumsInFloats>()).Farthest());
    EXPECT_GT(farthest, 0);
  }
}

// A step has room for a few records, and those of others take it.
void KeepFirst(size_t most, stream::StepBatch* step) {
  if (step->preview() || step->examples.size() <= most) return;
  event::Batch kept = event::EmptyLike(step->examples);
  kept.AppendRange(step->examples, 0, most);
  step->examples = std::move(kept);
  step->unit_of.resize(most);
  step->units = step->unit_of.back() + 1;
  step->sum_block_end.clear();
}

TEST(Others, RecordsThatTakeAUnitsRoomAreSeen) {
  const Subject subject(CaseOf(Query::kGradient));
  double farthest = 0;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    const BothRuns runs = Read(subject, seed, {.step = [](auto* step) { KeepFirst(4, step); }});
    farthest = std::max(farthest, runs.Farthest());
  }
  EXPECT_GT(farthest, 0.1);
}

}  // namespace
}  // namespace tacit::tape
