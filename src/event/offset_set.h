#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace tacit::event {

// A set of offsets, stored as runs: neighbouring offsets, the common case, cost nothing more.
class OffsetSet {
 public:
  bool Contains(uint64_t offset) const {
    auto after = run_.upper_bound(offset);
    return after != run_.begin() && std::prev(after)->second > offset;
  }
  void Insert(uint64_t offset) {
    if (Contains(offset)) return;
    auto at = run_.upper_bound(offset);
    if (at != run_.begin() && std::prev(at)->second == offset)
      at = std::prev(at);
    else
      at = run_.emplace_hint(at, offset, offset);
    at->second = offset + 1;
    auto next = std::next(at);
    if (next != run_.end() && next->first == offset + 1) {
      at->second = next->second;
      run_.erase(next);
    }
  }

 private:
  std::map<uint64_t, uint64_t> run_;  // begin -> end
};

}  // namespace tacit::event
