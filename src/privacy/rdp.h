#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "privacy/event.h"

// Renyi differential privacy (Mironov 2017): per order alpha a bound on the Renyi divergence of
// neighbours' outputs, which adds up over events. Add-or-remove adjacency.
namespace tacit::privacy {

// The divergence of one event at one order > 1; infinity if it is not finite.
//
// Poisson-sampled Gaussian: log(A_alpha) / (alpha - 1) with
//   A_alpha = E[(1 - q + q e^((2x - 1) / (2 s^2)))^alpha],  x ~ N(0, s^2)
// (Mironov, Talwar and Zhang 2019), for integer and fractional orders alike. The usual series for
// fractional orders alternates, so the expectation is integrated directly. The trapezoidal rule
// converges geometrically on this analytic integrand, every term is positive, and the sum is
// A_alpha - 1, so that even a divergence of 1e-12 keeps its digits. Relative accuracy 1e-9.
//
// Allocation: that of the Gaussian, made once, which bounds it: the divergence of a mixture over
// the steps is at most the greatest of theirs. Poor; the PLD accountant knows better.
//
// Exponential mechanism: the worst case of bounded range (Dong, Durfee and Rogers 2020).
double RenyiDivergence(const Event& event, double order);

// Orders 1 + 0.01 * 1.1^k up to 1e6, so that large noise does not hit a ceiling, and 1.1, 1.2, ...
// 10.9 and 11 ... 63: at small noise the best order is sharp.
std::span<const double> DenseRdpOrders();

// A sum of divergences at fixed orders. Not thread-safe; copying gives a snapshot.
class RdpAccountant {
 public:
  struct Answer {
    double epsilon = 0;  // never negative; infinity if no order gives a bound
    double order = 0;    // the order of the bound
  };

  RdpAccountant();  // over DenseRdpOrders()
  // Returns kInvalidArgument unless there are orders and each is above 1 and finite.
  static Result<RdpAccountant> WithOrders(std::vector<double> orders);

  // Adds an event made `count` times. Returns kInvalidArgument, with nothing added, for an event
  // out of its domain. The divergences of each event are computed once.
  Status Add(const Event& event, uint64_t count);

  // The improved conversion (Canonne, Kamath and Steinke 2020, Proposition 12; Balle et al. 2020):
  //   epsilon = rdp + log((a - 1) / a) - (log delta + log a) / (a - 1),
  // the least over the orders; 0 where delta^2 >= 1 - e^-rdp, which bounds the total variation.
  // REQUIRES 0 < delta < 1.
  Answer Epsilon(Delta delta) const;
  // The least delta that the same conversion gives at this epsilon >= 0.
  double DeltaAt(double epsilon) const;

  std::span<const double> orders() const { return orders_; }

 private:
  explicit RdpAccountant(std::vector<double> orders);

  std::vector<double> orders_;
  std::vector<double> sums_;
  std::map<Event, std::vector<double>> known_;
};

}  // namespace tacit::privacy
