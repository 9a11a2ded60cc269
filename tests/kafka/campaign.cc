// The whole of what exactly_once_test has a share of: slices of harm to a daemon beside its broker,
// each on a topic and a store of its own, until the goal is reached. What is done, and what came of
// it, goes into a file a line a slice; the next slice takes what is left.
//   kafka_campaign RESULTS SECONDS
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "kafka/violence.h"

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
// What is left for learning to the end of the topic and looking at it.
constexpr std::chrono::seconds kToFinish(240);

std::string results_path;
std::chrono::seconds slice(1700);

// A line: "ok" or "WRONG", the seed, the counts in their order, the figures.
Harm LeftOver() {
  Harm left = kGoal;
  std::ifstream in(results_path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string verdict;
    uint64_t seed = 0;
    words >> verdict >> seed;
    if (verdict != "ok") continue;
    for (int Harm::*count : kCounts) {
      int done = 0;
      words >> done;
      left.*count = std::max(0, left.*count - done);
    }
  }
  return left;
}

TEST(KafkaCampaign, Slice) {
  TACIT_NEED_BROKER(test::kDefaultVersion);
  const auto deadline = std::chrono::steady_clock::now() + slice - kToFinish;
  const Harm left = LeftOver();
  const uint64_t seed = std::random_device{}();
  fmt::print("seed {}; left to do: {}\n", seed, left.Text());
  std::fflush(stdout);
  Violence violence({.seed = seed, .cut = std::chrono::seconds(60)});
  Harm done;
  if (!HasFailure()) done = violence.Run(left, deadline);
  if (!HasFatalFailure()) violence.Finish();
  std::string line = fmt::format("{} {}", HasFailure() ? "WRONG" : "ok", seed);
  for (int Harm::*count : kCounts) line += fmt::format(" {}", done.*count);
  std::ofstream(results_path, std::ios::app) << line << "  " << violence.Figures() << std::endl;
  fmt::print("done: {}\n{}\nleft: {}\n", done.Text(), violence.Figures(), LeftOver().Text());
}

}  // namespace
}  // namespace tacit

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 3) {
    std::cerr << "usage: kafka_campaign RESULTS SECONDS\n";
    return 2;
  }
  tacit::results_path = argv[1];
  tacit::slice = std::chrono::seconds(std::stoi(argv[2]));
  return RUN_ALL_TESTS();
}
