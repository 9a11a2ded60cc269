#include "cuda/device/emulator.h"

#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cuda/device/fiber.h"

namespace tacit::cuda::emulator {
namespace {

using runtime::Extent;

constexpr uint32_t kLanes = 32;
constexpr unsigned char kNeverWritten = 0xCD;
constexpr size_t kSharedAlignment = 128;
constexpr uint32_t kSharedBegin = 1024;
constexpr size_t kFreshFibersMax = 512;

struct Block;

struct Thread {
  Place place;
  Block* block = nullptr;
  Fiber* fiber = nullptr;  // once it has begun
  void* timeline = nullptr;
  bool done = false;
  const char* at = "has not begun";  // for messages
  Line line;
  // Copies that were started and not carried out: closed groups, oldest first, and the open one.
  std::vector<std::vector<AsyncCopy>> groups;
  std::vector<AsyncCopy> open_group;
  // Products that were started and not computed, oldest first, and the groups that were closed.
  std::deque<std::pair<uint64_t, AsyncProduct>> products;
  uint64_t groups_of_products = 0;
};

struct Collective {
  Block* block = nullptr;
  uint32_t warp = 0;
  uint32_t mask = 0, arrived = 0, reading = 0;
  const char* what = "";
  Line line;
  bool fence = false;
  char fence_token = 0;
  alignas(16) std::array<unsigned char[Meeting::kBytesMax], kLanes> brought;
};

struct FreeShared {
  void operator()(void* memory) const { std::free(memory); }
};

struct Block {
  std::vector<Thread> threads;
  std::unique_ptr<void, FreeShared> shared;
  size_t shared_bytes = 0;
  size_t alive = 0;
  // The barrier: the threads that wait, and where the first of them stands. Signals of one barrier
  // and the next are kept apart, or a fast thread's next signal would order too much.
  std::vector<Thread*> at_barrier;
  Line barrier_line;
  uint64_t generation = 0;
  char barrier_token[2] = {};
  std::vector<std::vector<std::unique_ptr<Collective>>> warps;  // those not complete
  std::vector<std::unique_ptr<TileCopy>> tiles;                 // on their way
  std::vector<Thread*> at_counters;
};

// The contents of a Counter's word.
struct Count {
  int32_t bytes;  // that are still to come
  uint16_t arrivals;
  uint16_t missing : 15, phase : 1;
};
constexpr uint16_t kArrivalsMost = 1024;
// One for each parity: signals of one phase and the next are kept apart.
void* TokenOf(const Counter* counter, uint32_t parity) {
  return const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(counter)) + parity;
}

bool Same(Line a, Line b) { return a.line == b.line && std::strcmp(a.file, b.file) == 0; }

std::string Text(Line line) { return std::string(line.file) + ":" + std::to_string(line.line); }

class Machine {
 public:
  Machine() {
    if (const char* seed = std::getenv("TACIT_EMULATOR_SEED"))
      SetSeed(std::strtoull(seed, nullptr, 10), resident_max_);
  }
  void SetSeed(uint64_t seed, unsigned resident_blocks) {
    TACIT_CHECK(resident_blocks > 0);
    seed_ = state_ = seed;
    resident_max_ = resident_blocks;
  }
  uint64_t switches() const { return switches_; }
  // SplitMix64.
  uint64_t Draw(uint64_t n) {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % n;
  }

  Thread& self() {
    TACIT_CHECK(self_ != nullptr, "a kernel's function was called outside a kernel");
    return *self_;
  }
  void Run(const char* name, const runtime::LaunchShape& shape, const std::function<void()>& body);
  void SyncBlock(Line line);
  Collective* Meet(uint32_t mask, const char* what, Line line, const void* mine, size_t bytes,
                   bool fence);
  static void Part(Collective* collective);
  Count CountOf(const Counter* counter);
  void Put(Counter* counter, Count count);
  void AwaitCounters(Line line);
  void WakeCounters(Block& block);
  [[noreturn]] void Die(const std::string& why);

 private:
  void Admit(uint64_t number);
  void RunFiber(Thread* thread);
  void FiberBody();
  void Finish(Thread& thread);
  void OpenBarrier(Block& block);
  void GiveTurnAway(const char* at, Line line);
  Thread* TakeReady();
  Thread* TakeUnstarted();

  uint64_t seed_ = 1, state_ = 1, switches_ = 0;
  unsigned resident_max_ = 3;

  // The kernel that runs.
  const char* name_ = "";
  runtime::LaunchShape shape_;
  const std::function<void()>* body_ = nullptr;
  std::vector<std::unique_ptr<Block>> blocks_;  // all that were admitted, kept until the end
  size_t resident_ = 0;
  std::vector<Thread*> ready_;
  Thread* self_ = nullptr;
  char begin_token_ = 0, end_token_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  // Free fibers, and fibers that become free at the end of this kernel: threads that share a stack
  // are ordered, one after the other, which could hide a race of theirs from tsan.
  std::vector<Fiber*> idle_, used_;
};

// Lives as long as the process, like the device.
Machine& TheMachine() {
  static Machine& machine = *new Machine;
  return machine;
}

void Machine::Die(const std::string& why) {
  std::fprintf(stderr, "emulated kernel %s (seed %llu): %s\n", name_,
               static_cast<unsigned long long>(seed_), why.c_str());
  int told = 0;
  for (const auto& block : blocks_) {
    for (const Thread& thread : block->threads) {
      if (thread.done || ++told > 6) continue;
      std::fprintf(stderr, "  block %u,%u,%u thread %u: %s %s\n", thread.place.block.x,
                   thread.place.block.y, thread.place.block.z, thread.place.rank, thread.at,
                   thread.line.line > 0 ? Text(thread.line).c_str() : "");
    }
  }
  std::abort();
}

Extent Nth(uint64_t n, const Extent& of) {
  return {static_cast<uint32_t>(n % of.x), static_cast<uint32_t>(n / of.x % of.y),
          static_cast<uint32_t>(n / of.x / of.y)};
}

// Begins a block: its shared memory, its threads.
void Machine::Admit(uint64_t number) {
  auto block = std::make_unique<Block>();
  const size_t threads = shape_.block.count();
  block->alive = threads;
  block->shared_bytes = shape_.shared_bytes;
  // Takes exactly as many bytes as the launch gave, so that the address sanitizer sees the next
  // one.
  void* shared = nullptr;
  if (shape_.shared_bytes > 0) {
    TACIT_CHECK(posix_memalign(&shared, kSharedAlignment, shape_.shared_bytes) == 0);
    std::memset(shared, kNeverWritten, shape_.shared_bytes);
  }
  block->shared.reset(shared);
  block->warps.resize((threads + kLanes - 1) / kLanes);
  block->threads.resize(threads);
  for (size_t rank = 0; rank < threads; ++rank) {
    Thread& thread = block->threads[rank];
    thread.block = block.get();
    thread.place = {Nth(rank, shape_.block), Nth(number, shape_.grid), shape_.block, shape_.grid,
                    static_cast<uint32_t>(rank)};
    thread.timeline = MakeTimeline();
    ready_.push_back(&thread);
  }
  blocks_.push_back(std::move(block));
  ++resident_;
}

Thread* Machine::TakeReady() {
  const size_t i = Draw(ready_.size());
  std::swap(ready_[i], ready_.back());
  Thread* thread = ready_.back();
  ready_.pop_back();
  return thread;
}

// Takes the next thread in turn if it has not begun and so can run on the fiber that has just
// become free; else null. It saves two switches for each thread that waits for no other.
Thread* Machine::TakeUnstarted() {
  if (WatchesTimelines() || ready_.empty()) return nullptr;
  Thread* thread = TakeReady();
  if (thread->fiber == nullptr) return thread;
  ready_.push_back(thread);
  return nullptr;
}

void Machine::FiberBody() {
  while (true) {
    Fiber* fiber = self_->fiber;
    Await(&begin_token_);
    Await(fiber);  // whose stack it now uses
    self_->at = "runs";
    (*body_)();
    Signal(fiber);
    Signal(&end_token_);
    {
      const Unwatched books;
      Finish(*self_);
      if (Thread* next = TakeUnstarted()) {
        next->fiber = fiber;
        self_ = next;
        continue;
      }
      (WatchesTimelines() && fibers_.size() < kFreshFibersMax ? used_ : idle_).push_back(fiber);
    }
    fiber->Leave();
  }
}

void Machine::RunFiber(Thread* thread) {
  if (thread->fiber == nullptr) {
    if (idle_.empty()) {
      fibers_.push_back(std::make_unique<Fiber>([this] { FiberBody(); }));
      idle_.push_back(fibers_.back().get());
    }
    thread->fiber = idle_.back();
    idle_.pop_back();
  }
  self_ = thread;
  ++switches_;
  thread->fiber->Enter(thread->timeline);
  self_ = nullptr;
}

void Machine::Finish(Thread& thread) {
  thread.done = true;
  Block& block = *thread.block;
  if (!thread.groups.empty() || !thread.open_group.empty())
    Die("a thread ends without having waited for its asynchronous copies");
  if (!thread.products.empty()) Die("a thread ends without having waited for its products");
  for (const auto& collective : block.warps[thread.place.rank / kLanes]) {
    if (collective->mask >> thread.place.rank % kLanes & 1)
      Die(std::string("a lane has ended that others wait for in ") + collective->what);
  }
  if (--block.alive == 0) {
    if (!block.tiles.empty()) Die("a block ends before its tiles have come");
    --resident_;
    // Under tsan memory is kept until the kernel's end, where all of its threads are ordered: a
    // release here would be a write that races with theirs.
    if (!WatchesTimelines()) block.shared.reset();
  } else if (block.at_barrier.size() == block.alive) {
    OpenBarrier(block);
  }
}

// Gives the turn away until another thread puts this one among those that are ready.
void Machine::GiveTurnAway(const char* at, Line line) {
  Thread& thread = self();
  thread.at = at;
  thread.line = line;
  thread.fiber->Leave();
  thread.at = "runs behind";
}

void Machine::OpenBarrier(Block& block) {
  ++block.generation;
  ready_.insert(ready_.end(), block.at_barrier.begin(), block.at_barrier.end());
  block.at_barrier.clear();
}

void Machine::SyncBlock(Line line) {
  const Unwatched books;
  Thread& thread = self();
  Block& block = *thread.block;
  thread.line = line;
  if (!block.at_barrier.empty() && !Same(block.barrier_line, line)) {
    Die("threads of a block wait at different barriers, " + Text(block.barrier_line) + " and " +
        Text(line));
  }
  block.barrier_line = line;
  char* token = &block.barrier_token[block.generation % 2];
  Signal(token);
  block.at_barrier.push_back(&thread);
  if (block.at_barrier.size() == block.alive) OpenBarrier(block);
  GiveTurnAway("waits at the barrier", line);
  Await(token);
}

Collective* Machine::Meet(uint32_t mask, const char* what, Line line, const void* mine,
                          size_t bytes, bool fence) {
  const Unwatched books;
  Thread& thread = self();
  Block& block = *thread.block;
  const uint32_t lane = thread.place.rank % kLanes, warp = thread.place.rank / kLanes;
  thread.at = what;
  thread.line = line;
  if (!(mask >> lane & 1)) Die(std::string("a lane calls ") + what + " with a mask without it");
  for (uint32_t other = 0; other < kLanes; ++other) {
    const size_t rank = size_t{warp} * kLanes + other;
    if (!(mask >> other & 1)) continue;
    if (rank >= block.threads.size()) Die(std::string(what) + " names lanes that are not there");
    if (block.threads[rank].done) Die(std::string(what) + " names a lane that has ended");
  }
  auto& open = block.warps[warp];
  Collective* found = nullptr;
  for (const auto& other : open) {
    if ((other->mask & mask) == 0) continue;
    if (other->mask != mask || std::strcmp(other->what, what) != 0 || !Same(other->line, line)) {
      Die(std::string("lanes of a warp in different collectives, ") + other->what + " at " +
          Text(other->line) + " and " + what + " at " + Text(line));
    }
    found = other.get();
  }
  if (found == nullptr) {
    open.push_back(std::make_unique<Collective>());
    found = open.back().get();
    found->block = &block;
    found->warp = warp;
    found->mask = found->reading = mask;
    found->what = what;
    found->line = line;
    found->fence = fence;
  }
  if (bytes > 0) std::memcpy(found->brought[lane], mine, bytes);
  found->arrived |= 1u << lane;
  if (fence) Signal(&found->fence_token);
  if (found->arrived != mask) {
    GiveTurnAway(what, line);
  } else {
    // The last lane to arrive makes the others ready; the collective lives until all have read.
    for (uint32_t other = 0; other < kLanes; ++other)
      if (other != lane && (mask >> other & 1))
        ready_.push_back(&block.threads[size_t{warp} * kLanes + other]);
    std::erase_if(open, [found](std::unique_ptr<Collective>& one) {
      return one.get() == found && one.release() != nullptr;
    });
  }
  if (fence) Await(&found->fence_token);
  return found;
}

void Machine::Part(Collective* collective) {
  const Unwatched books;
  collective->reading &= collective->reading - 1;  // one reader less
  if (collective->reading == 0) delete collective;
}

Count Machine::CountOf(const Counter* counter) {
  const auto count = std::bit_cast<Count>(counter->word);
  if (count.arrivals == 0 || count.arrivals > kArrivalsMost || count.missing > count.arrivals)
    Die("a counter that was not made");
  return count;
}

// Ends the phase if nothing of it is missing.
void Machine::Put(Counter* counter, Count count) {
  if (count.missing == 0 && count.bytes == 0) {
    count.missing = count.arrivals;
    count.phase ^= 1;
    WakeCounters(*self().block);
  }
  counter->word = std::bit_cast<uint64_t>(count);
}

void Machine::WakeCounters(Block& block) {
  ready_.insert(ready_.end(), block.at_counters.begin(), block.at_counters.end());
  block.at_counters.clear();
}

void Machine::AwaitCounters(Line line) {
  const Unwatched books;
  self().block->at_counters.push_back(&self());
  GiveTurnAway("waits for a counter", line);
}

void Machine::Run(const char* name, const runtime::LaunchShape& shape,
                  const std::function<void()>& body) {
  TACIT_CHECK(body_ == nullptr, "a kernel inside a kernel");
  const Unwatched books;
  name_ = name;
  shape_ = shape;
  body_ = &body;
  Signal(&begin_token_);
  std::vector<uint64_t> order(shape.grid.count());
  for (uint64_t i = 0; i < order.size(); ++i) order[i] = i;
  for (uint64_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[Draw(i)]);
  size_t next = 0;
  while (true) {
    while (resident_ < resident_max_ && next < order.size()) Admit(order[next++]);
    if (resident_ == 0) break;
    if (ready_.empty())
      Die("nobody can go on: a barrier, a counter or a collective that not all reach");
    RunFiber(TakeReady());
    if (!WatchesTimelines())
      std::erase_if(blocks_, [](const auto& block) { return block->alive == 0; });
  }
  Await(&end_token_);
  for (const auto& block : blocks_)
    for (Thread& thread : block->threads) DropTimeline(thread.timeline);
  blocks_.clear();
  idle_.insert(idle_.end(), used_.begin(), used_.end());
  used_.clear();
  body_ = nullptr;
}

}  // namespace

void SetSeed(uint64_t seed, unsigned resident_blocks) {
  TheMachine().SetSeed(seed, resident_blocks);
}
uint64_t Switches() { return TheMachine().switches(); }
uint64_t Draw(uint64_t n) { return TheMachine().Draw(n); }
const Place& Here() { return TheMachine().self().place; }
void SyncBlock(Line line) { TheMachine().SyncBlock(line); }
void SyncWarp(uint32_t mask, Line line) {
  Machine::Part(TheMachine().Meet(mask, "SyncWarp", line, nullptr, 0, true));
}

void* SharedMemory(size_t bytes) {
  Block& block = *TheMachine().self().block;
  if (bytes > block.shared_bytes) {
    TheMachine().Die("wants " + std::to_string(bytes) + " bytes of shared memory, and was given " +
                     std::to_string(block.shared_bytes));
  }
  return block.shared.get();
}

void CheckAligned(const void* address) {
  if (reinterpret_cast<uintptr_t>(address) % 16 != 0)
    TheMachine().Die("16 bytes at an address that is no multiple of 16");
}

void Meeting::Arrive(uint32_t mask, const char* what, Line line, const void* mine, size_t bytes) {
  collective_ = TheMachine().Meet(mask, what, line, mine, bytes, false);
}
void Meeting::Read(uint32_t lane, void* to, size_t bytes) const {
  const Unwatched books;
  std::memcpy(to, static_cast<const Collective*>(collective_)->brought[lane], bytes);
}
Meeting::~Meeting() { Machine::Part(static_cast<Collective*>(collective_)); }

void StartCopy(AsyncCopy copy) {
  CheckAligned(copy.to);
  if (copy.bytes > 0) CheckAligned(copy.from);
  if (copy.bytes > 16) TheMachine().Die("a copy of more than 16 bytes at once");
  const Unwatched books;
  TheMachine().self().open_group.push_back(copy);
}
void CommitCopies() {
  const Unwatched books;
  Thread& thread = TheMachine().self();
  thread.groups.push_back(std::exchange(thread.open_group, {}));
}
bool TakeCopy(size_t left, AsyncCopy* copy) {
  const Unwatched books;
  Thread& thread = TheMachine().self();
  while (thread.groups.size() > left) {
    auto& oldest = thread.groups.front();
    if (!oldest.empty()) {
      *copy = oldest.back();
      oldest.pop_back();
      return true;
    }
    thread.groups.erase(thread.groups.begin());
  }
  return false;
}

uint32_t SharedAddress(const void* pointer) {
  const Block& block = *TheMachine().self().block;
  const auto begin = reinterpret_cast<uintptr_t>(block.shared.get());
  return static_cast<uint32_t>(kSharedBegin + begin % kSharedBegin +
                               (reinterpret_cast<uintptr_t>(pointer) - begin));
}
void* SharedPointer(uint32_t address, size_t bytes) {
  const Block& block = *TheMachine().self().block;
  auto* const begin = static_cast<unsigned char*>(block.shared.get());
  const uint32_t first = SharedAddress(begin);
  if (address < first || address - first + bytes > block.shared_bytes)
    TheMachine().Die("an address outside of shared memory");
  return begin + (address - first);
}

void InitCounter(Counter* counter, uint32_t arrivals) {
  const Unwatched books;
  if (arrivals == 0 || arrivals > kArrivalsMost) TheMachine().Die("too many arrivals");
  const auto all = static_cast<uint16_t>(arrivals);
  counter->word =
      std::bit_cast<uint64_t>(Count{.bytes = 0, .arrivals = all, .missing = all, .phase = 0});
}
void Arrive(Counter* counter, uint32_t bytes_announced) {
  const Unwatched books;
  Count count = TheMachine().CountOf(counter);
  Signal(TokenOf(counter, count.phase));
  if (count.missing == 0) TheMachine().Die("more arrive at a counter than it was made for");
  count.bytes += static_cast<int32_t>(bytes_announced);
  --count.missing;
  TheMachine().Put(counter, count);
}
bool HasPassed(const Counter* counter, uint32_t parity) {
  const Unwatched books;
  if (TheMachine().CountOf(counter).phase == parity) return false;
  Await(TokenOf(counter, parity));
  return true;
}
void AwaitCounters(Line line) { TheMachine().AwaitCounters(line); }

void StartTile(const TileCopy& copy) {
  const Unwatched books;
  Block& block = *TheMachine().self().block;
  block.tiles.push_back(std::make_unique<TileCopy>(copy));
  Signal(block.tiles.back().get());
  TheMachine().WakeCounters(block);
}
bool TakeTile(TileCopy* copy) {
  const Unwatched books;
  auto& tiles = TheMachine().self().block->tiles;
  if (tiles.empty()) return false;
  std::swap(tiles[Draw(tiles.size())], tiles.back());
  Await(tiles.back().get());
  *copy = *tiles.back();
  tiles.pop_back();
  return true;
}
void TileHasCome(const TileCopy& copy, uint32_t bytes) {
  const Unwatched books;
  Count count = TheMachine().CountOf(copy.counter);
  Signal(TokenOf(copy.counter, count.phase));
  count.bytes -= static_cast<int32_t>(bytes);
  TheMachine().Put(copy.counter, count);
}

void StartProduct(const AsyncProduct& product) {
  const Unwatched books;
  Thread& thread = TheMachine().self();
  thread.products.emplace_back(thread.groups_of_products, product);
}
void CommitProducts() {
  const Unwatched books;
  ++TheMachine().self().groups_of_products;
}
bool TakeProduct(int left, AsyncProduct* product) {
  const Unwatched books;
  Thread& thread = TheMachine().self();
  if (thread.products.empty()) return false;
  const auto& [group, oldest] = thread.products.front();
  if (left >= 0 && group + static_cast<uint64_t>(left) >= thread.groups_of_products) return false;
  *product = oldest;
  thread.products.pop_front();
  return true;
}

void Run(const char* name, const runtime::LaunchShape& shape, const std::function<void()>& body) {
  TheMachine().Run(name, shape, body);
}

}  // namespace tacit::cuda::emulator
