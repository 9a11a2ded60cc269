#pragma once

#include <memory>

#include "mechanism/mechanism.h"
#include "noise/noise.h"
#include "ops/backend.h"
#include "store/rows/working_rows.h"
#include "store/types/delta.h"
#include "train/engines/click_engine.h"

namespace tacit::train {

// The step on this machine's processor, in the working rows themselves: there is nothing to settle.
// `dense` is the model's dense state as of the last commit. All references must outlive the engine.
std::unique_ptr<ClickEngine> MakeHostClickEngine(const ClickEngineOptions& options,
                                                 mechanism::Mechanism& mechanism,
                                                 noise::NoiseSource& noise, ops::Backend& backend,
                                                 store::WorkingRows& rows, store::DenseState dense);

}  // namespace tacit::train
