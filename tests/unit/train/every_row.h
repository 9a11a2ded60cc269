#pragma once

#include <atomic>
#include <memory>

#include "mechanism/clipper.h"
#include "mechanism/private_step.h"
#include "mechanism/row_selector.h"

namespace tacit::train {

// The step that the tests of dense noise take.
inline constexpr double kClip = 0.5, kSigma = 2, kBatch = 8;
inline constexpr float kRate = 0.25f;
inline const std::atomic<bool> kGoOn = false;

inline std::unique_ptr<mechanism::Mechanism> DpSgd(const RowSpace& space) {
  return mechanism::MakePrivateStep(space, mechanism::MakeAllRows(),
                                    mechanism::MakeFlatClipper(kClip, kSigma),
                                    {.sigma_gradient = kSigma, .expected_batch = kBatch});
}

}  // namespace tacit::train
