#include "base/threads/worker_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

namespace tacit {
namespace {

using Parts = std::vector<std::tuple<size_t, size_t, size_t>>;  // worker, begin, end

Parts PartsOf(WorkerPool& pool, size_t n, size_t grain) {
  std::mutex mutex;
  Parts parts;
  pool.Run(
      n,
      [&](size_t begin, size_t end, size_t worker) {
        std::lock_guard lock(mutex);
        parts.emplace_back(worker, begin, end);
      },
      grain);
  std::sort(parts.begin(), parts.end());
  return parts;
}

TEST(WorkerPool, SplitsIntoContiguousPartsTheSameEveryTime) {
  for (size_t workers : {1u, 2u, 3u, 7u}) {
    WorkerPool pool({.workers = workers});
    EXPECT_EQ(pool.workers(), workers);
    for (size_t n : {0u, 1u, 2u, 5u, 64u, 1000u})
      for (size_t grain : {1u, 16u}) {
        const Parts parts = PartsOf(pool, n, grain);
        size_t next = 0;
        for (const auto& [worker, begin, end] : parts) {
          EXPECT_EQ(begin, next);
          EXPECT_LT(begin, end);
          EXPECT_EQ(begin % grain, 0u);
          EXPECT_LT(worker, workers);
          next = end;
        }
        EXPECT_EQ(next, n);
        EXPECT_EQ(PartsOf(pool, n, grain), parts);
      }
  }
}

TEST(WorkerPool, CallerIsWorkerZero) {
  WorkerPool pool({.workers = 2});
  std::array<std::thread::id, 2> ids;
  pool.Run(2, [&](size_t, size_t, size_t worker) { ids[worker] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], ids[0]);
}

TEST(WorkerPool, OneGrainIsForTheCallerAlone) {
  WorkerPool pool({.workers = 3});
  for (size_t n : {1u, 5u, 16u}) EXPECT_EQ(PartsOf(pool, n, 16), (Parts{{0, 0, n}}));
  EXPECT_EQ(PartsOf(pool, 17, 16).size(), 2u);
}

TEST(WorkerPool, ReturnsWhenEveryPartIsDoneManyTimesOver) {
  WorkerPool pool({.workers = 3, .idle_priority = true});
  std::vector<int> counts(300);
  for (int round = 1; round <= 2000; ++round) {
    pool.Run(counts.size(), [&](size_t begin, size_t end, size_t) {
      for (size_t i = begin; i < end; ++i) ++counts[i];
    });
    ASSERT_EQ(counts[0], round);
    ASSERT_EQ(counts[150], round);
    ASSERT_EQ(counts[299], round);
  }
}

}  // namespace
}  // namespace tacit
