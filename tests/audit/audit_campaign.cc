// The audit without an end: in turn a right mechanism with many runs, a planted fault, a random
// instance, and a period's noised sums, right or faulty, each time with other noise. One line per
// audit goes to a file; a slice begins where the file ends, so it can be stopped at any time.
//   audit_campaign RESULTS SECONDS
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <random>
#include <string>

#include "audit/audit.h"
#include "audit/cases.h"
#include "audit/sums.h"

namespace tacit::audit {
namespace {

// Ten thousand audits of five statistics and two rates each: false alarm below 1e-6.
constexpr double kAlpha = 1e-11;
constexpr uint64_t kAuditsMax = 10'000;
constexpr AuditOptions kRight = {
    .runs = 2'000'000, .runs_of_choice = 100'000, .alpha = kAlpha, .seed = 0};
constexpr AuditOptions kFaulty = {
    .runs = 300'000, .runs_of_choice = 30'000, .alpha = kAlpha, .seed = 0};
constexpr AuditOptions kRandom = {
    .runs = 600'000, .runs_of_choice = 40'000, .alpha = kAlpha, .seed = 0};

// The file: "seed S", then one line per audit.
struct Progress {
  uint64_t seed = 0;
  uint64_t done = 0;
};

Progress Resume(const std::string& path) {
  Progress progress;
  std::ifstream in(path);
  std::string line;
  if (std::getline(in, line) && line.starts_with("seed ")) {
    std::from_chars(line.data() + 5, line.data() + line.size(), progress.seed);
    while (std::getline(in, line)) ++progress.done;
    return progress;
  }
  progress.seed = std::random_device()();
  std::ofstream(path) << "seed " << progress.seed << "\n";
  return progress;
}

enum class Kind { kRight, kFaulty, kRandom };

// Runs one audit and says whether all is as it should be.
std::pair<bool, std::string> Judge(const Case& audited, AuditOptions options, uint64_t seed,
                                   Kind kind, bool shall_exceed) {
  options.seed = seed;
  const Finding finding = RunAudit(audited, options);
  const bool reaches = finding.Reaches(0.8);
  const bool right = finding.Exceeds() == shall_exceed && (kind != Kind::kRight || reaches) &&
                     (kind != Kind::kFaulty || shall_exceed || !reaches);
  return {right, fmt::format("{}\tseed {}\t{:.3f} of the charge\t{}", right ? "ok" : "WRONG", seed,
                             finding.lower() / finding.charged_mu, Describe(audited, finding))};
}

std::pair<bool, std::string> JudgeSums(const FaultySums& fault, bool is_fault, uint64_t seed) {
  AuditOptions options = kFaulty;
  options.seed = seed;
  const SumsFinding finding = AuditSums(fault.audited, options);
  const bool reaches = finding.Reaches(0.85);
  const bool right = is_fault ? finding.Exceeds() == fault.exceeds && (fault.exceeds || !reaches)
                              : !finding.Exceeds() && (reaches || !fault.audited.reaches);
  return {right,
          fmt::format("{}\tseed {}\t{:.3f} of the charge\t{}", right ? "ok" : "WRONG", seed,
                      finding.lower() / finding.charged_mu, Describe(fault.audited, finding))};
}

// Right releases, then faulty ones.
std::pair<bool, std::string> SumsNumber(uint64_t round, uint64_t seed) {
  static const std::vector<std::vector<SumsCase>> right = {RightSums(), RightLearners()};
  static const std::vector<std::vector<FaultySums>> faults = {PlantedSums(), PlantedLearners()};
  const auto& cases = right[round / 2 % 2];
  const auto& planted = faults[round / 2 % 2];
  if (round % 2 == 0) return JudgeSums({.audited = cases[round / 4 % cases.size()]}, false, seed);
  return JudgeSums(planted[round / 4 % planted.size()], true, seed);
}

std::pair<bool, std::string> RunNumber(uint64_t number, uint64_t base) {
  static const std::vector<Case> right = RightCases();
  static const std::vector<PlantedFault> faults = PlantedFaults();
  const uint64_t seed = base + number;
  switch (const uint64_t round = number / 4; number % 4) {
    case 0:
      return Judge(right[round % right.size()], kRight, seed, Kind::kRight, false);
    case 1: {
      const PlantedFault& fault = faults[round % faults.size()];
      return Judge(fault.audited, kFaulty, seed, Kind::kFaulty, fault.exceeds);
    }
    case 2:
      return SumsNumber(round, seed);
    default:
      return Judge(RandomCase(seed), kRandom, seed, Kind::kRandom, false);
  }
}

int Run(const std::string& path, double seconds) {
  const auto begun = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  };
  Progress progress = Resume(path);
  fmt::print("seed {}, {} audits done before\n", progress.seed, progress.done);
  std::ofstream results(path, std::ios::app);
  uint64_t wrong = 0, audits = 0;
  for (; elapsed() < seconds && progress.done < kAuditsMax; ++progress.done, ++audits) {
    const auto [right, line] = RunNumber(progress.done, progress.seed);
    wrong += !right;
    results << line << std::endl;
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
  fmt::print("{} audits in {:.0f} s, {} wrong; false alarm of all {}: below {:.0e}\n", audits,
             elapsed(), wrong, progress.done,
             static_cast<double>(2 * kStatistics * progress.done) * kAlpha);
  return results.good() && wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tacit::audit

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: audit_campaign RESULTS SECONDS\n";
    return 2;
  }
  return tacit::audit::Run(argv[1], std::stod(argv[2]));
}
