#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "store/rows/row_arrival.h"
#include "store/rows/row_fetcher.h"
#include "store/rows/working_rows.h"
#include "store/types/delta.h"

namespace tacit::store {

// The store operations that a row cache needs.
class RowBacking {
 public:
  virtual ~RowBacking() = default;
  // Reads whole rows (embedding and state) in their folded form, in any order. Called by several
  // threads at once, if the cache has a fetcher.
  virtual Status Read(std::span<const uint64_t> rows, std::span<float* const> out) = 0;
  // The commit that a delta goes into which is taken now.
  virtual CommitSeq next() const = 0;
  // The commit up to which commits are folded and visible to Read.
  virtual CommitSeq folded() const = 0;
  // Requests a fold and returns at once.
  virtual void RequestFold() = 0;
  // Folds up to `seq`, which was enqueued before, and waits; returns early if the store has failed.
  virtual void FoldThrough(CommitSeq seq) = 0;
};

// Fixed-width rows in big chunks that never move.
class Slab {
 public:
  explicit Slab(uint32_t floats, size_t chunk_bytes);

  uint32_t Allocate();
  void Free(uint32_t slot) { free_.push_back(slot); }
  float* At(uint32_t slot) const {
    return chunks_[slot >> shift_].get() + size_t{slot & mask_} * stride_;
  }
  size_t row_bytes() const { return size_t{stride_} * sizeof(float); }

 private:
  struct ChunkDeleter {
    void operator()(float* chunk) const;
  };

  uint32_t stride_, shift_, mask_;
  size_t chunk_bytes_;
  uint32_t next_ = 0;  // slots from here on were never used
  std::vector<std::unique_ptr<float[], ChunkDeleter>> chunks_;
  std::vector<uint32_t> free_;
};

// WorkingRows on an open-addressing table from row to slab slot, 16 bytes an entry, with clock
// eviction. A row that was changed in group g (the g-th delta taken) is pinned until the commit
// with that delta is folded. The budget counts slab rows and their share of the table; it is
// exceeded only by rows that cannot be evicted: those of one Gather, and those changed and not yet
// folded.
//
// Rows that are expected (Expect) are not copied into the table: their delta holds them until it is
// folded, and a Gather that misses one finds it there. Those that are in the table are renewed
// before the next Gather, or when the next rows are expected: so one delta at most is kept beside
// those that the store holds.
class RowCache final : public WorkingRows {
 public:
  // The layout, the backing and the fetcher outlive the cache. Without a fetcher all rows are read
  // by the trainer, and none ahead.
  RowCache(const RowLayout& layout, uint64_t budget_bytes, RowBacking& backing,
           RowFetcher* fetcher = nullptr);
  ~RowCache() override;

  void Announce(std::span<const uint64_t> rows) override;
  Status Gather(std::span<const uint64_t> rows, std::span<float*> out) override;
  void MarkChanged(std::span<const uint64_t> rows) override;
  Status Expect(const std::shared_ptr<RowArrival>& arrival) override;
  void Release() override;
  std::shared_ptr<const RowDelta> TakeDelta() override;
  Stats stats() const override;

  // Records that the delta (without rows if null) goes into this commit. REQUIRES that deltas are
  // committed in the order in which they were taken. Null after a delta was taken: that delta is
  // discarded and its rows are never evicted; REQUIRES that no other delta is taken after it.
  void Enqueued(const RowDelta* delta, CommitSeq seq);

 private:
  struct Entry {
    uint64_t row;  // kNoRow: free
    uint32_t slot;
    uint32_t state;  // kUsed | kHeld | group of the last change, 0: none
  };
  // A taken delta, until its commit is folded.
  struct Group {
    uint32_t number = 0;
    const RowDelta* delta = nullptr;
    CommitSeq seq{};  // 0: not enqueued yet
    size_t rows = 0, bytes = 0;
    // Rows that were changed elsewhere. The store holds them until they are folded; the last to
    // let go of them is thus not the trainer, whom that would take long.
    std::weak_ptr<const RowDelta> expected = {};
  };
  static constexpr uint64_t kNoRow = UINT64_MAX;
  static constexpr uint32_t kUsed = 1u << 31, kHeld = 1u << 30, kGroupMask = kHeld - 1;

  // Walks the tables along ascending rows.
  class TableCursor;

  size_t Home(uint64_t row) const { return (row * 0x9E3779B97F4A7C15u) >> hash_shift_; }
  Entry* Find(uint64_t row);
  void Prefetch(std::span<const uint64_t> rows, size_t i) const;
  Entry* Insert(uint64_t row, uint32_t slot);
  void EraseAt(size_t place);
  void Grow();

  struct Ahead;
  Status TakeAhead(Ahead& ahead, std::span<const uint64_t> rows, std::span<float*> out);
  Status Read();
  size_t FitAhead(std::span<const uint64_t> rows);
  void Drop(Ahead& ahead);
  size_t Cost(uint32_t table) const;
  bool Pinned(const Entry& entry) const { return (entry.state & kGroupMask) > folded_group_; }
  Status Fetch(std::span<const uint64_t> rows, std::span<float*> out);
  void MakeRoom(std::span<const uint64_t> rows, size_t bytes);
  void SetHeld(std::span<const uint64_t> rows, bool held);
  void Evict(size_t bytes);
  void Drop(size_t place);
  void ForgetFolded();
  void EndGroup(const RowDelta* delta);
  void CopyOut(RowDelta* delta);
  Status TakeIn();
  Status RenewAll();
  void Renew(const RowDelta& delta);
  Status TakeExpected(std::span<const uint64_t> rows, std::span<float*> out);
  void MakeSlabs();
  bool expects() const;
  Group& GroupOf(uint32_t number) { return groups_[number - groups_.front().number]; }

  const RowLayout& layout_;
  const uint64_t budget_;
  RowBacking& backing_;
  std::vector<Slab> slabs_;
  std::vector<uint32_t> slab_of_table_;

  std::vector<Entry> entries_;
  uint32_t hash_shift_;
  size_t live_ = 0;
  size_t hand_ = 0;
  size_t bytes_ = 0, pinned_bytes_ = 0, pinned_rows_ = 0;

  std::deque<Group> groups_;  // the last is the one being filled
  uint32_t folded_group_ = 0;
  std::vector<uint64_t> changed_, sorting_;  // rows of the group being filled
  // Rows changed elsewhere that no delta was taken of yet; and deltas of such rows, oldest first,
  // whose rows may be in the table as they were before.
  std::shared_ptr<RowArrival> arriving_;
  std::vector<std::shared_ptr<const RowDelta>> not_taken_in_;
  std::vector<uint32_t> misses_;
  RowFetch missed_;  // those that were not read ahead

  // Rows announced that were not in memory, ascending. Each is read into a slot that is in the
  // table once a Gather misses the row; kNoSlot after that, so that no row comes out twice, or as
  // it was before a change.
  struct Ahead {
    explicit Ahead(RowFetch::Read read) : fetch(std::move(read)) {}
    RowFetch fetch;
    std::vector<uint32_t> slots;
    // The place of a row that waits for a Gather; nothing if it does not wait here.
    std::optional<uint32_t> Find(uint64_t row) const;
  };
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  RowFetcher* const fetcher_;
  std::unique_ptr<Ahead> last_ahead_, ahead_;   // the last announcement but one, and the last
  std::vector<uint32_t> taken_, taken_misses_;  // places in one of them and in a Gather's rows
  uint64_t gathered_ = 0, missing_ = 0;         // by the last Gather
  uint64_t hits_ = 0, missed_rows_ = 0, evictions_ = 0, read_ahead_ = 0;
};

}  // namespace tacit::store
