#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/row_space.h"
#include "mechanism/recipe.h"
#include "model/gradient.h"
#include "noise/noise.h"
#include "privacy/charge.h"

namespace tacit::mechanism {

struct RepresentationNoise;  // forward/forward.h

// The data that a mechanism may use to decide which rows a step writes.
struct StepRows {
  const model::Activations& activations;
  // Per row of the activations: the sum over units of the norm of the unit's gradient of that row,
  // each norm cut to the clip. Empty unless row_score_clip() is above 0.
  std::span<const double> scores = {};
};

// Turns a batch's gradients into an update that may be published, and states what that costs. The
// trainer calls Select, hands the selection and the rule to the model, then calls Finalize; each
// once per step, empty steps included. Between steps a mechanism holds nothing of the data but what
// it has released (noised counts, a noised clip), which SaveState returns, and what it was shown of
// a period that is not open yet, which SaveState leaves out. Not thread-safe.
class Mechanism {
 public:
  virtual ~Mechanism() = default;

  // Some mechanisms learn from a held period, before its first step, which rows are worth writing.
  // The trainer shows every unit of the period once, in parts; OpenPeriod then releases what there
  // is to release, with noise, even when nothing was shown, and forgets the units shown. A process
  // that stops before that has released nothing: the next one is shown the period from its
  // beginning.
  virtual bool observes_periods() const { return false; }
  virtual void Observe(const model::Activations&) {}
  // The cost of OpenPeriod to each unit of the period; empty when OpenPeriod releases nothing. It
  // depends on the state alone, never on what was observed.
  virtual std::optional<privacy::Charge> opening_charge() const { return {}; }
  virtual void OpenPeriod(noise::NoiseSource&) {}

  // If above 0, Select needs the rows' scores, with each unit's norm cut to this.
  virtual double row_score_clip() const { return 0; }
  // Decides which embedding rows this step writes.
  virtual void Select(const StepRows& rows, noise::NoiseSource& noise,
                      model::RowSelection* selection) = 0;
  // The rule that scales a unit's gradient after the mask. It is the same from Select to Finalize.
  virtual const model::ScaleRule& scale_rule() const = 0;
  // Turns the clipped sum into the update G: adds noise to every selected row and all dense
  // parameters, then divides by the public expected batch size. `norms` are those the rule was
  // given.
  virtual void Finalize(noise::NoiseSource& noise, const model::GroupNorms& norms,
                        model::StepGradient* sum) = 0;
  // Fills in the update of rows that no unit activated, noise alone, if the selection is of every
  // row. May be called many times after Finalize, for disjoint rows.
  virtual void FillUntouched(noise::NoiseSource&, std::span<float>) {}
  // Standard deviation of the noise on each number of the update last finalized: sigma C / B of
  // that step. 0: there is no noise.
  virtual double update_stddev() const { return 0; }

  // The noise of a mechanism that noises what the model is shown, and not what it learns: such a
  // step uses nothing above. It is null where gradients are noised, or nothing is.
  virtual const RepresentationNoise* representation() const { return nullptr; }

  // The current step as plain numbers; empty if it cannot be expressed that way (an adaptive clip,
  // a selection by scores).
  virtual std::optional<Recipe> recipe() const { return {}; }
  // Draws the rows that a step writes beside touched ones, ascending, for an engine that carries
  // out the recipe. It knows nothing of the batch, so it may be drawn before one is looked at; rows
  // that are touched have had their own draw, and the engine drops them. In a step that
  // opens a period, call it only after OpenPeriod.
  virtual void DrawExtra(noise::NoiseSource&, std::vector<uint64_t>* rows) { rows->clear(); }

  // The cost of one step, with any batch.
  virtual const privacy::Charge& charge() const = 0;
  // The average number of rows written per step that no unit touched: c * p0.
  virtual double ExpectedExtraRows() const = 0;

  // The released values that later steps use, encoded, so that a restart resumes from them; empty
  // if there are none. The version grows when they change. private_step.cc has the byte grammar.
  virtual uint64_t state_version() const { return 0; }
  virtual std::string SaveState() const { return {}; }
  // Fails with kCorruption when the bytes are no state of this mechanism.
  virtual Status LoadState(std::string_view bytes) {
    if (bytes.empty()) return {};
    return Fail(ErrorCode::kCorruption, "the stored state is one of another mechanism");
  }
};

struct AdaFestOptions {
  double sigma_selection = 0;  // sigma1: noise on the contribution map, in units of clip_selection
  double sigma_gradient = 0;   // sigma2: noise on the gradient, in units of clip_gradient
  double clip_selection = 1;   // C1
  double clip_gradient = 1;    // C2
  double threshold = 0;        // tau
  double expected_batch = 0;   // public divisor
  double sampling_rate = 1;    // of the participation that cuts its steps; for the charge
};

// DP-AdaFEST with a fixed threshold (paper 003; corrected in the comments of the implementation).
// `space` must outlive the mechanism.
std::unique_ptr<Mechanism> MakeAdaFest(const RowSpace& space, const AdaFestOptions& options);

// No privacy: every touched row, no clip, no noise. Its charge is unbounded.
std::unique_ptr<Mechanism> MakeNonPrivate(double expected_batch);

}  // namespace tacit::mechanism
