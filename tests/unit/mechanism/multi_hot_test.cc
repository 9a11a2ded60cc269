// Slots of several ids, with repeats, through the click model and every selector: a row that occurs
// several times in a unit is one row, its gradients are added before the norm is taken, and rows
// come out ascending. Without noise, against float64 loops.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "mechanism/choice/choice.h"
#include "mechanism/private_step.h"
#include "model/pctr.h"
#include "model/sum_blocks.h"
#include "support/silent_noise.h"
#include "unit/model/loop_model.h"

namespace tacit::mechanism {
namespace {

using model::testing::LoopGradient;
using model::testing::Problem;
using model::testing::SquaredLength;

constexpr double kClip = 0.7, kBatch = 4;
constexpr double kScoreClip = 20;  // above most norms, so that scores differ

using RowSet = std::vector<uint64_t>;

// The rows of the vocabulary: some touched, some not.
RowSet Inside(const RowSpace& space) {
  RowSet inside;
  for (uint64_t row = 0; row < space.rows(); row += 2) inside.push_back(row);
  return inside;
}

// RowSet whose clipped counts reach the threshold, each unit's rows inside counted once.
std::set<uint64_t> LoopThreshold(const std::vector<LoopGradient>& units, double threshold,
                                 const RowSet& inside) {
  const std::set<uint64_t> within(inside.begin(), inside.end());
  std::map<uint64_t, double> map;
  for (const LoopGradient& unit : units) {
    double active = 0;
    for (const auto& [row, values] : unit.rows) active += within.contains(row);
    for (const auto& [row, values] : unit.rows)
      if (within.contains(row)) map[row] += 1 / std::sqrt(active);
  }
  std::set<uint64_t> kept;
  for (const auto& [row, count] : map)
    if (count >= threshold) kept.insert(row);
  return kept;
}

std::set<uint64_t> LoopTop(const std::vector<LoopGradient>& units, size_t k) {
  std::map<uint64_t, double> score;
  for (const LoopGradient& unit : units)
    for (const auto& [row, values] : unit.rows)
      score[row] += std::min(std::sqrt(SquaredLength(values)), kScoreClip);
  std::vector<std::pair<double, uint64_t>> order;
  for (const auto& [row, value] : score) order.emplace_back(value, row);
  std::sort(order.rbegin(), order.rend());
  std::set<uint64_t> kept;
  for (size_t i = 0; i < std::min(k, order.size()); ++i) kept.insert(order[i].second);
  return kept;
}

// Masked, clipped, summed, divided.
LoopGradient LoopUpdate(const std::vector<LoopGradient>& units, const std::set<uint64_t>& kept) {
  LoopGradient update;
  for (LoopGradient unit : units) {
    std::erase_if(unit.rows, [&](const auto& row) { return !kept.contains(row.first); });
    double squared = SquaredLength(unit.dense);
    for (const auto& [row, values] : unit.rows) squared += SquaredLength(values);
    constexpr double kRoom = kClip * (1 - model::kSumError);
    update.Add(unit, std::min(1.0, kRoom / std::sqrt(squared)) / kBatch);
  }
  return update;
}

class MultiHot : public ::testing::Test {
 protected:
  // The largest difference between the mechanism's update and the loops', on dense and rows.
  double Difference(const Problem& problem, std::unique_ptr<RowSelector> selector,
                    const std::set<uint64_t>& kept) {
    model::Pctr model(problem.ModelOptions(), *backend_);
    const model::Examples examples = problem.View();
    std::vector<float> logits(examples.size), loss(examples.size);
    EXPECT_TRUE(model.Forward(examples, problem.dense_parameters, problem.rows, logits));
    EXPECT_TRUE(model.Backward(examples, problem.dense_parameters, loss));
    const auto mechanism =
        MakePrivateStep(problem.model.space, std::move(selector), MakeFlatClipper(kClip, 1),
                        {.sigma_gradient = 1, .expected_batch = kBatch});
    std::vector<double> scores;
    if (mechanism->row_score_clip() > 0) {
      scores.resize(problem.activations.rows.size());
      model.RowScores(examples, problem.activations, mechanism->row_score_clip(), scores);
    }
    noise::SilentNoise none;
    model::RowSelection selection;
    model::StepGradient gradient;
    model::GroupNorms norms;
    mechanism->Select({.activations = problem.activations, .scores = scores}, none, &selection);
    EXPECT_TRUE(model.ClippedSum(examples, problem.activations, selection, mechanism->scale_rule(),
                                 &gradient, &norms));
    mechanism->Finalize(none, norms, &gradient);

    EXPECT_EQ(
        std::adjacent_find(gradient.rows.begin(), gradient.rows.end(), std::greater_equal<>()),
        gradient.rows.end());
    const LoopGradient want = LoopUpdate(problem.UnitGradients(), kept);
    double difference = 0;
    for (size_t i = 0; i < want.dense.size(); ++i)
      difference = std::max(difference, std::abs(gradient.dense[i] - want.dense[i]));
    // A row that is not written should have had nothing to add.
    for (const auto& [row, values] : want.rows)
      if (!std::binary_search(gradient.rows.begin(), gradient.rows.end(), row))
        difference = std::max(difference, std::sqrt(SquaredLength(values)));
    for (size_t i = 0; i < gradient.rows.size(); ++i) {
      const auto found = want.rows.find(gradient.rows[i]);
      const auto values = gradient.Row(i);
      for (size_t c = 0; c < values.size(); ++c)
        difference = std::max(
            difference, std::abs(values[c] - (found == want.rows.end() ? 0.0 : found->second[c])));
    }
    return difference;
  }

  // Units of several examples, multi-hot slots with repeats.
  static Problem Make(uint64_t seed) { return Problem(seed, {.examples = 24}); }
  static RowSet Every(const RowSpace& space) {
    RowSet rows(space.rows());
    std::iota(rows.begin(), rows.end(), 0u);
    return rows;
  }

  WorkerPool workers_{WorkerPool::Options{}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
};

constexpr double kClose = 2e-5;

TEST_F(MultiHot, AllRows) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = Make(seed);
    const RowSet every = Every(problem.model.space);
    EXPECT_LT(Difference(problem, MakeAllRows(), {every.begin(), every.end()}), kClose) << seed;
  }
}

TEST_F(MultiHot, VocabularyRows) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = Make(seed);
    const RowSpace& space = problem.model.space;
    const RowSet inside = Inside(space);
    auto vocabulary =
        MakeVocabulary(space, {.source = VocabularyOptions::Source::kPublic, .rows = inside});
    EXPECT_LT(Difference(problem, MakeVocabularyRows(std::move(vocabulary)),
                         {inside.begin(), inside.end()}),
              kClose)
        << seed;
  }
}

TEST_F(MultiHot, ThresholdRowsInAndOutsideAVocabulary) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = Make(seed);
    const RowSpace& space = problem.model.space;
    const ThresholdOptions options{.sigma = 1, .clip = 1, .threshold = 1.1};
    const auto units = problem.UnitGradients();
    EXPECT_LT(Difference(problem, MakeThresholdRows(space, options),
                         LoopThreshold(units, options.threshold, Every(space))),
              kClose)
        << seed;
    auto vocabulary = MakeVocabulary(
        space, {.source = VocabularyOptions::Source::kPublic, .rows = Inside(space)});
    EXPECT_LT(Difference(problem, MakeThresholdRows(space, options, std::move(vocabulary)),
                         LoopThreshold(units, options.threshold, Inside(space))),
              kClose)
        << seed;
  }
}

TEST_F(MultiHot, ExponentialRows) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = Make(seed);
    // Gumbels far smaller than the scores.
    EXPECT_LT(Difference(problem,
                         MakeExponentialRows(problem.model.space,
                                             {.rows = 5, .epsilon = 1e6, .clip = kScoreClip}),
                         LoopTop(problem.UnitGradients(), 5)),
              kClose)
        << seed;
  }
}

// The comparison finds a row that is counted, or whose gradients are added up, per occurrence.
TEST_F(MultiHot, OccurrencesTakenApartAreFoundOut) {
  double apart = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = Make(seed);
    std::vector<LoopGradient> examples;
    for (size_t i = 0; i < problem.label.size(); ++i)
      examples.push_back(model::testing::LoopBackward(problem.model, problem.Example(i),
                                                      problem.Dense(), problem.RowMap()));
    // Kept as if every example were a unit.
    apart = std::max(
        apart,
        Difference(problem, MakeThresholdRows(problem.model.space, {.sigma = 1, .threshold = 1.1}),
                   LoopThreshold(examples, 1.1, Every(problem.model.space))));
    if (apart > 100 * kClose) return;
  }
  FAIL() << "no difference beyond " << apart;
}

}  // namespace
}  // namespace tacit::mechanism
