#pragma once

#include <map>
#include <vector>

#include "base/row_space.h"
#include "mechanism/mechanism.h"

// One private update through a Mechanism, as the trainer does it, of units whose gradients are
// given.
namespace tacit::mechanism {

// The gradient of one privacy unit: dense and by row.
struct UnitGradient {
  std::vector<double> dense;
  std::map<uint64_t, std::vector<double>> rows;  // its keys are the rows it activates
};
using StepUnits = std::vector<UnitGradient>;

// The rows that were written, ascending, and their numbers one after another.
struct Update {
  std::vector<double> dense;
  std::vector<uint64_t> rows;
  std::vector<double> values;
};

inline constexpr size_t kDenseSize = 3;

uint32_t DimOf(const RowSpace& space, uint64_t row);
model::Activations ActivationsOf(const StepUnits& units);
// Per row of the activations: the sum over units of the norm of its gradient, cut to the clip.
std::vector<double> ScoresOf(const StepUnits& units, const model::Activations& activations,
                             double clip);

// The same step again and again. `space` and `units` must outlive it.
class StepRunner {
 public:
  StepRunner(const RowSpace& space, const StepUnits& units)
      : space_(space), units_(units), activations_(ActivationsOf(units)) {}

  // Select, the clipped sum as a model forms it, Finalize; and FillUntouched where every row is
  // written. Valid until the next call.
  const Update& Run(Mechanism& mechanism, noise::NoiseSource& noise);

 private:
  void Norms(double grid_step);
  void Sum(const model::ScaleRule& rule);
  void TakeUpdate(Mechanism& mechanism, noise::NoiseSource& noise);

  const RowSpace& space_;
  const StepUnits& units_;
  const model::Activations activations_;
  model::RowSelection selection_;
  model::StepGradient sum_;
  model::GroupNorms norms_;
  std::vector<double> scores_;
  Update update_;
};

// One step.
Update RunStep(Mechanism& mechanism, const RowSpace& space, const StepUnits& units,
               noise::NoiseSource& noise);

}  // namespace tacit::mechanism
