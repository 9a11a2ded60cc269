// Measures how fast questions about privacy are answered, at the promised accuracy.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "bench/suite.h"
#include "privacy/calibrate.h"
#include "privacy/gaussian.h"
#include "privacy/ledger.h"
#include "privacy/pld.h"
#include "privacy/rdp.h"

namespace tacit::bench {
namespace {

using privacy::CertifiedInterval;
using privacy::Event;
using privacy::PldAccountant;

constexpr int kSettings = 100;

template <class F>
double Milliseconds(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// The best of three runs: busy neighbours can only add time.
template <class F>
double Best(F&& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) best = std::min(best, Milliseconds(work));
  return best;
}

// Ends the program on an error of the benchmark's own: it then has no figure to report.
template <class T>
T Must(Result<T> result) {
  TACIT_CHECK(result.has_value());
  return *std::move(result);
}
void Must(const Status& status) { TACIT_CHECK(status.has_value()); }

BenchRow Row(const char* name, double milliseconds, const CertifiedInterval& found) {
  return {.name = name,
          .value = milliseconds,
          .unit = "ms",
          .more = {{"epsilon_lower", found.lower}, {"epsilon", found.upper}},
          .note = fmt::format("epsilon in [{:.6g}, {:.6g}]", found.lower, found.upper)};
}

BenchRow OneSetting(const char* name, const Event& event, uint64_t steps, double delta) {
  CertifiedInterval found;
  const double time = Best([&] {
    PldAccountant accountant(privacy::Adjacency::kAddRemove);
    Must(accountant.Add(event, steps));
    found = Must(accountant.Epsilon(Delta(delta)));
  });
  return Row(name, time, found);
}

void AddHundred(PldAccountant* accountant) {
  for (int i = 0; i < kSettings; ++i)
    Must(accountant->Add(Event::PoissonGaussian(0.8 + 0.02 * i, 0.001 + 0.0001 * i), 1));
}

void HundredSettings(std::vector<BenchRow>* rows) {
  CertifiedInterval found;
  const double time = Best([&] {
    PldAccountant accountant(privacy::Adjacency::kAddRemove);
    AddHundred(&accountant);
    found = Must(accountant.Epsilon(Delta(1e-6)));
  });
  rows->push_back(Row("pld-hundred-settings", time, found));
  PldAccountant accountant(privacy::Adjacency::kAddRemove);
  AddHundred(&accountant);
  found = Must(accountant.Epsilon(Delta(1e-6)));
  std::vector<double> more;
  for (int i = 0; i < 300; ++i)
    more.push_back(Milliseconds([&] {
      Must(accountant.Add(Event::PoissonGaussian(0.8, 0.001), 1));
      found = Must(accountant.Epsilon(Delta(1e-6)));
    }));
  std::sort(more.begin(), more.end());
  rows->push_back(Row("pld-one-more-step", more[more.size() / 2], found));
}

BenchRow Calibration(const char* name, const privacy::CalibrationTarget& target) {
  double pld = 0, rdp = 0;
  const double time =
      Best([&] { pld = Must(CalibratePld(target, privacy::Adjacency::kAddRemove)); });
  const double rdp_time = Best([&] { rdp = Must(CalibrateRdp(target, {})); });
  return {.name = name,
          .value = time,
          .unit = "ms",
          .more = {{"noise_multiplier", pld}, {"rdp_ms", rdp_time}, {"rdp_noise_multiplier", rdp}},
          .note = fmt::format("sigma {:.6g}; RDP {:.3g} ms, {:.6g}", pld, rdp_time, rdp)};
}

// A run has a thousand steps. Epsilon is computed after every thousandth run.
BenchRow SampledLedger(int runs) {
  CertifiedInterval found;
  const double time = Milliseconds([&] {
    PldAccountant accountant(privacy::Adjacency::kAddRemove);
    for (int run = 0; run < runs; ++run) {
      const int i = run % kSettings;
      Must(accountant.Add(Event::PoissonGaussian(0.8 + 0.02 * i, 1e-5 * (1 + i)), 1000));
      if (run % 1000 == 999) found = Must(accountant.Epsilon(Delta(1e-6)));
    }
  });
  return Row("ledger-sampled", time, found);
}

// The number of epsilons that `tacit ledger verify` recomputes.
constexpr uint64_t kEpsilons = 1000;

// A user's ledger with `runs` runs of a thousand steps, each with other noise than the run before.
// Its epsilons are exact at the entries where VerifyChain recomputes them, and never fall.
std::vector<privacy::LedgerEntry> GaussianLedger(int runs) {
  const int stride = 1 + runs / static_cast<int>(kEpsilons);
  std::vector<privacy::LedgerEntry> entries;
  privacy::EpsilonMeter meter;
  privacy::Spending worst;
  for (int run = 0; run < runs; ++run) {
    privacy::LedgerEntry entry;
    entry.index = static_cast<uint64_t>(run);
    entry.learner = "bench";
    entry.charge.mechanism = privacy::MechanismKind::kDpSgd;
    entry.charge.noise_multiplier = entry.charge.sigma_gradient = 1e4 + run % kSettings;
    entry.charge.clip_gradient = 1;
    entry.unit = privacy::Unit::kUser;
    entry.steps = 1000;
    entry.first_commit = entry.last_commit = entry.index + 1;
    entry.delta = 1e-6;
    worst.Add(privacy::Spending::Of(entry.charge, entry.steps));
    entry.worst = worst;
    const bool asked = run % stride == 0 || run + 1 == runs;
    entry.epsilon = asked ? meter.Bounds(worst, Delta(entry.delta)).upper : entries.back().epsilon;
    if (run > 0) entry.previous_head = entries.back().head;
    entry.head = entry.ComputeHead();
    entries.push_back(std::move(entry));
  }
  return entries;
}

BenchRow VerifiedLedger(int runs) {
  const std::vector<privacy::LedgerEntry> entries = GaussianLedger(runs);
  const double time =
      Milliseconds([&] { Must(VerifyChain(entries, {.epsilons_max = kEpsilons})); });
  return {.name = "ledger-verify",
          .value = time,
          .unit = "ms",
          .more = {{"entries", entries.size()}},
          .note = fmt::format("{} entries, 1000 steps each", entries.size())};
}

}  // namespace

Result<std::vector<BenchRow>> BenchAccountants(const BenchRequest& request) {
  const double criteo = 36672493;
  const int runs = request.quick ? 1000 : 1'000'000;
  std::vector<BenchRow> rows;
  rows.push_back(OneSetting("pld-q.001-T1e5", Event::PoissonGaussian(1, 0.001), 100'000, 1e-6));
  rows.push_back(OneSetting("pld-q.01-T1e4", Event::PoissonGaussian(1, 0.01), 10'000, 1e-6));
  rows.push_back(
      OneSetting("pld-q.01-sigma.5-T1e3", Event::PoissonGaussian(0.5, 0.01), 1000, 1e-6));
  rows.push_back(OneSetting("pld-ml-1m", Event::PoissonGaussian(2, 256.0 / 6040), 2360, 1e-5));
  rows.push_back(
      OneSetting("pld-criteo", Event::PoissonGaussian(0.7, 2048 / criteo), 17907, 1 / criteo));
  rows.push_back(OneSetting("pld-T1e9", Event::PoissonGaussian(2, 0.001), 1'000'000'000, 1e-14));
  HundredSettings(&rows);
  rows.push_back(Calibration("calibrate-ml-1m", {3, 1e-5, 256.0 / 6040, 2360}));
  rows.push_back(Calibration("calibrate-criteo", {3, 1 / criteo, 2048 / criteo, 17907}));
  rows.push_back(SampledLedger(runs));
  rows.push_back(VerifiedLedger(runs));
  return rows;
}

}  // namespace tacit::bench
