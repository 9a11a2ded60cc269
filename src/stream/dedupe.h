#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/siphash.h"
#include "event/batch.h"

namespace tacit::stream {

// Finds records whose event id was there before: among the `window` offsets before theirs, in their
// partition, with the same user (so that one user's records never decide about another's). What was
// found counts as seen, so copies that follow each other are one event however many they are.
// Records without an event id are always new.
//
// Exact: ids are compared by 128 bits under a secret key, which no two of 2^40 share but with
// probability 2^-49, and nobody can make share. Nothing is allocated per record. About 32 bytes per
// offset of the window and partition, taken with a partition's first record. What was seen is in
// memory alone: whoever begins in the middle of a stream reads the window before it again.
//
// Not thread-safe.
class Deduper {
 public:
  // REQUIRES 0 < window <= 2^28.
  Deduper(uint64_t window, const SipHash::Key& key);

  uint64_t window() const { return window_; }
  // Fills `repeated` with the examples, ascending, that were there before. Batches of a partition
  // come in the order of their offsets.
  void Find(const event::Batch& batch, std::vector<uint32_t>* repeated);
  // The stream begins anew.
  void Clear() { partitions_.clear(); }

 private:
  // Offset o's id is at seen[o % window], unless it came again later; `places` finds it: open
  // addressing, slot + 1 or 0.
  struct Partition {
    uint64_t next = 0;  // offset
    std::vector<Hash128> seen;
    std::vector<uint32_t> places;

    size_t PlaceOf(const Hash128& hash) const;
    void Insert(const Hash128& hash, uint32_t slot);
    void Erase(uint32_t slot);
  };

  void Advance(uint64_t offset, Partition* partition) const;

  const uint64_t window_;
  const SipHash hash_;
  std::map<int32_t, Partition> partitions_;
  std::string text_;
};

}  // namespace tacit::stream
