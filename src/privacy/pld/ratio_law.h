#pragma once

#include <memory>
#include <vector>

#include "privacy/pld/allocated_ratio.h"
#include "privacy/pld/loss_law.h"

namespace tacit::privacy::pld {

// The loss of an allocation in one direction: log L under P (kRemove), or -log L under Q (kAdd), by
// the upper law of L. Below() is the same by the lower law.
class AllocationLaw final : public LossLaw {
 public:
  // REQUIRES kRemove or kAdd.
  AllocationLaw(const AllocatedRatio& ratio, Direction direction);

  IntervalMass Over(double low, double high, double reference) const override;
  double Lowest(double tail) const override;
  double Highest(double tail) const override;
  std::vector<PilotPoint> Pilot() const override;
  const LossLaw& Below() const override { return below_ ? *below_ : *this; }

 private:
  AllocationLaw(const RatioLaw& law, Direction direction);

  // Ascending losses, with the mass under P, and e^-loss - 1 to all its digits.
  std::vector<double> loss_, mass_, inverse_;
  double infinite_ = 0;
  std::unique_ptr<AllocationLaw> below_;
};

}  // namespace tacit::privacy::pld
