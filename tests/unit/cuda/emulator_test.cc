// The emulator itself: orders of turns, and what launches it takes.
#include "cuda/device/emulator.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>
#include <vector>

#include "cuda/device/emulated.h"
#include "cuda/device/errors.h"
#include "cuda/device/runtime.h"

namespace tacit::cuda {
namespace {

// The notes that threads of a kernel write, in turn. Each has a place of its own, so that nothing
// races.
class Notes {
 public:
  void Write(uint32_t note) { notes_[count_.fetch_add(1, std::memory_order_relaxed)] = note; }
  std::vector<uint32_t> Read() const {
    return {notes_.begin(), notes_.begin() + count_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<uint32_t> count_ = 0;
  std::array<uint32_t, 64> notes_ = {};
};

std::vector<uint32_t> BlockOrder(uint64_t seed, uint32_t blocks) {
  emulator::SetSeed(seed);
  Notes order;
  emulator::Run("Order", {.grid = {blocks}, .block = {1}, .shared_bytes = 0},
                [&] { order.Write(emulator::Here().block.x); });
  return order.Read();
}

TEST(Emulator, SeedDecidesTheOrderOfTurns) {
  std::set<std::vector<uint32_t>> orders;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto order = BlockOrder(seed, 8);
    EXPECT_EQ(order, BlockOrder(seed, 8));
    EXPECT_EQ(std::set<uint32_t>(order.begin(), order.end()).size(), 8u);
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 15u);
}

TEST(Emulator, ThreadsBetweenBarriersTakeTurnsInAnyOrder) {
  std::set<std::vector<uint32_t>> orders;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    emulator::SetSeed(seed);
    Notes notes;
    emulator::Run("Order", {.grid = {1}, .block = {8}, .shared_bytes = 0}, [&] {
      emulator::SyncBlock({"here", 1});
      notes.Write(emulator::Here().rank);
      emulator::SyncBlock({"here", 2});
      notes.Write(100 + emulator::Here().rank);
    });
    const auto order = notes.Read();
    ASSERT_EQ(order.size(), 16u);
    for (size_t i = 0; i < 16; ++i) EXPECT_EQ(order[i] >= 100, i >= 8) << "seed " << seed;
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 15u);
}

// The ones that have returned are not waited for.
TEST(Emulator, BarrierIsForThoseThatHaveNotReturned) {
  std::atomic<int> behind = 0;
  emulator::Run("Half", {.grid = {3}, .block = {64}, .shared_bytes = 0}, [&] {
    if (emulator::Here().rank % 2 == 0) return;
    emulator::SyncBlock({"here", 1});
    ++behind;
  });
  EXPECT_EQ(behind, 3 * 32);
}

TEST(Emulator, SharedMemoryIsTheBlocksAndBeginsUnwritten) {
  std::array<std::atomic<void*>, 3> blocks = {};
  emulator::Run("Shared", {.grid = {3}, .block = {2}, .shared_bytes = 40}, [&] {
    auto* shared = static_cast<unsigned char*>(emulator::SharedMemory(40));
    for (int i = 0; i < 40 && emulator::Here().rank == 0; ++i) EXPECT_EQ(shared[i], 0xCD);
    emulator::SyncBlock({"here", 1});
    shared[emulator::Here().rank] = 1;
    blocks[emulator::Here().block.x] = shared;
  });
  for (const auto& shared : blocks) EXPECT_NE(shared.load(), nullptr);
}

// A thread that meets no other costs no switch of its own.
TEST(Emulator, ThreadsThatMeetNobodyShareAFiber) {
#if defined(__SANITIZE_THREAD__)
  constexpr uint64_t kSwitchesMax = 4096;  // each is a timeline
#else
  constexpr uint64_t kSwitchesMax = 64;
#endif
  const uint64_t before = emulator::Switches();
  std::atomic<uint64_t> threads = 0;
  emulator::Run("Alone", {.grid = {32}, .block = {128}, .shared_bytes = 0}, [&] { ++threads; });
  EXPECT_EQ(threads, 4096u);
  EXPECT_LE(emulator::Switches() - before, kSwitchesMax);
}

// The launches that a device of compute capability 9.0 refuses.
TEST(EmulatedRuntime, RefusesLaunchesThatADeviceRefuses) {
  emulated::Reset();
  runtime::Stream stream = nullptr;
  ASSERT_EQ(runtime::MakeStream(&stream), runtime::kSuccess);
  const auto launch = [&](runtime::Extent grid, runtime::Extent block, size_t shared) {
    return runtime::LaunchEmulated(
        "Any", {grid, block, shared}, [] {}, stream);
  };
  EXPECT_EQ(launch({1}, {1024}, 227 << 10), runtime::kSuccess);
  EXPECT_EQ(launch({1}, {1025}, 0), code::kInvalidConfiguration);
  EXPECT_EQ(launch({1}, {32, 32, 2}, 0), code::kInvalidConfiguration);
  EXPECT_EQ(launch({0}, {32}, 0), code::kInvalidConfiguration);
  EXPECT_EQ(launch({1, 65536}, {32}, 0), code::kInvalidConfiguration);
  EXPECT_EQ(launch({1}, {32}, (227 << 10) + 1), code::kInvalidConfiguration);
  EXPECT_EQ(emulated::Kernels().at("Any").launches, 1u);
  EXPECT_EQ(emulated::Kernels().at("Any").threads_per_block_min, 1024u);
  runtime::DropStream(stream);
}

}  // namespace
}  // namespace tacit::cuda
