#pragma once

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/simulation.h"

namespace tacit::sim {

// Decisions are hashes of this seed and of who decides, never the next number of one stream.
uint64_t Mix(uint64_t a, uint64_t b);

// The reading of this clock at the start of a run, in nanoseconds.
int64_t StartOf(clockid_t clock);

// Calls at which a thread may lose its turn. The numbers go into the trace.
enum class Call : uint8_t {
  kLock = 1,
  kTryLock,
  kUnlock,
  kWait,
  kNotify,
  kReadLock,
  kWriteLock,
  kOnce,
  kFutexWait,
  kFutexWake,
  kCreate,
  kJoin,
  kDetach,
  kYield,
  kSleep,
  kTime,
  kRandom,
  kFile,
};

enum class WaitsFor : uint8_t {
  kNothing,
  kMutex,
  kReading,
  kWriting,
  kNotice,
  kThread,
  kTime,
  kEnd
};

struct Thread {
  uint64_t identity = 0;  // from its parent's, and its number among the parent's children
  uint32_t number = 0;    // by birth
  std::string name;
  uint64_t calls = 0, children = 0, draws = 0, calls_in_turn = 0;
  int64_t rank = 0;  // under kPriorities the greatest runs

  WaitsFor waits_for = WaitsFor::kNothing;
  const void* object = nullptr;  // a lock, a condition, a futex or a Thread
  std::optional<int64_t> deadline;

  void* (*start)(void*) = nullptr;
  void* argument = nullptr;
  void* result = nullptr;
  pthread_t real{};
  void* stack = nullptr;
  std::atomic<uint32_t> baton{0};  // a futex: 1 once it is the thread's turn
};

// Decides who runs, and knows what is locked and what time it is. The thread that runs calls it,
// except for Run.
class Scheduler {
 public:
  explicit Scheduler(const Options& options);

  // The simulation and the simulated thread that the caller belongs to; null outside.
  static Scheduler* current();
  static Thread& self();

  // Runs the body. The scheduler may go afterwards if Run says that no thread is left.
  Outcome Run(std::function<void()> body, bool* left);

  // The caller is about to make this call: its turn may end here. Returns a number that depends on
  // the seed, the thread and the number of its calls.
  uint64_t Point(Call call);
  // Waits until there is nothing more to wait for. Returns false if the deadline came first.
  bool Wait(WaitsFor what, const void* object, std::optional<int64_t> deadline = std::nullopt);
  // Ends the wait of up to `most` threads for a notice of this object, drawn by `draw`. Returns
  // their number.
  int Notify(const void* object, int most, uint64_t draw);
  // Gives the turn to another thread, if one can run.
  void Yield(uint64_t draw);

  // Nanoseconds since the start. Each reading takes 1 us.
  int64_t Read();
  int64_t now() const { return now_; }
  uint64_t Random();

  int Create(pthread_t* id, void* (*start)(void*), void* argument);
  Thread* Find(pthread_t id);
  Disk* disk() const { return disk_; }
  // Sends the process SIGTERM. The thread that waits for signals takes it.
  void Terminate() { terminated_ = true; }
  bool TakeTermination() { return std::exchange(terminated_, false); }
  bool chaotic() const { return policy_ != Policy::kCalm; }

  // Mutexes that are held; conditions and futexes have no state but their waiters.
  struct Held {
    Thread* owner = nullptr;
    uint32_t times = 0;
  };
  struct Shared {
    Thread* writer = nullptr;
    uint32_t readers = 0;
  };
  std::map<const void*, Held> mutexes;
  std::map<const void*, Shared> shared;

  // Ends the run with this finding. The caller's thread stays here for ever.
  [[noreturn]] void GiveUp(const std::string& why);

 private:
  static void* Start(void* thread);
  static void Leave(void* round);

  Thread* Add(uint64_t identity, void* (*start)(void*), void* argument);
  void* Stack(uint32_t number);
  bool LosesTurn(Thread& thread, Call call, uint64_t draw);
  bool IsSlow(const Thread& thread) const;
  bool CanRun(const Thread& thread) const;
  // The thread that runs next, null if none can and time has nowhere to go.
  Thread* Choose(uint64_t draw, const Thread* not_this);
  void Give(Thread* next);
  void AwaitBaton(Thread& thread);
  void End();
  void FindCircle(const Thread& thread);
  std::string Report(const std::string& what);
  void Stop();

  const uint64_t seed_;
  Disk* const disk_;
  const int64_t time_most_;
  Policy policy_;
  uint64_t gap_ = 0;
  uint64_t falls_[3] = {};
  int64_t lowest_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::map<const void*, size_t> numbers_;  // of objects, in reports
  std::function<void()> body_;
  Outcome outcome_;
  int64_t now_ = 0;
  bool terminated_ = false;
  Thread* ended_ = nullptr;  // its real thread is to be joined by the next that runs
  std::atomic<uint64_t> progress_{0};
  std::atomic<uint32_t> stopped_{0};  // a futex
};

}  // namespace tacit::sim
