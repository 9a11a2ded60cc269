// Blocks of the dense sum: their pieces, and what they are for. A unit moves the step's integers by
// its scaled length, by rounding and by kSumError at most, beside any other units.
#include "model/sum_blocks.h"

#include <gtest/gtest.h>

#include <numeric>

#include "pctr_step.h"
#include "scale_rules.h"

namespace tacit::model {
namespace {

using testing::Problem;
using testing::StepResult;

// Ends of this many runs of up to `longest`.
std::vector<uint32_t> RandomEnds(size_t runs, uint32_t longest, std::mt19937_64& random) {
  std::vector<uint32_t> ends;
  for (uint32_t end = 0; ends.size() < runs;) ends.push_back(end += random() % (longest + 1));
  return ends;
}

TEST(CutSums, PiecesCoverBlocksAndKeepTheBound) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(trial);
    const auto unit_end = RandomEnds(1 + random() % 400, trial % 4 == 0 ? 1 : 5, random);
    std::vector<uint32_t> block_end;
    for (const uint32_t end : unit_end)
      if (random() % 50 == 0 || end == unit_end.back()) block_end.push_back(end);
    ops::SumPieces pieces;
    CutSums(block_end, unit_end, &pieces);
    std::vector<uint32_t> closed;
    for (size_t p = 0, first = 0; p < pieces.end.size(); first = pieces.end[p++]) {
      if (pieces.closes[p] != 0) closed.push_back(pieces.end[p]);
      ASSERT_LT(first, pieces.end[p]);
      const size_t rows = pieces.end[p] - first;
      ASSERT_LE(rows, kSumRows);
      // The lengths of the piece's block, counted anew.
      const auto block = std::ranges::upper_bound(block_end, first);
      const uint32_t begin = block == block_end.begin() ? 0 : *(block - 1);
      double clips = 0;
      for (size_t u = 0; u < unit_end.size(); ++u) {
        const uint32_t from = u == 0 ? 0 : unit_end[u - 1];
        if (from < begin || unit_end[u] > *block || unit_end[u] == from) continue;
        clips += unit_end[u] - from > 1 ? kRowsOverNorm : 1;
      }
      ASSERT_TRUE(rows == 1 || 2 * 0x1p-24 * static_cast<double>(rows) * clips <= kSumError);
    }
    std::erase(block_end, 0u);
    block_end.erase(std::ranges::unique(block_end).begin(), block_end.end());
    EXPECT_EQ(closed, block_end);
  }
}

TEST(CutSums, OneRowEachIsOnePieceOf256) {
  std::vector<uint32_t> unit_end(600);
  std::iota(unit_end.begin(), unit_end.end(), 1u);
  ops::SumPieces pieces;
  CutSums(std::vector<uint32_t>{256, 512, 600}, unit_end, &pieces);
  EXPECT_EQ(pieces.end, (std::vector<uint32_t>{256, 512, 600}));
  EXPECT_EQ(pieces.closes, (std::vector<uint8_t>{1, 1, 1}));
}

TEST(CutSumsDeathTest, AUnitIsInOneBlock) {
  ops::SumPieces pieces;
  const std::vector<uint32_t> unit_end{2, 4}, block_end{3, 4};
  EXPECT_DEATH(CutSums(block_end, unit_end, &pieces), "one block");
}

// The problem without a unit's examples; the others keep their numbers as units.
Problem Without(Problem problem, uint32_t unit) {
  const size_t slots = problem.model.space.tables().size(), width = problem.model.dense_width;
  Problem left = problem;
  left.unit_of.clear();
  left.slot_end.clear();
  left.label.clear();
  left.dense.clear();
  left.row.clear();
  for (size_t i = 0; i < problem.label.size(); ++i) {
    if (problem.unit_of[i] == unit) continue;
    left.unit_of.push_back(problem.unit_of[i]);
    left.label.push_back(problem.label[i]);
    left.dense.insert(left.dense.end(), problem.dense.begin() + static_cast<ptrdiff_t>(i * width),
                      problem.dense.begin() + static_cast<ptrdiff_t>((i + 1) * width));
    for (size_t cell = i * slots; cell < (i + 1) * slots; ++cell) {
      left.row.insert(
          left.row.end(),
          problem.row.begin() + static_cast<ptrdiff_t>(cell == 0 ? 0 : problem.slot_end[cell - 1]),
          problem.row.begin() + static_cast<ptrdiff_t>(problem.slot_end[cell]));
      left.slot_end.push_back(static_cast<uint32_t>(left.row.size()));
    }
  }
  left.Index();
  return left;
}

std::vector<int64_t> DenseSums(const Problem& problem, uint32_t units_each, const ScaleRule& rule,
                               ops::Precision precision, ops::Backend& backend, GroupNorms* norms) {
  Pctr model(problem.ModelOptions(precision), backend);
  Examples examples = problem.View();
  std::vector<uint32_t> block_end;
  for (size_t i = 0; i < examples.size; ++i)
    if (i + 1 == examples.size ||
        examples.unit_of[i] / units_each != examples.unit_of[i + 1] / units_each)
      block_end.push_back(static_cast<uint32_t>(i + 1));
  examples.block_end = block_end;
  examples.apart = true;
  std::vector<float> logits(examples.size), loss(examples.size);
  EXPECT_TRUE(model.Forward(examples, problem.dense_parameters, problem.rows, logits));
  EXPECT_TRUE(model.Backward(examples, problem.dense_parameters, loss));
  StepGradient sum;
  EXPECT_TRUE(model.ClippedSum(examples, problem.activations, testing::KeepAll(problem), rule, &sum,
                               norms));
  return sum.dense_sums;
}

class SumBlocks : public ::testing::TestWithParam<ops::Precision> {
 protected:
  // Returns how far a unit moves the sum beyond its scaled norm and rounding, in clips: the most of
  // all units of some steps whose records are huge and cancel.
  double MostBeyond(uint32_t units_each) {
    constexpr double kClip = 0.5, kStep = 0x1p-31;
    double most = -1;
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      Problem problem(seed, {.examples = 400, .one_example_per_unit = false, .hidden = {8}});
      std::mt19937_64 random(seed);
      for (size_t i = 0; i < problem.label.size(); ++i) {
        const bool pair = i > 0 && problem.unit_of[i] == problem.unit_of[i - 1];
        for (size_t d = 0; d < problem.model.dense_width; ++d) {
          float& number = problem.dense[i * problem.model.dense_width + d];
          if (pair && random() % 2) number = problem.dense[(i - 1) * problem.model.dense_width + d];
          if (random() % 3 == 0) number *= 0x1p12f;
        }
      }
      const testing::FlatClip rule(kClip, kStep);
      GroupNorms norms, unused;
      const auto all = DenseSums(problem, units_each, rule, GetParam(), *backend_, &norms);
      EXPECT_EQ(norms.error, kSumError);
      for (uint32_t unit = 0; unit < problem.units; unit += 7) {
        const auto less =
            DenseSums(Without(problem, unit), units_each, rule, GetParam(), *backend_, &unused);
        double moved = 0, norm = 0;
        for (size_t i = 0; i < all.size(); ++i) moved += std::pow((all[i] - less[i]) * kStep, 2);
        for (size_t g = 0; g < norms.groups; ++g) norm += norms.squared[g * norms.units + unit];
        const double scaled = std::min(kClip, std::sqrt(norm)) * (1 + 1e-6);
        most = std::max(most, (std::sqrt(moved) - scaled - norms.rounding[unit]) / kClip);
      }
    }
    return most;
  }

  WorkerPool pool_{WorkerPool::Options{}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(pool_);
};

TEST_P(SumBlocks, AUnitMovesTheStepByItsLengthAtMost) {
  EXPECT_LE(MostBeyond(40), kSumError);
  EXPECT_LE(MostBeyond(1000), kSumError);  // one block
}

INSTANTIATE_TEST_SUITE_P(Precisions, SumBlocks,
                         ::testing::Values(ops::Precision::kF32, ops::Precision::kBf16),
                         [](const auto& info) {
                           return info.param == ops::Precision::kBf16 ? "Bf16" : "F32";
                         });

}  // namespace
}  // namespace tacit::model
