#pragma once

#include <memory>

#include "base/row_space.h"
#include "mechanism/clipper.h"
#include "mechanism/mechanism.h"
#include "mechanism/row_selector.h"

namespace tacit::mechanism {

struct PrivateStepOptions {
  double sigma_gradient = 0;  // sigma2: noise on the gradient, in units of the clip
  double expected_batch = 0;  // public divisor
  // The draw of the participation that cuts its steps, for the charge.
  double sampling_rate = 1;
  uint64_t block_steps = 0;  // as in privacy::Charge
};

// A mechanism of two halves: the selector chooses the rows that a step writes, the clipper bounds
// what a unit adds to them; noise and divisor are the same for all. All Gaussian queries of a step
// see the same batch and cost one Gaussian together; a selector's other query is charged beside
// it. With a clip that adapts, the charge names the initial clip, so that the charges of all
// steps are equal. REQUIRES that the clipper was made for `sigma_gradient`; `space` must outlive
// the mechanism.
std::unique_ptr<Mechanism> MakePrivateStep(const RowSpace& space,
                                           std::unique_ptr<RowSelector> selector,
                                           std::unique_ptr<Clipper> clipper,
                                           const PrivateStepOptions& options);

}  // namespace tacit::mechanism
