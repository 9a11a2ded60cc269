#include "sim/scheduler.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "sim/native.h"

namespace tacit::sim {
namespace {

constexpr size_t kStackBytes = size_t{8} << 20, kStackSpacing = size_t{16} << 20;
constexpr uintptr_t kStacks = uintptr_t{0x2000} << 32, kNextStacks = uintptr_t{1} << 38;
constexpr uint64_t kTurnMost = 20'000;  // calls under any policy: others go on beside a spin
constexpr time_t kPatienceSeconds = 60;

Scheduler* g_current = nullptr;
thread_local Thread* t_self = nullptr;
pthread_key_t g_leave_key;

void AwaitWord(std::atomic<uint32_t>& word, const timespec* timeout = nullptr) {
  RawCall(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAIT_PRIVATE, 0,
          reinterpret_cast<long>(timeout));
}

void SetWord(std::atomic<uint32_t>& word) {
  word.store(1);
  RawCall(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAKE_PRIVATE, 1);
}

const char* Words(WaitsFor what) {
  switch (what) {
    case WaitsFor::kNothing:
      return "can run";
    case WaitsFor::kMutex:
      return "waits for mutex";
    case WaitsFor::kReading:
      return "waits to read under lock";
    case WaitsFor::kWriting:
      return "waits to write under lock";
    case WaitsFor::kNotice:
      return "waits for a notice of condition";
    case WaitsFor::kThread:
      return "waits for the end of";
    case WaitsFor::kTime:
      return "sleeps";
    case WaitsFor::kEnd:
      return "has ended";
  }
  return "";
}

}  // namespace

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

Scheduler::Scheduler(const Options& options)
    : seed_(Mix(options.seed, 0)),
      disk_(options.disk),
      time_most_(options.time_most.count()),
      policy_(options.policy.value_or(static_cast<Policy>(Mix(seed_, 1) % kPolicies))),
      gap_(uint64_t{2} << Mix(seed_, 2) % 14) {
  for (uint64_t i = 0; i < 3; ++i)
    falls_[i] = 1 + Mix(seed_, 3 + i) % (uint64_t{16} << Mix(seed_, 6 + i) % 14);
}

Scheduler* Scheduler::current() { return t_self == nullptr ? nullptr : g_current; }
Thread& Scheduler::self() { return *t_self; }

Outcome Scheduler::Run(std::function<void()> body, bool* left) {
  static const int key_made = TACIT_NATIVE(pthread_key_create)(&g_leave_key, Leave);
  if (key_made != 0) std::abort();
  g_current = this;
  body_ = std::move(body);
  Thread* first = Add(Mix(seed_, 100), nullptr, nullptr);
  first->name = "body";
  Give(first);
  uint64_t seen = 0;
  while (stopped_.load() == 0) {
    const timespec patience{.tv_sec = kPatienceSeconds, .tv_nsec = 0};
    AwaitWord(stopped_, &patience);
    const uint64_t now = progress_.load();
    if (stopped_.load() == 0 && now == std::exchange(seen, now)) {
      std::fprintf(stderr, "a thread keeps its turn for a minute, and makes no call\n");
      std::abort();
    }
  }
  g_current = nullptr;
  if (ended_ != nullptr) TACIT_NATIVE(pthread_join)(ended_->real, nullptr);
  *left = false;
  for (const auto& thread : threads_) {
    if (thread->waits_for == WaitsFor::kEnd)
      munmap(thread->stack, kStackBytes);
    else
      *left = true;
  }
  outcome_.threads = threads_.size();
  outcome_.time = std::chrono::nanoseconds(now_);
  return outcome_;
}

void* Scheduler::Stack(uint32_t number) {
  for (uintptr_t region = kStacks;; region += kNextStacks) {
    void* const wanted = reinterpret_cast<void*>(region + number * kStackSpacing);
    void* const got =
        mmap(wanted, kStackBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == wanted) return got;
    if (got != MAP_FAILED) munmap(got, kStackBytes);
    if (region > kStacks + 200 * kNextStacks) std::abort();
  }
}

Thread* Scheduler::Add(uint64_t identity, void* (*start)(void*), void* argument) {
  auto& thread = *threads_.emplace_back(std::make_unique<Thread>());
  thread.identity = identity;
  thread.number = static_cast<uint32_t>(threads_.size() - 1);
  thread.name = "thread " + std::to_string(thread.number);
  thread.rank = static_cast<int64_t>(Mix(identity, seed_) >> 2);
  thread.start = start;
  thread.argument = argument;
  thread.stack = Stack(thread.number);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, thread.stack, kStackBytes);
  const int failed = TACIT_NATIVE(pthread_create)(&thread.real, &attributes, Start, &thread);
  pthread_attr_destroy(&attributes);
  if (failed != 0) std::abort();
  return &thread;
}

int Scheduler::Create(pthread_t* id, void* (*start)(void*), void* argument) {
  Point(Call::kCreate);
  Thread& parent = *t_self;
  *id = Add(Mix(parent.identity, ++parent.children), start, argument)->real;
  return 0;
}

Thread* Scheduler::Find(pthread_t id) {
  for (const auto& thread : threads_)
    if (thread->real == id) return thread.get();
  return nullptr;
}

void* Scheduler::Start(void* argument) {
  Thread& thread = *static_cast<Thread*>(argument);
  Scheduler& world = *g_current;
  world.AwaitBaton(thread);
  t_self = &thread;
  if (thread.number == 0) {
    world.body_();
    t_self = nullptr;
    thread.waits_for = WaitsFor::kEnd;
    world.ended_ = &thread;
    world.Stop();
    return nullptr;
  }
  pthread_setspecific(g_leave_key, reinterpret_cast<void*>(uintptr_t{1}));
  thread.result = thread.start(thread.argument);
  return thread.result;
}

// The C library calls this after the destructors of the thread's own variables, once a round; in
// its last round the destructors of other keys have had theirs, and the thread is over.
void Scheduler::Leave(void* round) {
  const uintptr_t number = reinterpret_cast<uintptr_t>(round);
  if (number < PTHREAD_DESTRUCTOR_ITERATIONS)
    pthread_setspecific(g_leave_key, reinterpret_cast<void*>(number + 1));
  else
    g_current->End();
}

void Scheduler::End() {
  Thread& thread = *std::exchange(t_self, nullptr);
  thread.waits_for = WaitsFor::kEnd;
  ended_ = &thread;
  Thread* const next = Choose(Mix(Mix(seed_, thread.identity), ++thread.calls), nullptr);
  if (next != nullptr)
    Give(next);
  else
    Stop();
}

void Scheduler::Stop() { SetWord(stopped_); }

void Scheduler::Give(Thread* next) {
  ++outcome_.turns;
  next->calls_in_turn = 0;
  SetWord(next->baton);
}

void Scheduler::AwaitBaton(Thread& thread) {
  while (thread.baton.load() == 0) AwaitWord(thread.baton);
  thread.baton.store(0);
  if (Thread* const ended = std::exchange(ended_, nullptr))
    TACIT_NATIVE(pthread_join)(ended->real, nullptr);
}

uint64_t Scheduler::Point(Call call) {
  Thread& thread = *t_self;
  const uint64_t draw = Mix(Mix(seed_, thread.identity), ++thread.calls);
  progress_.store(++outcome_.calls, std::memory_order_relaxed);
  const int64_t factor = IsSlow(thread) ? 100 : 1;
  now_ += static_cast<int64_t>(draw >> 32) % 5'000 * factor;
  outcome_.trace = Mix(outcome_.trace, Mix(thread.identity, static_cast<uint64_t>(call)));
  outcome_.trace = Mix(outcome_.trace, static_cast<uint64_t>(now_));
  if (LosesTurn(thread, call, draw)) Yield(draw);
  return draw;
}

bool Scheduler::LosesTurn(Thread& thread, Call call, uint64_t draw) {
  const bool too_long = ++thread.calls_in_turn > kTurnMost;
  if (policy_ == Policy::kPriorities) {
    bool falls = too_long || call == Call::kYield;
    for (const uint64_t fall : falls_) falls = falls || outcome_.calls == fall;
    if (falls) thread.rank = --lowest_;
    return true;
  }
  if (too_long || call == Call::kYield) return true;
  return policy_ != Policy::kCalm && (draw % gap_ == 0 || IsSlow(thread));
}

bool Scheduler::IsSlow(const Thread& thread) const {
  return policy_ == Policy::kSlow && thread.identity % 4 == 0;
}

bool Scheduler::CanRun(const Thread& thread) const {
  if (thread.deadline && *thread.deadline <= now_) return true;
  switch (thread.waits_for) {
    case WaitsFor::kNothing:
      return true;
    case WaitsFor::kMutex:
      return !mutexes.contains(thread.object);
    case WaitsFor::kReading: {
      const auto found = shared.find(thread.object);
      return found == shared.end() || found->second.writer == nullptr;
    }
    case WaitsFor::kWriting:
      return !shared.contains(thread.object);
    case WaitsFor::kThread:
      return static_cast<const Thread*>(thread.object)->waits_for == WaitsFor::kEnd;
    case WaitsFor::kNotice:
    case WaitsFor::kTime:
    case WaitsFor::kEnd:
      return false;
  }
  return false;
}

Thread* Scheduler::Choose(uint64_t draw, const Thread* not_this) {
  while (true) {
    Thread* best = nullptr;
    int64_t best_rank = 0;
    std::optional<int64_t> next;
    for (const auto& thread : threads_) {
      if (thread.get() == not_this) continue;
      if (!CanRun(*thread)) {
        if (thread->deadline && (!next || *thread->deadline < *next)) next = thread->deadline;
        continue;
      }
      const int64_t rank = policy_ == Policy::kPriorities
                               ? thread->rank
                               : static_cast<int64_t>(Mix(draw, thread->identity) >> 1);
      if (best == nullptr || rank > best_rank) best = thread.get(), best_rank = rank;
    }
    if (best != nullptr || not_this != nullptr) return best;
    if (!next) {
      outcome_.finding = Report("no thread can run");
      return nullptr;
    }
    now_ = *next;
    if (now_ > time_most_) {
      outcome_.finding = Report("the time is over");
      return nullptr;
    }
  }
}

void Scheduler::Yield(uint64_t draw) {
  Thread& thread = *t_self;
  // The first in rank goes on, if it is the caller.
  const bool stays = policy_ == Policy::kPriorities;
  Thread* const next = Choose(draw, stays ? nullptr : &thread);
  if (next == nullptr || next == &thread) return;
  Give(next);
  AwaitBaton(thread);
}

bool Scheduler::Wait(WaitsFor what, const void* object, std::optional<int64_t> deadline) {
  Thread& thread = *t_self;
  thread.waits_for = what;
  thread.object = object;
  thread.deadline = deadline;
  if (what == WaitsFor::kMutex) FindCircle(thread);
  Thread* const next = Choose(Mix(Mix(seed_, thread.identity), ~thread.calls), nullptr);
  if (next == nullptr) {
    Stop();
    while (true) AwaitBaton(thread);
  }
  if (next != &thread) {
    Give(next);
    AwaitBaton(thread);
  }
  const bool in_vain = what == WaitsFor::kNotice && thread.waits_for == WaitsFor::kNotice;
  thread.waits_for = WaitsFor::kNothing;
  thread.deadline.reset();
  return !in_vain;
}

int Scheduler::Notify(const void* object, int most, uint64_t draw) {
  int notified = 0;
  while (notified < most) {
    Thread* best = nullptr;
    for (const auto& thread : threads_)
      if (thread->waits_for == WaitsFor::kNotice && thread->object == object &&
          (best == nullptr || Mix(draw, thread->identity) > Mix(draw, best->identity)))
        best = thread.get();
    if (best == nullptr) break;
    best->waits_for = WaitsFor::kNothing;
    best->deadline.reset();
    ++notified;
  }
  return notified;
}

int64_t Scheduler::Read() {
  Point(Call::kTime);
  return now_ += 1'000;
}

uint64_t Scheduler::Random() {
  Thread& thread = *t_self;
  return Mix(Mix(~seed_, thread.identity), ++thread.draws);
}

void Scheduler::FindCircle(const Thread& thread) {
  const Thread* next = &thread;
  while (next->waits_for == WaitsFor::kMutex) {
    const auto held = mutexes.find(next->object);
    if (held == mutexes.end()) return;
    next = held->second.owner;
    if (next == &thread) GiveUp("threads wait for each other's mutexes");
  }
}

void Scheduler::GiveUp(const std::string& why) {
  outcome_.finding = Report(why);
  Stop();
  while (true) AwaitBaton(*t_self);
}

std::string Scheduler::Report(const std::string& what) {
  const auto number = [&](const void* object) {
    return std::to_string(numbers_.emplace(object, numbers_.size() + 1).first->second);
  };
  std::string text = what + " after " + std::to_string(now_ / 1000) + " us";
  for (const auto& thread : threads_) {
    if (thread->waits_for == WaitsFor::kEnd) continue;
    text += "\n  " + thread->name + " " + Words(thread->waits_for);
    if (thread->waits_for == WaitsFor::kThread)
      text += " " + static_cast<const Thread*>(thread->object)->name;
    else if (thread->waits_for != WaitsFor::kNothing && thread->waits_for != WaitsFor::kTime)
      text += " " + number(thread->object);
    if (thread->deadline) text += " until " + std::to_string(*thread->deadline / 1000) + " us";
  }
  // By number: addresses are no part of a run.
  std::map<size_t, std::string> holders;
  for (const auto& [mutex, held] : mutexes)
    if (const auto found = numbers_.find(mutex); found != numbers_.end())
      holders[found->second] = held.owner->name;
  for (const auto& [mutex, holder] : holders)
    text += "\n  " + holder + " holds mutex " + std::to_string(mutex);
  return text;
}

Outcome Simulate(const Options& options, std::function<void()> body) {
  auto scheduler = std::make_unique<Scheduler>(options);
  bool left = false;
  const Outcome outcome = scheduler->Run(std::move(body), &left);
  // A thread that stays for ever stands on it.
  if (left) [[maybe_unused]]
    Scheduler* const kept = scheduler.release();
  return outcome;
}

}  // namespace tacit::sim
