// The accountants' speed at the accuracy they promise; prints one figure a line.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "privacy/calibrate.h"
#include "privacy/pld.h"
#include "privacy/rdp.h"

namespace tacit::privacy {
namespace {

template <class F>
double Milliseconds(F work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// 100 different (sigma, q), one step of each or `count`.
void AddHundred(PldAccountant& accountant, uint64_t count) {
  for (int i = 0; i < 100; ++i)
    if (!accountant.Add(Event::PoissonGaussian(0.8 + 0.02 * i, 0.001 + 0.0001 * i), count))
      std::abort();
}

void Print(const char* what, double milliseconds, const CertifiedInterval& found) {
  fmt::print("{:<64} {:9.3f} ms  epsilon [{:.8g}, {:.8g}]\n", what, milliseconds, found.lower,
             found.upper);
}

void Once(const char* what, double sigma, double rate, uint64_t steps, double delta) {
  CertifiedInterval found;
  const double time = Milliseconds([&] {
    PldAccountant accountant(Adjacency::kAddRemove);
    if (!accountant.Add(Event::PoissonGaussian(sigma, rate), steps)) std::abort();
    found = *accountant.Epsilon(Delta(delta));
  });
  Print(what, time, found);
}

void Hundred(const char* what, uint64_t count, double delta) {
  CertifiedInterval found;
  PldAccountant accountant(Adjacency::kAddRemove);
  const double time = Milliseconds([&] {
    AddHundred(accountant, count);
    found = *accountant.Epsilon(Delta(delta));
  });
  Print(what, time, found);
  std::vector<double> more;
  for (int i = 0; i < 300; ++i)
    more.push_back(Milliseconds([&] {
      if (!accountant.Add(Event::PoissonGaussian(1, 0.002), 1)) std::abort();
      found = *accountant.Epsilon(Delta(delta));
    }));
  std::sort(more.begin(), more.end());
  Print("  one more step of a known kind and a new epsilon: median of 300", more[150], found);
  Print("  ... the slowest but two", more[297], found);
}

void Calibrate(const char* what, const CalibrationTarget& target) {
  double pld = 0, rdp = 0;
  const double pld_time =
      Milliseconds([&] { pld = CalibratePld(target, Adjacency::kAddRemove).value_or(-1); });
  const double rdp_time = Milliseconds([&] { rdp = CalibrateRdp(target, {}).value_or(-1); });
  fmt::print("{:<64} {:9.3f} ms  sigma {:.6f}; RDP {:.3f} ms {:.6f}\n", what, pld_time, pld,
             rdp_time, rdp);
}

// Runs of a ledger of 100 settings: each run adds its steps; every thousandth run is asked about.
void LongLedger() {
  CertifiedInterval found;
  const double time = Milliseconds([&] {
    PldAccountant accountant(Adjacency::kAddRemove);
    for (int run = 0; run < 1000000; ++run) {
      const int i = run % 100;
      if (!accountant.Add(Event::PoissonGaussian(0.8 + 0.02 * i, 1e-5 * (1 + i)), 1000))
        std::abort();
      if (run % 1000 == 999) found = *accountant.Epsilon(Delta(1e-6));
    }
  });
  Print("ledger of 1e9 steps in 1e6 runs, 100 settings, asked 1000 times", time, found);
}

void Run() {
  Once("q .001 sigma 1 T 1e5 delta 1e-6", 1, 0.001, 100000, 1e-6);
  Once("q .01 sigma 1 T 1e4 delta 1e-6", 1, 0.01, 10000, 1e-6);
  Once("q .01 sigma .5 T 1000 delta 1e-6", 0.5, 0.01, 1000, 1e-6);
  Once("ML-1M q 256/6040 sigma 2 T 2360 delta 1e-5", 2, 256.0 / 6040, 2360, 1e-5);
  Once("Criteo q 2048/36672493 sigma .7 T 17907 delta 1/N", 0.7, 2048.0 / 36672493, 17907,
       1.0 / 36672493);
  Once("q .001 sigma 2 T 1e9 delta 1e-14", 2, 0.001, 1000000000, 1e-14);
  Hundred("100 different (sigma, q), a step each, delta 1e-6", 1, 1e-6);
  Hundred("100 different (sigma, q), 100 steps each, delta 1e-6", 100, 1e-6);
  Calibrate("calibrate ML-1M B 256, 100 epochs, epsilon 3", {3, 1e-5, 256.0 / 6040, 2360});
  Calibrate("calibrate Criteo B 2048, an epoch, epsilon 3",
            {3, 1.0 / 36672493, 2048.0 / 36672493, 17907});
  LongLedger();
}

}  // namespace
}  // namespace tacit::privacy

int main() { tacit::privacy::Run(); }
