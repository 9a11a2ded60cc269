// The classes of base/threads, and train/turns.h, under the simulation; and copies with a fault,
// each of which has to be found.
#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>

#include "base/threads/bounded_queue.h"
#include "base/threads/paced_thread.h"
#include "base/threads/side_thread.h"
#include "base/threads/worker_pool.h"
#include "planted/crossed_queue.h"
#include "planted/hasty_side_thread.h"
#include "planted/lossy_queue.h"
#include "sim/scenes.h"
#include "train/turns.h"

namespace tacit::sim {
namespace {

using Scene = std::function<Played(uint64_t seed)>;

void ExpectWell(const Scene& scene) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Played played = scene(seed);
    ASSERT_EQ(played.outcome.finding, "") << "seed " << seed;
    ASSERT_TRUE(played.right) << "seed " << seed;
    ASSERT_EQ(scene(seed).outcome.trace, played.outcome.trace) << "seed " << seed;
  }
}

// Prints how many seeds find the fault. The first gives the same trace and words again.
void ExpectFound(const Scene& scene) {
  int found = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Played played = scene(seed);
    if (played.well() || ++found > 1) continue;
    const Played again = scene(seed);
    EXPECT_EQ(again.outcome.trace, played.outcome.trace);
    EXPECT_EQ(again.outcome.finding, played.outcome.finding);
    std::printf("seed %d: %s\n", static_cast<int>(seed),
                played.outcome.finding.empty() ? "a wrong result" : played.outcome.finding.c_str());
  }
  std::printf("found by %d of %d seeds\n", found, static_cast<int>(kSeeds));
  EXPECT_GT(found, 0);
}

TEST(SimulatedThreads, AQueueHandsOnEachItemOnceAndInOrder) {
  ExpectWell(PlayQueue<BoundedQueue<int>>);
}

TEST(SimulatedThreads, AQueueThatDoesNotTellItsWritersOfRoomIsFound) {
  ExpectFound(PlayQueue<LossyQueue<int>>);
}

TEST(SimulatedThreads, AQueueThatTakesItsLocksInTwoOrdersIsFound) {
  ExpectFound(PlayQueue<CrossedQueue<int>>);
}

TEST(SimulatedThreads, ASideThreadIsAwaited) { ExpectWell(PlaySideThread<SideThread>); }

TEST(SimulatedThreads, ASideThreadWhoseWaitDoesNotLookAgainIsFound) {
  ExpectFound(PlaySideThread<HastySideThread>);
}

TEST(SimulatedThreads, TurnsPutThreadsIntoOrder) {
  ExpectWell([](uint64_t seed) {
    return Play(seed, [] {
      train::Turns turns;
      std::vector<uint64_t> order;
      std::vector<std::thread> threads;
      for (uint64_t thread = 0; thread < 3; ++thread)
        threads.emplace_back([&, thread] {
          for (uint64_t ticket = thread; turns.Await(ticket); ticket += 3) {
            order.push_back(ticket);
            if (ticket == 20)
              turns.Close();
            else
              turns.Next();
          }
        });
      for (std::thread& thread : threads) thread.join();
      std::vector<uint64_t> expected(21);
      std::iota(expected.begin(), expected.end(), 0);
      return order == expected;
    });
  });
}

TEST(SimulatedThreads, WorkersDoAllPartsOfEachRound) {
  ExpectWell([](uint64_t seed) {
    return Play(seed, [] {
      WorkerPool pool({.workers = 3});
      std::vector<int> done(100);
      bool right = true;
      for (int round = 1; round <= 5; ++round) {
        pool.Run(
            done.size(),
            [&](size_t begin, size_t end, size_t) {
              for (size_t i = begin; i < end; ++i) ++done[i];
              std::this_thread::yield();
            },
            8);
        right &= done == std::vector<int>(done.size(), round);
      }
      return right;
    });
  });
}

TEST(SimulatedThreads, APacedThreadRestsWakesAndStops) {
  ExpectWell([](uint64_t seed) {
    return Play(seed, [] {
      const auto begin = std::chrono::steady_clock::now();
      int rests = 0, wakes = 0;
      PacedThread thread;
      BoundedQueue<int> said(100);
      thread.Start("paced", [&] {
        while (rests < 3 && thread.Rest(std::chrono::hours(1))) ++rests;
        while (thread.Await()) said.Push(++wakes);
      });
      bool right = true;
      for (int i = 1; i <= 3; ++i) {
        thread.Wake();
        right &= said.Pop() == i;
      }
      thread.Stop();
      const auto took = std::chrono::steady_clock::now() - begin;
      return right && rests == 3 && took >= std::chrono::hours(3) && took < std::chrono::hours(4);
    });
  });
}

}  // namespace
}  // namespace tacit::sim
