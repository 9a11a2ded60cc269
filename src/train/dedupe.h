#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/siphash.h"
#include "event/batch.h"

namespace tacit::train {

// Finds records whose event id occurred before: among the `window` offsets before theirs, in their
// partition, with the same user (so that one user's records never decide about another's). A
// repeated record counts as seen too, so copies that follow each other are one event, however many
// they are. Records without an event id are always new.
//
// Exact: ids are compared by 128 bits under a secret key. Two of 2^40 ids share them with
// probability 2^-49 only, and nobody without the key can make two share them. Allocates nothing per
// record. Takes about 32 bytes per offset of the window and partition, from a partition's first
// record on. The ids seen are in memory only: a learner that begins in the middle of a stream reads
// the window before it again.
//
// Not thread-safe.
class Deduper {
 public:
  // REQUIRES 0 < window <= 2^28.
  Deduper(uint64_t window, const SipHash::Key& key);
  // The bytes of this number of partitions, for plans of memory.
  static double BytesOf(uint64_t window, uint64_t partitions) {
    return 32 * static_cast<double>(window) * static_cast<double>(partitions);
  }

  uint64_t window() const { return window_; }
  // Fills `repeated` with the examples, ascending, that occurred before. Batches of a partition
  // come in the order of their offsets.
  void Find(const event::Batch& batch, std::vector<uint32_t>* repeated);
  // Forgets everything, for a stream that begins again.
  void Clear() { partitions_.clear(); }

 private:
  // The id of offset o is at seen[o % window], unless it came again later. `places` is its
  // open-addressing index: slot + 1, or 0 if free.
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

}  // namespace tacit::train
