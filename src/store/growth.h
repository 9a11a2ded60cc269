#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/rows/learner_directory.h"
#include "store/store_impl.h"
#include "store/view/fold.h"

// The start's part of model_growth.h.
namespace tacit::store {

// A learner with what becomes of its stored model.
struct PlannedGrowth {
  size_t place = 0;      // in the configuration
  LearnerRecord record;  // from the commit on
  GrownModel model;
};

// The record that the witnesses hold of a store at rest.
WitnessRecord WitnessOf(const OpenedStore& store);
// By key: a learner was trained once a commit has moved its position.
std::vector<uint8_t> TrainedOf(const View& view);

// Asks the kinds of those learners, by their places in the configuration.
Result<std::vector<PlannedGrowth>> PlanGrowths(const LearnerDirectory& directory, const View& view,
                                               const std::vector<std::string>& forms,
                                               const std::vector<LearnerLayout>& learners,
                                               std::span<const size_t> others);

// kRefused, with what is lost, unless nothing is.
Status CheckLosses(const std::vector<PlannedGrowth>& growths);

// Takes the models over in one commit, which is visible, witnessed and charged nothing. Rows of
// tables that become larger are written before it, under numbers that nothing reads; a crash leaves
// them there, and the next start begins anew. `keep` is called as in a fold. REQUIRES a store whose
// commits are all folded, with open witnesses.
Status TakeOver(const std::vector<PlannedGrowth>& growths, const KeepFolding& keep,
                OpenedStore& store);

}  // namespace tacit::store
