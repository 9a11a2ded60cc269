#pragma once

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "support/process.h"

namespace tacit::test {

// The daemon without noise and with crash points, to the end of its log. Its configuration is
// STORE.yaml, its store STORE, both in `dir`.
std::vector<std::string> CrashCommand(const TempDir& dir, const std::string& store);

struct Kills {
  int all = 0;
  int by_point = 0;  // of them, at a named moment of a commit or a fold
};

// Runs it to the end, killed some times on the way: at a named moment, or at any within
// `whole_ms`, which is how long it takes.
void RunWithKills(const TempDir& dir, const std::string& store, std::chrono::milliseconds whole_ms,
                  std::mt19937_64& random, Kills* kills);

}  // namespace tacit::test
