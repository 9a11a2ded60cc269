#pragma once

#include <vector>

#include "privacy/pld/loss_law.h"

namespace tacit::privacy::pld {

// N(mu, 1) against N(0, 1): L ~ N(mu^2 / 2, mu^2). The same in every direction.
class GaussianLaw final : public LossLaw {
 public:
  explicit GaussianLaw(double mu) : mu_(mu) {}

  IntervalMass Over(double low, double high, double reference) const override;
  double Lowest(double tail) const override;
  double Highest(double tail) const override;
  std::vector<PilotPoint> Pilot() const override;

 private:
  double mu_;
};

// (1 - q) N(0, s^2) + q N(1, s^2) against N(0, s^2) (kRemove), or the other way round (kAdd). With
// w(x) = 1 - q + q e^((2x - 1) / (2 s^2)) the loss is log w, or -log w.
class SampledGaussianLaw final : public LossLaw {
 public:
  SampledGaussianLaw(double sigma, double rate, Direction direction);

  IntervalMass Over(double low, double high, double reference) const override;
  double Lowest(double tail) const override;
  double Highest(double tail) const override;
  std::vector<PilotPoint> Pilot() const override;
  double Edge() const override;

 private:
  double LogRatio(double x) const;     // log w(x)
  double Inverse(double ratio) const;  // x where log w is `ratio`; -infinity below its range
  double Gain(double a, double b, double reference, double panel) const;

  double sigma_, rate_;
  bool add_;
};

// (1 - q) N(0, s^2) + q N(1, s^2) against (1 - q) N(0, s^2) + q N(-1, s^2): one row replaced by its
// opposite. The same in both directions.
class ReplacedGaussianLaw final : public LossLaw {
 public:
  ReplacedGaussianLaw(double sigma, double rate);

  IntervalMass Over(double low, double high, double reference) const override;
  double Lowest(double tail) const override;
  double Highest(double tail) const override;
  std::vector<PilotPoint> Pilot() const override;

 private:
  double Loss(double x) const;
  double Inverse(double loss) const;  // x with this loss; infinite beyond its range
  double Gain(double a, double b, double reference, double panel) const;

  double sigma_, rate_;
};

}  // namespace tacit::privacy::pld
