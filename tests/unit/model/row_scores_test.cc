// Scores of rows against float64 loops that materialise every unit's gradient.
#include <gtest/gtest.h>

#include <limits>

#include "loop_model.h"
#include "model/pctr.h"

namespace tacit::model {
namespace {

using testing::LoopGradient;
using testing::Problem;
using testing::SquaredLength;

std::vector<double> Scores(const Problem& problem, double clip, ops::Backend& backend) {
  Pctr model(problem.ModelOptions(), backend);
  const Examples examples = problem.View();
  std::vector<float> logits(examples.size), loss(examples.size);
  EXPECT_TRUE(model.Forward(examples, problem.dense_parameters, problem.rows, logits));
  EXPECT_TRUE(model.Backward(examples, problem.dense_parameters, loss));
  std::vector<double> scores(problem.activations.rows.size(), -1);
  model.RowScores(examples, problem.activations, clip, scores);
  return scores;
}

// Per row of the activations: sum over `parts` of min(|g[row]|, clip).
std::vector<double> LoopScores(const Problem& problem, const std::vector<LoopGradient>& parts,
                               double clip) {
  std::vector<double> scores;
  for (uint64_t row : problem.activations.rows) {
    double score = 0;
    for (const LoopGradient& part : parts) {
      const auto found = part.rows.find(row);
      if (found != part.rows.end())
        score += std::min(std::sqrt(SquaredLength(found->second)), clip);
    }
    scores.push_back(score);
  }
  return scores;
}

double LargestDifference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]) / (1 + std::abs(b[i])));
  return largest;
}

class RowScores : public ::testing::Test {
 protected:
  WorkerPool one_{WorkerPool::Options{}}, three_{WorkerPool::Options{.workers = 3}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(one_);
};

// Clips below, among and above the norms. Occurrences that are not added up within a unit, and
// units that are clipped together, are found out.
TEST_F(RowScores, AreSumsOfClippedNormsPerUnit) {
  double occurrences_apart = 0, clipped_together = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const Problem problem(seed, {.examples = seed % 40, .one_example_per_unit = seed % 4 == 0});
    const auto units = problem.UnitGradients();
    std::vector<LoopGradient> examples;
    for (size_t i = 0; i < problem.label.size(); ++i)
      examples.push_back(testing::LoopBackward(problem.model, problem.Example(i), problem.Dense(),
                                               problem.RowMap()));
    for (double clip : {0.05, 0.6, 100.0}) {
      const auto scores = Scores(problem, clip, *backend_);
      EXPECT_LT(LargestDifference(scores, LoopScores(problem, units, clip)), 2e-5);
      occurrences_apart = std::max(occurrences_apart,
                                   LargestDifference(scores, LoopScores(problem, examples, clip)));
      auto together = LoopScores(problem, units, 1e9);
      for (double& score : together) score = std::min(score, clip);
      clipped_together = std::max(clipped_together, LargestDifference(scores, together));
    }
  }
  EXPECT_GT(occurrences_apart, 0.01);
  EXPECT_GT(clipped_together, 0.01);
}

TEST_F(RowScores, DoNotDependOnTheWorkers) {
  const auto triple = ops::MakeCpuBackend(three_);
  const Problem problem(5, {.examples = 60});
  EXPECT_EQ(Scores(problem, 0.5, *backend_), Scores(problem, 0.5, *triple));
}

// However long its gradient, a unit adds the clip and no bit more.
TEST_F(RowScores, AUnitAddsAtMostTheClip) {
  for (double clip : {0.1, 1.0 / 3, 1e-6}) {
    Problem problem(7, {.examples = 6, .hidden = {}, .spread = 100});
    for (uint32_t& unit : problem.unit_of) unit = 0;
    problem.units = 1;
    problem.Index();
    const auto scores = Scores(problem, clip, *backend_);
    EXPECT_GT(std::count(scores.begin(), scores.end(), clip), 0);
    for (double score : scores) EXPECT_LE(score, clip);
  }
}

TEST_F(RowScores, AUnitOfNoFiniteNormCountsNothing) {
  Problem problem(9, {.examples = 12, .one_example_per_unit = true});
  problem.dense[0] = std::numeric_limits<float>::infinity();
  const auto scores = Scores(problem, 0.5, *backend_);
  for (double score : scores) EXPECT_TRUE(std::isfinite(score) && score >= 0) << score;
  EXPECT_GT(*std::max_element(scores.begin(), scores.end()), 0);  // the others count
}

}  // namespace
}  // namespace tacit::model
