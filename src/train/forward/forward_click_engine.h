#pragma once

#include <memory>

#include "mechanism/mechanism.h"
#include "noise/noise.h"
#include "ops/backend.h"
#include "store/rows/working_rows.h"
#include "store/types/delta.h"
#include "train/engines/click_engine.h"

namespace tacit::train {

// The step of a model that learns from noised representations (paper 001, "DP-FP"): embeddings and
// numbers of each record are clipped and noised, once, and the layers above learn from that with
// the records' labels, which nothing protects. Embeddings lie below the noise and are never
// written. Noise goes into slots whose number is a multiple of the public batch, so that it tells
// nothing of how many of them are filled. All references must outlive the engine. REQUIRES a
// mechanism with a representation.
std::unique_ptr<ClickEngine> MakeForwardClickEngine(const ClickEngineOptions& options,
                                                    mechanism::Mechanism& mechanism,
                                                    noise::NoiseSource& noise,
                                                    ops::Backend& backend, store::WorkingRows& rows,
                                                    store::DenseState dense);

}  // namespace tacit::train
