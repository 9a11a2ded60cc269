#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "loop_model.h"
#include "model/pctr.h"

namespace tacit::model::testing {

// The result of one step of the click model.
struct StepResult {
  std::vector<float> logits, loss;
  StepGradient sum;
  GroupNorms norms;
};

inline StepResult RunStep(const Problem& problem, const RowSelection& selection,
                          const ScaleRule& rule, Pctr& model) {
  StepResult result;
  const Examples examples = problem.View();
  result.logits.resize(examples.size);
  result.loss.resize(examples.size);
  EXPECT_TRUE(model.Forward(examples, problem.dense_parameters, problem.rows, result.logits));
  EXPECT_TRUE(model.Backward(examples, problem.dense_parameters, result.loss));
  EXPECT_TRUE(
      model.ClippedSum(examples, problem.activations, selection, rule, &result.sum, &result.norms));
  return result;
}

inline RowSelection KeepAll(const Problem& problem) {
  return {std::vector<uint8_t>(problem.activations.rows.size(), 1), {}};
}

// The step of a model made for it, which keeps every row.
inline StepResult RunWholeStep(const Problem& problem, const ScaleRule& rule, ops::Backend& backend,
                               ops::Precision precision = ops::Precision::kF32) {
  Pctr model(problem.ModelOptions(precision), backend);
  return RunStep(problem, KeepAll(problem), rule, model);
}

}  // namespace tacit::model::testing
