#pragma once

#include <cstdint>
#include <deque>

#include "base/ids.h"
#include "base/result.h"
#include "store/disk/rocks.h"

namespace tacit::store {

// The deltas of folded commits that are still on disk, because they have not been published yet.
// A deletion that a crash cut short is finished later, and is harmless: nothing reads a folded
// delta except the publisher. A value; one thread at a time.
class Outbox {
 public:
  // Finds the deltas on disk. REQUIRES that all commits are folded.
  Status Find(const Rocks& rocks);
  // Notes a delta that stays behind when its commit is folded. REQUIRES a later one than all
  // before.
  void Add(CommitSeq seq, uint64_t bytes);
  // Deletes those up to `taken`, and then the oldest until `bytes_most` are left.
  Status Trim(const Rocks& rocks, CommitSeq taken, uint64_t bytes_most);
  uint64_t bytes() const { return bytes_; }

 private:
  struct Kept {
    CommitSeq seq;
    uint64_t bytes = 0;
  };
  std::deque<Kept> kept_;  // ascending
  uint64_t bytes_ = 0;
};

}  // namespace tacit::store
