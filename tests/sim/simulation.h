#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

// A process whose threads, locks and time are simulated. A program that links tacit_sim defines the
// C library's calls for them itself, so that libraries get ours as well (calls.txt lists them all).
// One thread runs at a time; the seed says who runs next, and time jumps when all wait.
namespace tacit::sim {

// The rule by which the running thread loses its turn.
enum class Policy {
  kCalm,        // it runs until it waits
  kGaps,        // it loses its turn once in 2 to 16,384 calls
  kPriorities,  // the first in rank runs; three times the first becomes the last (PCT)
  kSlow,        // as kGaps, and a fourth of the threads is a hundred times slower
};
inline constexpr int kPolicies = 4;

class Disk;

struct Options {
  uint64_t seed = 0;
  Disk* disk = nullptr;                         // of its files, which are the system's without one
  std::optional<Policy> policy = std::nullopt;  // drawn from the seed unless given
  std::chrono::nanoseconds time_most = std::chrono::hours(24);  // of simulated time
};

struct Outcome {
  std::string finding;  // empty if the body came to its end; else each thread and what it waits for
  uint64_t trace = 0;   // hash of all calls in their order: thread, call and time
  uint64_t calls = 0, turns = 0, threads = 0;
  std::chrono::nanoseconds time{0};
};

// Runs `body` as the first thread of a simulated process, and returns when it has come to its end,
// or when no thread can go on. Threads that are left then stay where they are for ever: after a
// finding, all that they use must stay. One run at a time.
Outcome Simulate(const Options& options, std::function<void()> body);

}  // namespace tacit::sim
