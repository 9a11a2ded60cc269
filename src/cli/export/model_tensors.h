#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "cli/export/tensor_file.h"
#include "store/store.h"
#include "store/types/snapshot.h"
#include "wiring/assembly.h"
#include "wiring/plans/vocabulary_file.h"

// The tensors that a learner's model is made of, as of a commit.
namespace tacit::cli {

// A tensor and the way to its numbers.
struct ModelTensor {
  Tensor tensor;
  std::function<Status(TensorSink&)> write;  // all numbers, in order
};

// The model of one learner, for an exporter. Views: they outlive the tensors.
struct ExportedModel {
  const wiring::LearnerPlan& plan;
  const store::LearnerLayout& layout;
  const store::Snapshot& snapshot;
  const event::ItemCatalogue* items = nullptr;  // null if there is none
};

// LEARNER/TABLE for each table, LEARNER/PART for each part of the dense parameters, or
// LEARNER/dense where a kind names none.
std::vector<ModelTensor> ParametersOf(const ExportedModel& model);

// LEARNER/bias of a sum of weights; nothing for other kinds. Fails where there is no commit yet.
Result<std::vector<ModelTensor>> BiasOf(const ExportedModel& model);

// LEARNER/FEATURE.by_value: the rows of these values, in their order, with their names. A value
// that comes twice is taken once. Tables that the learner lacks are left out.
std::vector<ModelTensor> ValuesOf(const ExportedModel& model,
                                  const std::vector<wiring::NamedValue>& values);

// The most items for which scores after each of them are written: a table of 1 GiB.
inline constexpr uint64_t kScoredItemsMost = uint64_t{1} << 14;
// LEARNER/next.cold_start: the score of each item for a user without a history;
// LEARNER/next.scores, unless there are too many items: a row with the scores of all items after
// the item of that row alone. Both are what the server ranks by. Nothing for models of clicks.
Result<std::vector<ModelTensor>> ScoresOf(const ExportedModel& model);

}  // namespace tacit::cli
