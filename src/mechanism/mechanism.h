#pragma once

#include <memory>

#include "base/row_space.h"
#include "model/gradient.h"
#include "noise/noise.h"
#include "privacy/charge.h"

namespace tacit::mechanism {

// What turns a batch's gradients into an update that may be published, and says what that costs.
// The trainer calls Select, hands the selection and the rule to the model, then calls Finalize;
// each once per step, empty steps included. Holds no data of any step. Not thread-safe.
class Mechanism {
 public:
  virtual ~Mechanism() = default;

  // Decides which embedding rows this step writes.
  virtual void Select(const model::Activations& activations, noise::NoiseSource& noise,
                      model::RowSelection* selection) = 0;
  // How one unit's gradient is scaled, after the mask.
  virtual const model::ScaleRule& scale_rule() const = 0;
  // Turns the clipped sum into the update G: noise on every selected row and all dense parameters,
  // then division by the public expected batch size.
  virtual void Finalize(noise::NoiseSource& noise, model::StepGradient* sum) = 0;

  // What one step costs, whatever was in it.
  virtual const privacy::Charge& charge() const = 0;
  // Rows written per step that nobody touched, on average: c * p0.
  virtual double ExpectedExtraRows() const = 0;
};

struct AdaFestOptions {
  double sigma_selection = 0;  // sigma1: noise on the contribution map, in units of clip_selection
  double sigma_gradient = 0;   // sigma2: noise on the gradient, in units of clip_gradient
  double clip_selection = 1;   // C1
  double clip_gradient = 1;    // C2
  double threshold = 0;        // tau
  double expected_batch = 0;   // public divisor
  double sampling_rate = 1;    // of the participation that feeds it; for the charge
};

// DP-AdaFEST with a fixed threshold (paper 003; corrected in the comments of the implementation).
// `space` must outlive the mechanism.
std::unique_ptr<Mechanism> MakeAdaFest(const RowSpace& space, const AdaFestOptions& options);

// No privacy: every touched row, no clip, no noise. Its charge is unbounded.
std::unique_ptr<Mechanism> MakeNonPrivate(double expected_batch);

}  // namespace tacit::mechanism
