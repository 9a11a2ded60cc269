// The simulator itself: what it promises of one seed, and of the C library's calls.
#include "sim/simulation.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "sim/scenes.h"

namespace tacit::sim {
namespace {

using std::chrono::hours;
using std::chrono::steady_clock;

std::vector<std::thread> Start(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  return threads;
}

void JoinAll(std::vector<std::thread> threads) {
  for (std::thread& thread : threads) thread.join();
}

// Threads that add to one number: the reading and the writing are apart.
int Sum(uint64_t seed, bool locked, Outcome* outcome) {
  auto sum = std::make_shared<std::atomic<int>>(0);
  *outcome = Simulate({.seed = seed}, [&] {
    std::mutex mutex, other;
    const std::function<void(int)> add = [&](int) {
      for (int i = 0; i < 20; ++i) {
        std::mutex own;
        const std::lock_guard lock(locked ? mutex : own);
        const int before = *sum;
        { const std::lock_guard between(other); }
        *sum = before + 1;
      }
    };
    JoinAll(Start(4, add));
  });
  return *sum;
}

TEST(Simulation, OneSeedGivesOneTraceAndOtherSeedsGiveOthers) {
  std::set<uint64_t> traces;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Outcome first, second;
    Sum(seed, true, &first);
    Sum(seed, true, &second);
    EXPECT_EQ(first.finding, "");
    EXPECT_EQ(first.trace, second.trace) << "seed " << seed;
    EXPECT_EQ(first.calls, second.calls);
    EXPECT_EQ(first.turns, second.turns);
    EXPECT_EQ(first.time, second.time);
    EXPECT_EQ(first.threads, 5);
    traces.insert(first.trace);
  }
  EXPECT_EQ(traces.size(), kSeeds);
}

TEST(Simulation, AMutexKeepsOthersOutAndWithoutItUpdatesAreLost) {
  int lost = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Outcome outcome;
    EXPECT_EQ(Sum(seed, true, &outcome), 80) << "seed " << seed;
    lost += Sum(seed, false, &outcome) < 80;
  }
  EXPECT_GT(lost, 10);
  EXPECT_LT(lost, kSeeds);  // the calm policy loses none
}

TEST(Simulation, TimePassesInWaitsAndNowhereElse) {
  const Outcome outcome = Simulate({.seed = 1, .policy = Policy::kCalm}, [] {
    const auto begin = steady_clock::now();
    std::this_thread::sleep_for(hours(2));
    const auto slept = steady_clock::now() - begin;
    EXPECT_GE(slept, hours(2));
    EXPECT_LT(slept, hours(2) + std::chrono::milliseconds(1));

    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock(mutex);
    EXPECT_EQ(never.wait_for(lock, hours(1)), std::cv_status::timeout);
    EXPECT_EQ(never.wait_until(lock, std::chrono::system_clock::now() + hours(1)),
              std::cv_status::timeout);
    const auto waited = steady_clock::now() - begin;
    EXPECT_GE(waited, hours(4));
    EXPECT_LT(waited, hours(4) + std::chrono::milliseconds(1));
  });
  EXPECT_EQ(outcome.finding, "");
  EXPECT_GE(outcome.time, hours(4));
}

TEST(Simulation, AWaitOnTheClockAloneEnds) {
  for (const Policy policy : {Policy::kCalm, Policy::kGaps, Policy::kPriorities, Policy::kSlow}) {
    const Outcome outcome = Simulate({.seed = 1, .policy = policy}, [] {
      const auto end = steady_clock::now() + std::chrono::milliseconds(20);
      while (steady_clock::now() < end) {
      }
      std::atomic<bool> done = false;
      std::thread other([&] { done = true; });
      while (!done) std::this_thread::yield();
      other.join();
    });
    EXPECT_EQ(outcome.finding, "");
  }
}

// Readers and writers of two numbers that are equal whenever nobody writes.
TEST(Simulation, WritersAreAloneAndReadersAreNot) {
  int together = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Outcome outcome = Simulate({.seed = seed}, [&] {
      std::shared_mutex mutex;
      std::mutex between;
      int left = 0, right = 0, readers = 0;
      const std::function<void(int)> body = [&](int thread) {
        for (int i = 0; i < 10; ++i) {
          if (thread == 0) {
            const std::unique_lock lock(mutex);
            EXPECT_EQ(readers, 0);
            ++left;
            { const std::lock_guard point(between); }
            ++right;
          } else {
            const std::shared_lock lock(mutex);
            together += ++readers > 1;
            { const std::lock_guard point(between); }
            EXPECT_EQ(left, right);
            --readers;
          }
        }
      };
      JoinAll(Start(4, body));
      EXPECT_EQ(left, 10);
    });
    EXPECT_EQ(outcome.finding, "") << "seed " << seed;
  }
  EXPECT_GT(together, 0);
}

TEST(Simulation, FuturesOnceAndAtomicWaitsGoThroughTheFutexOfTheSimulation) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Outcome outcome = Simulate({.seed = seed}, [] {
      std::atomic<int> turn = 0;
      auto answer = std::async(std::launch::async, [&] {
        turn.wait(0);
        return turn.load();
      });
      auto once = std::make_unique<std::once_flag>();
      int calls = 0;
      const std::function<void(int)> body = [&](int) {
        std::call_once(*once, [&] {
          std::this_thread::yield();
          ++calls;
        });
        EXPECT_EQ(calls, 1);
      };
      JoinAll(Start(3, body));
      EXPECT_EQ(answer.wait_for(hours(1)), std::future_status::timeout);
      turn = 7;
      turn.notify_one();
      EXPECT_EQ(answer.get(), 7);
    });
    EXPECT_EQ(outcome.finding, "") << "seed " << seed;
  }
}

// A thread's variable, and a value that C code keeps for it: the ends of both take time.
struct Last {
  int* ended = nullptr;
  ~Last() {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    std::this_thread::sleep_for(std::chrono::seconds(1));
    ++*ended;
  }
};

TEST(Simulation, AThreadEndsAfterTheDestructorsOfItsVariables) {
  pthread_key_t key;
  ASSERT_EQ(
      pthread_key_create(&key, [](void* ended) { delete new Last{static_cast<int*>(ended)}; }), 0);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    int ended = 0;
    const Outcome outcome = Simulate({.seed = seed}, [&] {
      const std::function<void(int)> body = [&](int) {
        thread_local Last last;
        last.ended = &ended;
        pthread_setspecific(key, &ended);
      };
      JoinAll(Start(3, body));
      EXPECT_EQ(ended, 6);
    });
    EXPECT_EQ(outcome.finding, "") << "seed " << seed;
    EXPECT_GE(outcome.time, std::chrono::seconds(6));
  }
  pthread_key_delete(key);
}

TEST(Simulation, ARunThatCannotGoOnNamesItsThreadsAndWhatTheyWaitFor) {
  struct Two {
    std::mutex first, second;
  };
  // Both stay after the run, as its threads do.
  auto* const two = new Two;
  bool found = false;
  for (uint64_t seed = 0; seed < kSeeds && !found; ++seed) {
    const Outcome outcome = Simulate({.seed = seed}, [two] {
      std::thread other([two] {
        pthread_setname_np(pthread_self(), "other");
        const std::scoped_lock one(two->first);
        const std::scoped_lock both(two->second);
      });
      {
        const std::scoped_lock one(two->second);
        const std::scoped_lock both(two->first);
      }
      other.join();
    });
    if (outcome.finding.empty()) continue;
    found = true;
    EXPECT_NE(outcome.finding.find("wait for each other's mutexes"), std::string::npos);
    EXPECT_NE(outcome.finding.find("other 1 waits for mutex"), std::string::npos);
    EXPECT_NE(outcome.finding.find("body holds mutex"), std::string::npos);
  }
  EXPECT_TRUE(found);

  const Outcome alone = Simulate({.seed = 3}, [] {
    auto* const never = new std::condition_variable;
    auto* const mutex = new std::mutex;
    std::unique_lock lock(*mutex);
    never->wait(lock, [] { return false; });
  });
  EXPECT_NE(alone.finding.find("no thread can run"), std::string::npos) << alone.finding;
  EXPECT_NE(alone.finding.find("body waits for a notice"), std::string::npos) << alone.finding;

  const Outcome late = Simulate({.seed = 3, .time_most = hours(2)}, [] {
    while (true) std::this_thread::sleep_for(hours(1));
  });
  EXPECT_NE(late.finding.find("the time is over"), std::string::npos) << late.finding;
}

}  // namespace
}  // namespace tacit::sim
