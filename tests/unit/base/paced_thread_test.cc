#include "base/threads/paced_thread.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <semaphore>
#include <thread>

namespace tacit {
namespace {

constexpr std::chrono::hours kLong(1000);

TEST(PacedThread, AStopEndsARestAndAWait) {
  for (const bool rests : {false, true}) {
    PacedThread thread;
    std::binary_semaphore begun(0);
    bool going_on = true;
    thread.Start("test-paced", [&] {
      begun.release();
      going_on = rests ? thread.Rest(kLong) : thread.Await();
    });
    begun.acquire();
    thread.Stop();
    EXPECT_FALSE(going_on);
    EXPECT_TRUE(thread.stopping());
    thread.Stop();  // and once more is no harm
  }
}

TEST(PacedThread, StopsBehindThePieceOfWork) {
  PacedThread thread;
  std::binary_semaphore begun(0);
  int done = 0;
  thread.Start("test-paced", [&] {
    do {
      begun.release();
      while (!thread.stopping()) std::this_thread::yield();
      ++done;
    } while (thread.Rest(PacedThread::Seconds(0)));
  });
  begun.acquire();
  thread.Stop();
  EXPECT_EQ(done, 1);
}

TEST(PacedThread, AWakeEndsTheWaitUnderWayOrTheNext) {
  PacedThread thread;
  thread.Wake();  // before there is a wait
  std::counting_semaphore<> woken(0);
  thread.Start("test-paced", [&] {
    while (thread.Await(kLong)) woken.release();
  });
  woken.acquire();
  for (int i = 0; i < 100; ++i) {
    thread.Wake();
    woken.acquire();
  }
  thread.Stop();
  EXPECT_FALSE(woken.try_acquire());  // each wake ended one wait
}

TEST(PacedThread, AWaitEndsByItself) {
  PacedThread thread;
  std::binary_semaphore ended(0);
  thread.Start("test-paced", [&] {
    if (thread.Await(PacedThread::Seconds(1e-3)) && thread.Rest(PacedThread::Seconds(1e-3)))
      ended.release();
  });
  ended.acquire();
}

// A wake does not shorten a rest, however fast or slow the machine is, and a rest leaves it to the
// next wait.
TEST(PacedThread, ARestOutlastsAWake) {
  constexpr std::chrono::milliseconds kRest(20);
  PacedThread thread;
  std::binary_semaphore woken(0);
  std::chrono::steady_clock::duration took{};
  thread.Wake();
  thread.Start("test-paced", [&] {
    const auto begin = std::chrono::steady_clock::now();
    if (!thread.Rest(kRest)) return;
    took = std::chrono::steady_clock::now() - begin;
    if (thread.Await()) woken.release();
  });
  woken.acquire();
  EXPECT_GE(took, kRest);
}

TEST(PacedThread, EndsBeforeAllThatItUses) {
  struct Owner {
    explicit Owner(int* done) : done(done) {
      thread.Start("test-paced", [this] {
        while (thread.Await(PacedThread::Seconds(1e-4))) ++*used;
        *this->done = *used;
      });
    }
    int* const done;
    std::unique_ptr<int> used = std::make_unique<int>(0);
    PacedThread thread;
  };
  int done = -1;
  { const Owner owner(&done); }
  EXPECT_GE(done, 0);
  { const PacedThread never; }
}

}  // namespace
}  // namespace tacit
