// The whole of what exactly_once_test has a share of: slices of harm to a daemon beside its broker,
// each on a topic and a store of its own, until the goal is reached. What is done, and what came of
// it, goes into a file a line a slice; the next slice takes what is left.
//   kafka_campaign RESULTS SECONDS     a slice; fails at anything that is not as it should be
//   kafka_campaign RESULTS             what is done so far; fails while something is left
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "system/kafka/violence.h"

namespace tacit {
namespace {

using test::Harm;
using test::Violence;

constexpr Harm kGoal{.daemon_kills = 300,
                     .broker_kills = 20,
                     .broker_stops = 20,
                     .takeovers = 50,
                     .refusals = 50,
                     .growths = 20,
                     .cuts = 1,
                     .clock_steps = 5};
constexpr int Harm::*kCounts[] = {&Harm::daemon_kills, &Harm::broker_kills, &Harm::broker_stops,
                                  &Harm::takeovers,    &Harm::refusals,     &Harm::growths,
                                  &Harm::cuts,         &Harm::clock_steps};
// The time left to learn to the end of the topic and to look at it: but half of a short slice.
constexpr std::chrono::seconds kToFinish(240);

std::string results_path;
std::chrono::seconds slice(0);

// All slices so far.
struct Totals {
  Harm done;
  uint64_t slices = 0, wrong = 0, applied = 0, dead = 0;

  Harm Left() const {
    Harm left;
    for (int Harm::*count : kCounts) left.*count = std::max(0, kGoal.*count - done.*count);
    return left;
  }
  bool IsComplete() const {
    const Harm left = Left();
    return std::ranges::all_of(kCounts, [&](int Harm::*count) { return left.*count == 0; });
  }
  std::string Text() const {
    return fmt::format(
        "{} slices, {} of them wrong: {}; {} events learnt from once each, {} dead letters; left: "
        "{}",
        slices, wrong, done.Text(), applied, dead, IsComplete() ? "nothing" : Left().Text());
  }
};

// A line: "ok" or "WRONG", the seed, the counts in their order, events applied once, dead letters,
// the figures. What a wrong slice has done is to be done again.
Totals ReadTotals() {
  Totals totals;
  std::ifstream in(results_path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string verdict;
    uint64_t seed = 0, applied = 0, dead = 0;
    if (!(words >> verdict >> seed) || (verdict != "ok" && verdict != "WRONG")) continue;
    ++totals.slices;
    totals.wrong += verdict == "WRONG";
    if (verdict == "WRONG") continue;
    for (int Harm::*count : kCounts) {
      int done = 0;
      words >> done;
      totals.done.*count += done;
    }
    words >> applied >> dead;
    totals.applied += applied;
    totals.dead += dead;
  }
  return totals;
}

void Note(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
  std::ofstream(results_path, std::ios::app) << line << std::endl;
}

// Units and places of dead letters take turns.
TEST(KafkaCampaign, Slice) {
  TACIT_NEED_BROKER(test::kDefaultVersion);
  const auto deadline = std::chrono::steady_clock::now() + slice - std::min(kToFinish, slice / 2);
  const Totals before = ReadTotals();
  const uint64_t seed = std::random_device{}();
  fmt::print("seed {}; left to do: {}\n", seed, before.Left().Text());
  std::fflush(stdout);
  Violence violence({.seed = seed,
                     .cut = std::chrono::seconds(60),
                     .users = before.slices % 2 == 1,
                     .dead_letter_topic = before.slices / 2 % 2 == 1});
  Harm left = before.Left(), done;
  if (slice < std::chrono::seconds(240)) left.cuts = 0;
  if (!HasFailure()) done = violence.Run(left, deadline);
  if (!HasFatalFailure()) violence.Finish();
  std::string line = fmt::format("{} {}", HasFailure() ? "WRONG" : "ok", seed);
  for (int Harm::*count : kCounts) line += fmt::format(" {}", done.*count);
  Note(fmt::format("{} {} {}  {}", line, violence.applied(), violence.dead(), violence.Figures()));
  Note("so far: " + ReadTotals().Text());
}

}  // namespace
}  // namespace tacit

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: kafka_campaign RESULTS [SECONDS]\n";
    return 2;
  }
  tacit::results_path = argv[1];
  if (argc == 2) {
    const tacit::Totals totals = tacit::ReadTotals();
    fmt::print("{}\n", totals.Text());
    if (!totals.IsComplete()) return 1;
    return totals.wrong == 0 ? 0 : 3;
  }
  tacit::slice = std::chrono::seconds(std::stoi(argv[2]));
  return RUN_ALL_TESTS();
}
