// Twenty streams of random shape for each accident and each innocent twin, each read by a daemon of
// its own at the rate of the demo: accidents are told to the operator within ten seconds in 19 of
// 20, and twins are not in 19 of 20.
//
//   accident_campaign STREAMS AT_ONCE SEED [HAPPENING]
//
// With a happening's name, "other topic", its streams alone.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "system/accidents/scenario.h"

namespace tacit {
namespace {

using test::Happening;
using test::Scenario;

constexpr double kSecondsAfter = 10;

// Users and values are known only after most have come.
double SecondsBefore(Happening happening) {
  return happening == Happening::kHalfOfTheUsersGone || happening == Happening::kAnotherTopic ? 36
                                                                                              : 12;
}

struct Tally {
  std::mutex mutex;
  std::vector<double> told[std::size(test::kHappenings)];
  int early[std::size(test::kHappenings)] = {}, lost = 0;
};

void Live(size_t kind, uint64_t seed, Tally* tally) {
  const Happening happening = test::kHappenings[kind];
  Scenario scenario({.seed = seed, .happening = happening});
  const bool began = scenario.Begin();
  const auto early = began ? scenario.Pass(SecondsBefore(happening), false) : std::nullopt;
  const bool night = happening == Happening::kNight;
  const auto told =
      began && !early ? scenario.Pass(night ? 60 : kSecondsAfter, true) : std::nullopt;
  std::lock_guard lock(tally->mutex);
  if (!began) {
    ++tally->lost;
    std::fputs(scenario.log().c_str(), stderr);
  }
  tally->early[kind] += early.has_value() ? 1 : 0;
  if (told) tally->told[kind].push_back(*told);
  fmt::print("{} {}: {}\n", test::NameOf(happening), seed,
             !began  ? "the daemon did not begin"
             : early ? "told before: " + scenario.ready()
             : told
                 ? fmt::format("told after {:.1f} s: {}", *told, scenario.ready())
                 : fmt::format("not told, {:.0f} of {:.0f} records read, the longest gap {:.1f} s",
                               scenario.RecordsRead(), scenario.written(), scenario.longest_gap()));
  if (began && !early && !told && test::IsAccident(happening))
    std::fputs(scenario.log().c_str(), stderr);
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fputs("accident_campaign STREAMS AT_ONCE SEED [HAPPENING]\n", stderr);
    return 2;
  }
  const auto streams = std::strtoull(argv[1], nullptr, 10);
  const auto at_once = std::strtoull(argv[2], nullptr, 10);
  const auto seed = std::strtoull(argv[3], nullptr, 10);
  constexpr size_t kKinds = std::size(test::kHappenings);
  const auto asked = [&](size_t kind) {
    return argc == 4 || test::NameOf(test::kHappenings[kind]) == argv[4];
  };
  Tally tally;
  std::atomic<uint64_t> next = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < at_once; ++t)
    threads.emplace_back([&] {
      for (uint64_t i; (i = next++) < streams * kKinds;)
        if (asked(i % kKinds)) Live(i % kKinds, seed + i, &tally);
    });
  for (std::thread& thread : threads) thread.join();

  bool right = tally.lost == 0;
  fmt::print("\n| happening | told within 10 s | median s | before it |\n|---|---|---|---|\n");
  for (size_t kind = 0; kind < kKinds; ++kind) {
    if (!asked(kind)) continue;
    std::vector<double>& told = tally.told[kind];
    std::ranges::sort(told);
    const uint64_t wrong = tally.early[kind] + (test::IsAccident(test::kHappenings[kind])
                                                    ? streams - told.size() - tally.early[kind]
                                                    : told.size());
    right &= 20 * wrong <= streams;
    fmt::print("| {} | {} of {} | {} | {} |\n", test::NameOf(test::kHappenings[kind]), told.size(),
               streams, told.empty() ? "" : fmt::format("{:.1f}", told[told.size() / 2]),
               tally.early[kind]);
  }
  fmt::print("{}\n", right ? "right" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace
}  // namespace tacit

int main(int argc, char** argv) { return tacit::Main(argc, argv); }
