#include "train/quality/window_counter.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tacit::train {

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
  const WindowEnd ended{{partition, open.begin, end}, open.unreadable};
  open = {.begin = end};
  return ended;
}

// A record counts once, however many letters it has.
uint64_t WindowCounter::CountIn(uint64_t from, uint64_t to,
                                std::span<const event::DeadLetter> dead) {
  offsets_.clear();
  for (const event::DeadLetter& letter : dead)
    if (letter.offset >= from && letter.offset < to) offsets_.push_back(letter.offset);
  std::ranges::sort(offsets_);
  const auto copies = std::ranges::unique(offsets_);
  return offsets_.size() - copies.size();
}

}  // namespace tacit::train
