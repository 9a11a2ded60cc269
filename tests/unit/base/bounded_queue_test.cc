#include "base/threads/bounded_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tacit {
namespace {

using std::chrono::milliseconds;

TEST(BoundedQueue, KeepsOrder) {
  BoundedQueue<int> queue(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.Push(i));
  EXPECT_EQ(queue.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(queue.Pop(), i);
}

TEST(BoundedQueue, HoldsNoMoreThanItsCapacity) {
  BoundedQueue<int> queue(4);
  std::atomic<int> pushed = 0;
  std::thread writer([&] {
    for (int i = 0; i < 1000; ++i) {
      EXPECT_TRUE(queue.Push(i));
      ++pushed;
    }
  });
  for (int i = 0; i < 1000; ++i) {
    // Everything pushed was taken or is among the four.
    EXPECT_LE(pushed - i, 5);
    EXPECT_LE(queue.size(), 4u);
    EXPECT_EQ(queue.Pop(), i);
  }
  writer.join();
}

TEST(BoundedQueue, ClosingDrainsAndRefuses) {
  BoundedQueue<std::unique_ptr<int>> queue(2);
  EXPECT_TRUE(queue.Push(std::make_unique<int>(1)));
  queue.Close();
  EXPECT_FALSE(queue.closed_and_empty());
  EXPECT_FALSE(queue.Push(std::make_unique<int>(2)));
  const auto item = queue.Pop();
  ASSERT_TRUE(item);
  EXPECT_EQ(**item, 1);
  EXPECT_TRUE(queue.closed_and_empty());
  EXPECT_FALSE(queue.Pop());
}

TEST(BoundedQueue, ClosingWakesWaitingReadersAndWriters) {
  // Nothing tells whether a thread waits already; of this many rounds, some find both waiting.
  for (int round = 0; round < 200; ++round) {
    BoundedQueue<int> empty(1), full(1);
    EXPECT_TRUE(full.Push(1));
    std::atomic<int> begun = 0;
    std::thread reader([&] {
      ++begun;
      EXPECT_FALSE(empty.Pop());
    });
    std::thread writer([&] {
      ++begun;
      EXPECT_FALSE(full.Push(2));
    });
    while (begun < 2) std::this_thread::yield();
    for (int i = 0; i < round; ++i) std::this_thread::yield();
    empty.Close();
    full.Close();
    reader.join();
    writer.join();
    EXPECT_EQ(full.size(), 1u);
  }
}

TEST(BoundedQueue, PopForGivesUp) {
  BoundedQueue<int> queue(1);
  EXPECT_FALSE(queue.PopFor(milliseconds(1)));
  EXPECT_FALSE(queue.closed_and_empty());
  EXPECT_TRUE(queue.Push(7));
  EXPECT_EQ(queue.PopFor(milliseconds(1)), 7);
}

TEST(BoundedQueue, PushForGivesUpAndLeavesTheItem) {
  BoundedQueue<std::string> queue(1);
  std::string item = "a";
  EXPECT_TRUE(queue.PushFor(&item, milliseconds(1)));
  item = "b";
  EXPECT_FALSE(queue.PushFor(&item, milliseconds(1)));
  EXPECT_EQ(item, "b");
  EXPECT_FALSE(queue.closed());
  EXPECT_EQ(queue.Pop(), "a");
  queue.Close();
  EXPECT_FALSE(queue.PushFor(&item, milliseconds(1)));
  EXPECT_EQ(item, "b");
  EXPECT_TRUE(queue.closed());
}

TEST(BoundedQueue, ManyWritersAndReadersLoseNothing) {
  BoundedQueue<int> queue(8);
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> readers, writers;
  for (int t = 0; t < 3; ++t)
    readers.emplace_back([&] {
      while (const auto item = queue.Pop()) sum += *item;
    });
  for (int t = 0; t < 3; ++t)
    writers.emplace_back([&] {
      for (int i = 1; i <= 2000; ++i) EXPECT_TRUE(queue.Push(i));
    });
  for (auto& writer : writers) writer.join();
  queue.Close();
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(sum, 3 * 2000 * 2001 / 2);
}

}  // namespace
}  // namespace tacit
