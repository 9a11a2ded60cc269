// Rows on a device whose calls fail, one after the other. Copies that were put on a stream before
// are still under way then, and nothing that they name may go before they have run: the sanitizers
// look for that.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <sstream>

#include "cuda/device/emulated.h"
#include "cuda/device/errors.h"
#include "store/rows/row_arrival.h"
#include "unit/cuda/cache_rig.h"
#include "unit/cuda/home_rig.h"
#include "unit/cuda/logged_by.h"
#include "unit/cuda/trial_device.h"
#include "unit/cuda/uploads.h"

namespace tacit::cuda::testing {
namespace {

using Purpose = DeviceRows::Purpose;

store::RowLayout SmallLayout() {
  store::RowLayout layout;
  layout.space.AddTable("one", 140, 3);
  layout.space.AddTable("other", 5, 2);
  layout.state_floats = {1, 1};
  layout.initial_scale = {0, 0};
  return layout;
}

std::vector<uint64_t> Rows(uint64_t first, uint64_t count) {
  std::vector<uint64_t> rows(count);
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

// Says of these rows that a step wrote them, in FinishRows' place.
Status MarkWritten(Stream& stream, const DeviceRows& rows, std::span<const uint32_t> names) {
  for (const uint32_t name : names)
    TACIT_RETURN_IF_ERROR(stream.Fill(rows.view().changed.Sub(name, 1), 1));
  return stream.Synchronize();
}

// Two steps of a cache that has guests, the second fetched ahead, and what a commit does. `before`
// is called before the first step's end, by which its guests go home, and before the commit.
Status UseACacheAnd(const std::function<void(bool at_end)>& before) {
  TACIT_ASSIGN(const auto device, OpenDevice(0));
  const store::RowLayout layout = SmallLayout();
  PlainRows plain(layout);
  const auto first = Rows(0, 135), second = Rows(130, 12);
  std::vector<uint32_t> names(first.size());
  TACIT_ASSIGN(Stream stream, Stream::Make(*device));
  TACIT_ASSIGN(const auto cache,
               CachedRows::Make(stream, layout.space, layout.state_floats, {.bytes = 1}, plain));
  TACIT_ASSIGN(const auto named, cache->Begin(first, Purpose::kStep));
  TACIT_RETURN_IF_ERROR(stream.Download(named, std::span<uint32_t>(names)));
  TACIT_ASSIGN(const auto extra, cache->NameExtra(std::vector<uint64_t>{138, 143}));
  static_cast<void>(extra);
  cache->Announce(second);
  TACIT_RETURN_IF_ERROR(cache->FetchAnnounced());
  TACIT_RETURN_IF_ERROR(stream.Synchronize());
  // Some of the rows that are written are guests.
  const auto written = std::span(names).last(12);
  TACIT_RETURN_IF_ERROR(MarkWritten(stream, *cache, written));
  before(true);
  TACIT_RETURN_IF_ERROR(cache->End(std::vector<uint32_t>(first.end() - 12, first.end())));
  before(false);
  const auto next = cache->Begin(second, Purpose::kStep);
  if (!next) return Fail(next.error());
  TACIT_RETURN_IF_ERROR(stream.Synchronize());
  TACIT_RETURN_IF_ERROR(cache->End({}));
  before(true);
  const Status settled = cache->Settle();
  before(false);
  EXPECT_GT(cache->stats().guests, 0u);
  return settled;
}
Status UseACache() {
  return UseACacheAnd([](bool) {});
}

// Whole tables whose rows come home beside the next step, and go there at once.
Status SendRowsHome() {
  TACIT_ASSIGN(const auto device, OpenDevice(0));
  const store::RowLayout layout = SmallLayout();
  HomeStore store(layout);
  store::RowCache cache(layout, 1 << 20, store);
  TACIT_ASSIGN(Stream stream, Stream::Make(*device));
  TACIT_ASSIGN(const auto whole, WholeRows::Make(stream, layout.space, layout.state_floats,
                                                 WholeRows::Writes::kSomeRows, cache));
  TACIT_RETURN_IF_ERROR(MarkWritten(stream, *whole, std::vector<uint32_t>{3, 80, 141}));
  TACIT_RETURN_IF_ERROR(whole->Settle());
  const auto delta = cache.TakeDelta();
  cache.Enqueued(delta.get(), store.Enqueue(delta));
  TACIT_RETURN_IF_ERROR(MarkWritten(stream, *whole, std::vector<uint32_t>{4, 80}));
  TACIT_RETURN_IF_ERROR(store::Arrive(*delta));
  TACIT_RETURN_IF_ERROR(whole->Settle());
  return store::Arrive(*cache.TakeDelta());
}

// Makes each call fail in turn, with an error that leaves the device what it was and with one that
// loses it.
void FailEachCall(const std::function<Status()>& use) {
  emulated::Reset();
  const Status whole = use();
  ASSERT_TRUE(whole) << whole.error().message;
  const uint64_t calls = emulated::Calls();
  EXPECT_GT(calls, 50u);
  // Under the thread sanitizer a run of kernels is dear.
#if defined(__SANITIZE_THREAD__)
  constexpr uint64_t kEach = 17;
#else
  constexpr uint64_t kEach = 1;
#endif
  for (const int code : {code::kInvalidDevice, code::kEccUncorrectable}) {
    // The first call asks for the driver's version, for messages alone.
    for (uint64_t n = 2; n <= calls; n += kEach) {
      SCOPED_TRACE(fmt::format("call {} of {} fails with {}", n, calls, code));
      emulated::Reset();
      emulated::FailCall(n, code);
      const Status failed = use();
      ASSERT_FALSE(failed);
      EXPECT_NE(failed.error().message.find("cudaError"), std::string::npos);
      EXPECT_EQ(emulated::BytesTaken(), 0u);
    }
  }
  emulated::Reset();
}

TEST(RowsFailures, ACacheMayFailAtEveryCall) { FailEachCall(UseACache); }

TEST(RowsFailures, RowsOnTheirWayHomeMayFailAtEveryCall) { FailEachCall(SendRowsHome); }

// Whole tables in front of a store.
class SmallTables {
 public:
  SmallTables() {
    emulated::Reset();
    auto device = OpenDevice(0);
    EXPECT_TRUE(device);
    device_ = std::move(*device);
    stream_.emplace(MakeStream(*device_));
    auto whole = WholeRows::Make(*stream_, layout_.space, layout_.state_floats,
                                 WholeRows::Writes::kSomeRows, cache_);
    EXPECT_TRUE(whole);
    whole_ = std::move(*whole);
  }

  // Settles what a step wrote while no memory is to be had. Returns whether the rows came home, and
  // beside the next step.
  bool SettlesBeside() {
    EXPECT_TRUE(MarkWritten(*stream_, *whole_, std::vector<uint32_t>{3, 141}));
    emulated::RefuseMemory(true);
    const Status settled = whole_->Settle();
    const auto delta = cache_.TakeDelta();
    cache_.Enqueued(delta.get(), store_.Enqueue(delta));
    const bool beside = delta->arrival != nullptr;
    const Status arrived = store::Arrive(*delta);
    emulated::RefuseMemory(false);
    EXPECT_TRUE(settled && arrived);
    EXPECT_EQ(delta->rows, std::vector<uint64_t>({3, 141}));
    return beside;
  }
  // Settles what a step wrote, and has a call of that fail for want of memory. Returns whether the
  // rows came home, and at once.
  bool SettlesWithout(uint64_t call) {
    EXPECT_TRUE(MarkWritten(*stream_, *whole_, std::vector<uint32_t>{3, 141}));
    emulated::FailCall(call, code::kMemoryAllocation);
    const Status settled = whole_->Settle();
    emulated::FailCall(0, code::kMemoryAllocation);
    if (!settled) return false;
    const auto delta = cache_.TakeDelta();
    cache_.Enqueued(delta.get(), store_.Enqueue(delta));
    return delta->arrival == nullptr && delta->rows == std::vector<uint64_t>({3, 141});
  }

 private:
  const store::RowLayout layout_ = SmallLayout();
  HomeStore store_{layout_};
  store::RowCache cache_{layout_, 1 << 20, store_};
  std::unique_ptr<Device> device_;
  std::optional<Stream> stream_;
  std::unique_ptr<WholeRows> whole_;
};

// Memory that others take once training has begun ends no training: a commit takes what it needs
// at the start, and does without a second copy of its rows.
TEST(RowsFailures, ACommitOfWholeTablesNeedsNoMemory) {
  const std::string log = LoggedBy([] {
    SmallTables tables;
    EXPECT_FALSE(tables.SettlesBeside());
    EXPECT_FALSE(tables.SettlesBeside());
    // The second copy is taken once there is memory again, and kept.
    EXPECT_FALSE(tables.SettlesWithout(1'000'000));
    EXPECT_TRUE(tables.SettlesBeside());
  });
  const std::string_view told = "a commit's rows go home within the commit";
  const size_t at = log.find(told);
  EXPECT_NE(at, std::string::npos) << log;
  EXPECT_EQ(log.find(told, at + 1), std::string::npos) << log;
  emulated::Reset();
}

TEST(RowsFailures, ACommitOfACacheNeedsNoMemory) {
  emulated::Reset();
  const Status used = UseACacheAnd(emulated::RefuseMemory);
  EXPECT_TRUE(used) << used.error().message;
  emulated::Reset();
}

// A device whose memory others take between the look at it and the call.
TEST(RowsFailures, ACopyThatGetsNoMemoryIsDoneWithoutAndTheLogSaysSoOnce) {
  uint64_t done_without = 0;
  const std::string log = LoggedBy([&] {
    for (uint64_t call = 1; call <= 40; ++call) {
      SmallTables tables;
      if (!tables.SettlesWithout(call)) continue;
      ++done_without;
      EXPECT_TRUE(tables.SettlesWithout(call));
    }
  });
  EXPECT_EQ(done_without, 1u);
  const std::string_view told = "a commit's rows go home within the commit";
  const size_t at = log.find(told);
  EXPECT_NE(at, std::string::npos) << log;
  EXPECT_EQ(log.find(told, at + 1), std::string::npos) << log;
  EXPECT_NE(log.find("cudaErrorMemoryAllocation"), std::string::npos) << log;
  emulated::Reset();
}

}  // namespace
}  // namespace tacit::cuda::testing
