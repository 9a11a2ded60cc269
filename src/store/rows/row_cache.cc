#include "store/rows/row_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/files/huge_pages.h"
#include "base/radix_sort.h"
#include "store/rows/row_codec.h"

namespace tacit::store {
namespace {

// Bytes of a table entry at the usual load.
constexpr size_t kEntryShare = 32;
constexpr size_t kMinEntries = 256;
constexpr size_t kPrefetchAhead = 16;
// Chunks of one huge page, for caches so big that address translation matters.
constexpr size_t kSmallChunk = size_t{64} << 10;
constexpr uint64_t kBigBudget = uint64_t{64} << 20;

RowFetch::Read ReadOf(RowBacking& backing) {
  return [&backing](std::span<const uint64_t> rows, std::span<float* const> out) {
    return backing.Read(rows, out);
  };
}

}  // namespace

Slab::Slab(uint32_t floats, size_t chunk_bytes) {
  stride_ = (floats + 3) / 4 * 4;  // 16 bytes, for aligned vector loads
  const size_t rows = std::max<size_t>(1, chunk_bytes / row_bytes());
  shift_ = static_cast<uint32_t>(std::bit_width(rows) - 1);
  mask_ = (1u << shift_) - 1;
  chunk_bytes_ = std::max(chunk_bytes, row_bytes());
}

void Slab::ChunkDeleter::operator()(float* chunk) const { std::free(chunk); }

uint32_t Slab::Allocate() {
  if (!free_.empty()) {
    const uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  if (next_ >> shift_ == chunks_.size()) {
    const size_t alignment = chunk_bytes_ >= kHugePage ? kHugePage : 64;
    const size_t bytes = (chunk_bytes_ + alignment - 1) / alignment * alignment;
    auto* chunk = static_cast<float*>(std::aligned_alloc(alignment, bytes));
    if (chunk == nullptr) throw std::bad_alloc();
    AdviseHugePages(chunk, bytes);
    chunks_.emplace_back(chunk);
  }
  return next_++;
}

class RowCache::TableCursor {
 public:
  explicit TableCursor(const RowSpace& space) : tables_(space.tables()) {}
  // REQUIRES rows that ascend from call to call.
  uint32_t Advance(uint64_t row) {
    while (row >= tables_[table_].first + tables_[table_].rows) ++table_;
    return table_;
  }

 private:
  std::span<const RowSpace::Table> tables_;
  uint32_t table_ = 0;
};

RowCache::RowCache(const RowLayout& layout, uint64_t budget_bytes, RowBacking& backing,
                   RowFetcher* fetcher)
    : layout_(layout),
      budget_(budget_bytes),
      backing_(backing),
      missed_(ReadOf(backing)),
      fetcher_(fetcher),
      last_ahead_(std::make_unique<Ahead>(ReadOf(backing))),
      ahead_(std::make_unique<Ahead>(ReadOf(backing))) {
  MakeSlabs();
  groups_.push_back({.number = 1});
}

// Makes the table and its slabs, empty.
void RowCache::MakeSlabs() {
  const size_t chunk = budget_ >= kBigBudget ? kHugePage : kSmallChunk;
  std::vector<uint32_t> widths;
  slabs_.clear();
  slab_of_table_.clear();
  for (uint32_t t = 0; t < layout_.space.tables().size(); ++t) {
    const uint32_t width = layout_.RowFloats(t);
    const auto known = std::find(widths.begin(), widths.end(), width);
    slab_of_table_.push_back(static_cast<uint32_t>(known - widths.begin()));
    if (known != widths.end()) continue;
    widths.push_back(width);
    slabs_.emplace_back(width, chunk);
  }
  entries_ = std::vector<Entry>(kMinEntries, {kNoRow, 0, 0});
  hash_shift_ = 64 - std::bit_width(kMinEntries - 1);
  live_ = hand_ = 0;
}

size_t RowCache::Cost(uint32_t table) const {
  return slabs_[slab_of_table_[table]].row_bytes() + kEntryShare;
}

RowCache::Entry* RowCache::Find(uint64_t row) {
  const size_t mask = entries_.size() - 1;
  for (size_t i = Home(row);; i = (i + 1) & mask) {
    if (entries_[i].row == row) return &entries_[i];
    if (entries_[i].row == kNoRow) return nullptr;
  }
}

void RowCache::Prefetch(std::span<const uint64_t> rows, size_t i) const {
  if (i < rows.size()) __builtin_prefetch(&entries_[Home(rows[i])]);
}

RowCache::Entry* RowCache::Insert(uint64_t row, uint32_t slot) {
  if ((live_ + 1) * 5 > entries_.size() * 3) Grow();
  const size_t mask = entries_.size() - 1;
  size_t i = Home(row);
  while (entries_[i].row != kNoRow) i = (i + 1) & mask;
  entries_[i] = {row, slot, 0};
  ++live_;
  return &entries_[i];
}

void RowCache::Grow() {
  std::vector<Entry> old(entries_.size() * 2, Entry{kNoRow, 0, 0});
  old.swap(entries_);
  --hash_shift_;
  hand_ = 0;
  const size_t mask = entries_.size() - 1;
  for (const Entry& entry : old) {
    if (entry.row == kNoRow) continue;
    size_t i = Home(entry.row);
    while (entries_[i].row != kNoRow) i = (i + 1) & mask;
    entries_[i] = entry;
  }
}

// Moves later entries of the probe chain up, so that chains stay whole without tombstones.
void RowCache::EraseAt(size_t hole) {
  const size_t mask = entries_.size() - 1;
  for (size_t i = (hole + 1) & mask; entries_[i].row != kNoRow; i = (i + 1) & mask) {
    const size_t home = Home(entries_[i].row);
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    entries_[hole] = entries_[i];
    hole = i;
  }
  entries_[hole].row = kNoRow;
  --live_;
}

Status RowCache::Gather(std::span<const uint64_t> rows, std::span<float*> out) {
  TACIT_CHECK(rows.size() == out.size());
  TACIT_RETURN_IF_ERROR(TakeIn());
  misses_.clear();
  TableCursor cursor(layout_.space);
  for (size_t i = 0; i < kPrefetchAhead; ++i) Prefetch(rows, i);
  for (size_t i = 0; i < rows.size(); ++i) {
    Prefetch(rows, i + kPrefetchAhead);
    const uint32_t table = cursor.Advance(rows[i]);
    Entry* entry = Find(rows[i]);
    if (entry == nullptr) {
      misses_.push_back(static_cast<uint32_t>(i));
      continue;
    }
    if ((entry->state & kUsed) == 0) entry->state |= kUsed;
    out[i] = slabs_[slab_of_table_[table]].At(entry->slot);
  }
  gathered_ = rows.size();
  missing_ = misses_.size();
  hits_ += rows.size() - misses_.size();
  missed_rows_ += misses_.size();
  return misses_.empty() ? Status{} : Fetch(rows, out);
}

Status RowCache::Fetch(std::span<const uint64_t> rows, std::span<float*> out) {
  for (const auto* ahead : {&last_ahead_, &ahead_})
    TACIT_RETURN_IF_ERROR(TakeAhead(**ahead, rows, out));
  if (expects()) TACIT_RETURN_IF_ERROR(TakeExpected(rows, out));
  if (misses_.empty()) return {};
  size_t bytes = 0;
  TableCursor cursor(layout_.space);
  for (uint32_t i : misses_) bytes += Cost(cursor.Advance(rows[i]));
  MakeRoom(rows, bytes);
  missed_.rows.clear();
  missed_.out.clear();
  cursor = TableCursor(layout_.space);
  for (uint32_t i : misses_) {
    Slab& slab = slabs_[slab_of_table_[cursor.Advance(rows[i])]];
    const uint32_t slot = slab.Allocate();
    Insert(rows[i], slot);
    out[i] = slab.At(slot);
    missed_.rows.push_back(rows[i]);
    missed_.out.push_back(out[i]);
  }
  bytes_ += bytes;
  Status read = Read();
  if (!read)  // the new slots hold no valid rows
    for (uint64_t row : missed_.rows) Drop(static_cast<size_t>(Find(row) - entries_.data()));
  return read;
}

// Few rows are read sooner by this thread than by waking others.
Status RowCache::Read() {
  if (fetcher_ == nullptr || missed_.rows.size() <= 2 * RowFetch::kPieceRows)
    return backing_.Read(missed_.rows, missed_.out);
  fetcher_->Begin(&missed_);
  return fetcher_->Finish(&missed_);
}

std::optional<uint32_t> RowCache::Ahead::Find(uint64_t row) const {
  const auto at = std::ranges::lower_bound(fetch.rows, row);
  const auto place = static_cast<uint32_t>(at - fetch.rows.begin());
  if (at == fetch.rows.end() || *at != row || slots[place] == kNoSlot) return std::nullopt;
  return place;
}

// Puts missed rows that were read ahead into the table, in the slots that they were read into.
Status RowCache::TakeAhead(Ahead& ahead, std::span<const uint64_t> rows, std::span<float*> out) {
  if (ahead.fetch.rows.empty() || misses_.empty()) return {};
  taken_.clear();
  taken_misses_.clear();
  size_t kept = 0;
  for (const uint32_t i : misses_) {
    if (const auto place = ahead.Find(rows[i])) {
      taken_.push_back(*place);
      taken_misses_.push_back(i);
    } else {
      misses_[kept++] = i;
    }
  }
  misses_.resize(kept);
  if (Status read = fetcher_->FinishSome(&ahead.fetch, taken_); !read) {
    Drop(ahead);
    return read;
  }
  TableCursor cursor(layout_.space);
  for (size_t k = 0; k < taken_.size(); ++k) {
    const uint32_t i = taken_misses_[k];
    const Slab& slab = slabs_[slab_of_table_[cursor.Advance(rows[i])]];
    const uint32_t slot = std::exchange(ahead.slots[taken_[k]], kNoSlot);
    Insert(rows[i], slot);
    out[i] = slab.At(slot);
  }
  read_ahead_ += taken_.size();
  return {};
}

void RowCache::Announce(std::span<const uint64_t> rows) {
  // While nearly all rows are in memory, to look for the others costs more than it saves.
  constexpr uint64_t kFew = 64;
  // The folded rows may be older than a delta that holds expected rows.
  if (fetcher_ == nullptr || expects()) return;
  std::swap(last_ahead_, ahead_);
  Drop(*ahead_);
  if (missing_ * kFew <= gathered_) return;
  std::vector<uint64_t>& wanted = ahead_->fetch.rows;
  for (size_t i = 0; i < kPrefetchAhead; ++i) Prefetch(rows, i);
  for (size_t i = 0; i < rows.size(); ++i) {
    Prefetch(rows, i + kPrefetchAhead);
    if (Entry* entry = Find(rows[i]))
      entry->state |= kUsed;
    else
      wanted.push_back(rows[i]);
  }
  std::ranges::sort(wanted);
  const auto repeats = std::ranges::unique(wanted);
  wanted.erase(repeats.begin(), repeats.end());
  std::erase_if(wanted, [&](uint64_t row) { return last_ahead_->Find(row).has_value(); });
  wanted.resize(FitAhead(wanted));
  TableCursor cursor(layout_.space);
  for (const uint64_t row : wanted) {
    const uint32_t table = cursor.Advance(row);
    Slab& slab = slabs_[slab_of_table_[table]];
    ahead_->slots.push_back(slab.Allocate());
    ahead_->fetch.out.push_back(slab.At(ahead_->slots.back()));
    bytes_ += Cost(table);
  }
  fetcher_->Begin(&ahead_->fetch);
}

// Makes room for as many of the rows as an announcement may take: a part of the budget, and no wait
// for a fold. What finds no room is read when it is gathered.
size_t RowCache::FitAhead(std::span<const uint64_t> rows) {
  TableCursor cursor(layout_.space);
  size_t bytes = 0, fit = 0;
  for (; fit < rows.size(); ++fit) {
    const size_t cost = Cost(cursor.Advance(rows[fit]));
    if (bytes + cost > budget_ / 4) break;
    bytes += cost;
  }
  if (bytes_ + bytes <= budget_) return fit;
  ForgetFolded();
  const size_t excess = bytes_ + bytes - budget_;
  if (bytes_ - pinned_bytes_ < excess) return 0;
  Evict(excess);
  return bytes_ + bytes <= budget_ ? fit : 0;
}

void RowCache::Drop(Ahead& ahead) {
  if (ahead.fetch.rows.empty()) return;
  fetcher_->Cancel(&ahead.fetch);
  TableCursor cursor(layout_.space);
  for (size_t i = 0; i < ahead.fetch.rows.size(); ++i) {
    const uint32_t table = cursor.Advance(ahead.fetch.rows[i]);
    if (ahead.slots[i] == kNoSlot) continue;
    slabs_[slab_of_table_[table]].Free(ahead.slots[i]);
    bytes_ -= Cost(table);
  }
  ahead.fetch.rows.clear();
  ahead.fetch.out.clear();
  ahead.slots.clear();
}

RowCache::~RowCache() {
  Drop(*last_ahead_);
  Drop(*ahead_);
}

void RowCache::MakeRoom(std::span<const uint64_t> rows, size_t bytes) {
  if (bytes_ + bytes <= budget_) return;
  const size_t excess = bytes_ + bytes - budget_;
  ForgetFolded();
  if (bytes_ - pinned_bytes_ < excess) {
    // The newest enqueued group: waiting for its fold unpins it and all earlier groups.
    const auto enqueued = std::find_if(groups_.rbegin(), groups_.rend(),
                                       [](const Group& group) { return group.seq.value > 0; });
    if (enqueued != groups_.rend()) backing_.FoldThrough(enqueued->seq);
    ForgetFolded();
  }
  SetHeld(rows, true);
  Evict(excess);
  SetHeld(rows, false);
}

// Holds rows of this Gather, which must outlive it, though the clock may already have passed them.
void RowCache::SetHeld(std::span<const uint64_t> rows, bool held) {
  for (size_t i = 0; i < rows.size(); ++i) {
    Prefetch(rows, i + kPrefetchAhead);
    if (Entry* entry = Find(rows[i]))
      entry->state = held ? entry->state | kHeld : entry->state & ~kHeld;
  }
}

void RowCache::Evict(size_t bytes) {
  const size_t mask = entries_.size() - 1;
  const size_t target = bytes_ > bytes ? bytes_ - bytes : 0;
  // Goes around twice: first to clear the used bits, then to evict.
  for (size_t steps = 2 * entries_.size(); steps > 0 && bytes_ > target; --steps) {
    Entry& entry = entries_[hand_];
    if (entry.row != kNoRow && (entry.state & kHeld) == 0 && !Pinned(entry)) {
      if ((entry.state & kUsed) == 0) {
        Drop(hand_);  // another entry may have moved here: look again
        ++evictions_;
        continue;
      }
      entry.state &= ~kUsed;
    }
    hand_ = (hand_ + 1) & mask;
  }
}

void RowCache::Drop(size_t place) {
  const uint32_t table = layout_.space.TableOf(entries_[place].row);
  slabs_[slab_of_table_[table]].Free(entries_[place].slot);
  bytes_ -= Cost(table);
  EraseAt(place);
}

void RowCache::MarkChanged(std::span<const uint64_t> rows) {
  TACIT_CHECK(arriving_ == nullptr, "rows are expected: gather them anew");
  TableCursor cursor(layout_.space);
  const uint32_t now = groups_.back().number;
  for (size_t i = 0; i < rows.size(); ++i) {
    Prefetch(rows, i + kPrefetchAhead);
    Entry* entry = Find(rows[i]);
    TACIT_CHECK(entry != nullptr, "a changed row must be of the last Gather");
    const uint32_t before = entry->state & kGroupMask;
    if (before == now) continue;
    const size_t cost = Cost(cursor.Advance(rows[i]));
    if (before > folded_group_) {
      GroupOf(before).rows -= 1;
      GroupOf(before).bytes -= cost;
    } else {
      pinned_rows_ += 1;
      pinned_bytes_ += cost;
    }
    groups_.back().rows += 1;
    groups_.back().bytes += cost;
    entry->state = (entry->state & ~kGroupMask) | now;
    changed_.push_back(rows[i]);
  }
}

// Rows that are on their way go into a delta by themselves: with others, or if they are to be
// rounded, they are brought at once.
Status RowCache::Expect(const std::shared_ptr<RowArrival>& arrival) {
  if (arriving_ != nullptr || !changed_.empty() || layout_.bf16) {
    TACIT_RETURN_IF_ERROR(TakeIn());
    return WorkingRows::Expect(arrival);
  }
  Drop(*last_ahead_);
  Drop(*ahead_);
  // If nobody gathers any more, deltas are taken in here: else each would be kept for ever.
  TACIT_RETURN_IF_ERROR(RenewAll());
  arriving_ = arrival;
  return {};
}

bool RowCache::expects() const {
  return arriving_ != nullptr ||
         std::ranges::any_of(groups_, [](const Group& group) { return !group.expected.expired(); });
}

void RowCache::Release() {
  if (groups_.size() > 1 || !changed_.empty() || arriving_ != nullptr) return;
  Drop(*last_ahead_);
  Drop(*ahead_);
  MakeSlabs();
  bytes_ = pinned_bytes_ = pinned_rows_ = 0;
}

// Makes the table be as of all rows that are expected.
Status RowCache::TakeIn() {
  TACIT_RETURN_IF_ERROR(RenewAll());
  if (arriving_ == nullptr) return {};
  return WorkingRows::Expect(std::exchange(arriving_, nullptr));
}

// Makes the table's rows be as of the deltas that were taken.
Status RowCache::RenewAll() {
  if (live_ > 0) {
    for (const auto& delta : not_taken_in_) {
      TACIT_RETURN_IF_ERROR(Arrive(*delta));
      Renew(*delta);
    }
  }
  not_taken_in_.clear();
  return {};
}

void RowCache::Renew(const RowDelta& delta) {
  TableCursor cursor(layout_.space);
  for (size_t i = 0; i < delta.size(); ++i) {
    Prefetch(delta.rows, i + kPrefetchAhead);
    const uint32_t table = cursor.Advance(delta.rows[i]);
    if (const Entry* entry = Find(delta.rows[i]))
      std::ranges::copy(delta.Row(i), slabs_[slab_of_table_[table]].At(entry->slot));
  }
}

// Copies missed rows out of the newest delta that has them and is not folded.
Status RowCache::TakeExpected(std::span<const uint64_t> rows, std::span<float*> out) {
  std::vector<std::shared_ptr<const RowDelta>> deltas;
  for (auto group = groups_.rbegin(); group != groups_.rend(); ++group)
    if (auto delta = group->expected.lock()) deltas.push_back(std::move(delta));
  for (const auto& delta : deltas) TACIT_RETURN_IF_ERROR(Arrive(*delta));
  std::vector<std::pair<uint32_t, std::span<const float>>> found;
  size_t bytes = 0;
  TableCursor cursor(layout_.space);
  std::erase_if(misses_, [&](uint32_t i) {
    for (const auto& delta : deltas) {
      const size_t at = delta->Find(rows[i]);
      if (at == delta->size()) continue;
      found.emplace_back(i, delta->Row(at));
      bytes += Cost(cursor.Advance(rows[i]));
      return true;
    }
    return false;
  });
  if (found.empty()) return {};
  MakeRoom(rows, bytes);
  cursor = TableCursor(layout_.space);
  for (const auto& [i, floats] : found) {
    Slab& slab = slabs_[slab_of_table_[cursor.Advance(rows[i])]];
    const uint32_t slot = slab.Allocate();
    Insert(rows[i], slot);
    out[i] = slab.At(slot);
    std::ranges::copy(floats, out[i]);
  }
  bytes_ += bytes;
  return {};
}

// Copies the delta's rows out of the table. Memory that is new is written once; and where a row
// lies is looked up while the rows before it are copied. Huge pages are not asked for: with large
// deltas they cost more than they saved (tests/bench/history/2026-11.md, "a commit's rows come home
// while the next steps run").
void RowCache::CopyOut(RowDelta* delta) {
  constexpr size_t kAhead = 8, kLineFloats = 16;
  const std::vector<uint64_t>& rows = delta->rows;
  delta->end.reserve(rows.size());
  size_t floats = 0;
  TableCursor cursor(layout_.space);
  for (const uint64_t row : rows)
    delta->end.push_back(floats += layout_.RowFloats(cursor.Advance(row)));
  delta->floats.reserve(floats);
  std::array<float*, kAhead> at{};
  cursor = TableCursor(layout_.space);
  for (size_t i = 0; i < rows.size() + kAhead; ++i) {
    if (i >= kAhead) {
      const size_t done = i - kAhead;
      const float* const row = at[done % kAhead];
      delta->floats.insert(delta->floats.end(), row, row + delta->Row(done).size());
    }
    if (i >= rows.size()) continue;
    Prefetch(rows, i + kPrefetchAhead);
    const uint32_t table = cursor.Advance(rows[i]);
    float* const row = slabs_[slab_of_table_[table]].At(Find(rows[i])->slot);
    for (uint32_t c = 0; c < layout_.RowFloats(table); c += kLineFloats)
      __builtin_prefetch(row + c);
    if (layout_.bf16)
      RoundToBf16(layout_.seed, backing_.next(), rows[i], {row, layout_.space.tables()[table].dim});
    at[i % kAhead] = row;
  }
}

std::shared_ptr<const RowDelta> RowCache::TakeDelta() {
  ForgetFolded();
  if (arriving_ != nullptr) {
    const auto expected = RowArrival::Rows(std::exchange(arriving_, nullptr));
    if (live_ > 0) not_taken_in_.push_back(expected);
    Group& group = groups_.back();
    group.expected = expected;
    EndGroup(expected.get());
    return expected;
  }
  auto delta = std::make_shared<RowDelta>();
  if (changed_.empty()) return delta;
  RadixSort(&changed_, &sorting_, [](uint64_t row) { return row; });
  delta->rows = changed_;
  changed_.clear();
  CopyOut(delta.get());
  EndGroup(delta.get());
  if (pinned_bytes_ > budget_ / 2) backing_.RequestFold();
  return delta;
}

void RowCache::EndGroup(const RowDelta* delta) {
  Group& group = groups_.back();
  group.delta = delta;
  TACIT_CHECK(group.number < kGroupMask, "too many deltas in one run");
  groups_.push_back({.number = group.number + 1});
}

void RowCache::Enqueued(const RowDelta* delta, CommitSeq seq) {
  for (Group& group : groups_) {
    if (group.seq.value > 0) continue;
    const bool filling = group.delta == nullptr;
    if (!filling && delta == nullptr) return;
    TACIT_CHECK(filling || group.delta == delta,
                "deltas must be committed in the order in which they were taken");
    if (!filling) group.seq = seq;
    return;
  }
}

void RowCache::ForgetFolded() {
  const CommitSeq folded = backing_.folded();
  while (groups_.front().seq.value > 0 && groups_.front().seq <= folded) {
    pinned_rows_ -= groups_.front().rows;
    pinned_bytes_ -= groups_.front().bytes;
    folded_group_ = groups_.front().number;
    groups_.pop_front();
  }
}

WorkingRows::Stats RowCache::stats() const {
  return {hits_, missed_rows_, evictions_, bytes_, pinned_rows_, read_ahead_};
}

}  // namespace tacit::store
