#pragma once

#include <memory>

#include "model/pctr.h"
#include "ops/backend.h"
#include "train/click/click_learner.h"
#include "wiring/plans/model_plan.h"

namespace tacit::wiring {

struct LearnerPlan;

// A click model that only reports its shape.
struct ShapeModel {
  std::unique_ptr<ops::Backend> backend = ops::MakeReferenceBackend();
  model::Pctr model;
  explicit ShapeModel(const model::PctrOptions& options) : model(options, *backend) {}
};

// The options of a learner whose model is the network over embeddings, for experiments that make
// theirs otherwise; null for any other model.
const train::ClickOptions* ClickOptionsOf(const LearnerPlan& plan);

}  // namespace tacit::wiring
