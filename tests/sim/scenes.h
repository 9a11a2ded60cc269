#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sim/simulation.h"

// Small scenes with a class of base/threads, or with a copy that has a fault.
namespace tacit::sim {

// Each fault has to be found by one of them.
inline constexpr uint64_t kSeeds = 50;

// The end of a scene: the run may come to its end with a wrong result.
struct Played {
  Outcome outcome;
  bool right = false;
  bool well() const { return right && outcome.finding.empty(); }
};

// The body says if all went as it should.
inline Played Play(uint64_t seed, const std::function<bool()>& body) {
  const auto right = std::make_shared<bool>(false);
  Played played;
  played.outcome = Simulate({.seed = seed}, [right, body] { *right = body(); });
  played.right = *right;
  return played;
}

// Two writers, two readers, and room for two items: each item arrives once, and a reader sees the
// items of a writer in their order.
template <typename Queue>
Played PlayQueue(uint64_t seed) {
  return Play(seed, [] {
    constexpr int kItems = 10;
    constexpr size_t kRoom = 2;
    Queue queue(kRoom);
    std::mutex mutex;
    std::vector<int> arrived(2 * kItems);
    bool right = true;
    const auto write = [&](int writer) {
      for (int i = 0; i < kItems; ++i) right &= queue.Push(writer * kItems + i);
    };
    const auto read = [&] {
      int last[2] = {-1, -1};
      while (const auto item = queue.Pop()) {
        right &= queue.size() <= kRoom;
        const std::lock_guard lock(mutex);
        ++arrived[static_cast<size_t>(*item)];
        right &= last[*item / kItems] < *item;
        last[*item / kItems] = *item;
      }
    };
    std::thread first(read), second(read), writer(write, 0), other(write, 1);
    writer.join();
    other.join();
    queue.Close();
    first.join();
    second.join();
    return right && !queue.Push(0) && arrived == std::vector<int>(2 * kItems, 1);
  });
}

// Ten jobs, of which the owner awaits every second before it looks.
template <typename Side>
Played PlaySideThread(uint64_t seed) {
  return Play(seed, [] {
    int done = 0;
    bool right = true;
    {
      Side side("side");
      for (int job = 1; job <= 10; ++job) {
        side.Start([&] {
          std::this_thread::yield();
          ++done;
        });
        if (job % 2 == 1) continue;
        side.Wait();
        right &= done == job;
      }
      side.Start([&] { ++done; });
    }
    return right && done == 11;
  });
}

}  // namespace tacit::sim
