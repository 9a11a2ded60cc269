#include "train/quality/window_counter.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tacit::train {
namespace {

// Counts the records in [from, to) with letters: each once, however many it has.
uint64_t CountIn(uint64_t from, uint64_t to, std::span<const event::DeadLetter> dead) {
  std::vector<uint64_t> offsets;
  for (const event::DeadLetter& letter : dead)
    if (letter.offset >= from && letter.offset < to) offsets.push_back(letter.offset);
  std::ranges::sort(offsets);
  const auto copies = std::ranges::unique(offsets);
  return offsets.size() - copies.size();
}

}  // namespace

WindowCounter::WindowCounter(uint64_t window, std::span<const OffsetRange> next) : window_(window) {
  TACIT_CHECK(window > 0, "a window holds something");
  for (const OffsetRange& range : next) open_[range.partition] = {.begin = range.begin};
}

std::optional<WindowEnd> WindowCounter::Take(int32_t partition, uint64_t from, uint64_t* to,
                                             std::span<const event::DeadLetter> dead) {
  Open& open = open_.try_emplace(partition, Open{.begin = from}).first->second;
  if (from < open.begin) {
    *to = std::min(*to, open.begin);
    return std::nullopt;
  }
  // Records are gone that would have been the rest of it: it is never decided.
  if (from >= open.begin + window_) open = {.begin = from};
  const uint64_t end = open.begin + window_;
  *to = std::min(*to, end);
  open.unreadable += CountIn(from, *to, dead);
  if (*to < end) return std::nullopt;
  WindowEnd ended{{{partition, open.begin, end}}, open.unreadable};
  open = {.begin = end};
  return ended;
}

PeriodCounter::PeriodCounter(std::span<const OffsetRange> next) {
  for (const OffsetRange& range : next) begins_[range.partition] = range.begin;
}

void PeriodCounter::Take(const event::RawRecords& records,
                         std::span<const event::DeadLetter> dead) {
  const uint64_t begin = begins_[records.partition];
  unreadable_ += CountIn(std::max(records.first_offset, begin), records.end_offset(), dead);
  if (records.first_offset >= begin) unreadable_ += records.summed.all_dead();
}

std::optional<WindowEnd> PeriodCounter::End(std::span<const OffsetRange> period) {
  WindowEnd window{.ranges = {}, .unreadable = std::exchange(unreadable_, 0)};
  for (OffsetRange range : period) {
    uint64_t& begin = begins_[range.partition];
    range.begin = std::max(range.begin, begin);
    if (range.begin >= range.end) continue;
    begin = range.end;
    window.ranges.push_back(range);
  }
  if (window.ranges.empty()) return std::nullopt;
  return window;
}

}  // namespace tacit::train
