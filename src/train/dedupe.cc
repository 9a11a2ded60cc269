#include "train/dedupe.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace tacit::train {
namespace {

constexpr Hash128 kNone{};  // no id has this hash: the chance is 2^-128

}  // namespace

Deduper::Deduper(uint64_t window, const SipHash::Key& key) : window_(window), hash_(key) {
  TACIT_CHECK(window > 0 && window <= uint64_t{1} << 28, "no window");
}

void Deduper::Find(const event::Batch& batch, std::vector<uint32_t>* repeated) {
  repeated->clear();
  if (batch.size() == 0 || batch.event_id.empty()) return;
  Partition& partition = partitions_[batch.partition];
  if (partition.seen.empty()) {
    partition.next = batch.offset.front();
    partition.seen.assign(window_, kNone);
    partition.places.assign(std::bit_ceil(2 * window_), 0);
  }
  for (uint32_t i = 0; i < batch.size(); ++i) {
    Advance(batch.offset[i], &partition);
    const std::string_view id = batch.event_id[i];
    const auto slot = static_cast<uint32_t>(partition.next++ % window_);
    Hash128 hash = kNone;
    if (!id.empty()) {
      const std::string_view user = batch.user.empty() ? std::string_view() : batch.user[i];
      const auto length = static_cast<uint32_t>(user.size());
      text_.resize(sizeof(length));
      std::memcpy(text_.data(), &length, sizeof(length));
      text_.append(user).append(id);
      hash = hash_(text_);
      const size_t place = partition.PlaceOf(hash);
      if (partition.places[place] != 0) {
        partition.Erase(partition.places[place] - 1);
        repeated->push_back(i);
      }
    }
    // This slot held the id `window` offsets back, the last one that the look-up covered.
    partition.Erase(slot);
    if (hash != kNone) partition.Insert(hash, slot);
  }
}

// Moves the window up to `offset`; skipped offsets have no example.
void Deduper::Advance(uint64_t offset, Partition* partition) const {
  TACIT_CHECK(offset >= partition->next, "records out of order");
  if (offset - partition->next > window_) {
    std::fill(partition->seen.begin(), partition->seen.end(), kNone);
    std::fill(partition->places.begin(), partition->places.end(), 0);
    partition->next = offset;
  }
  for (; partition->next < offset; ++partition->next)
    partition->Erase(static_cast<uint32_t>(partition->next % window_));
}

// Returns the place of the id, or the free place where it belongs. At most half of the places are
// taken.
size_t Deduper::Partition::PlaceOf(const Hash128& hash) const {
  const size_t mask = places.size() - 1;
  size_t place = hash.low & mask;
  while (places[place] != 0 && seen[places[place] - 1] != hash) place = (place + 1) & mask;
  return place;
}

void Deduper::Partition::Insert(const Hash128& hash, uint32_t slot) {
  places[PlaceOf(hash)] = slot + 1;
  seen[slot] = hash;
}

// Removes a slot's id. Later entries move up, so that the probe path to each has no gap.
void Deduper::Partition::Erase(uint32_t slot) {
  if (seen[slot] == kNone) return;
  const size_t mask = places.size() - 1;
  size_t hole = PlaceOf(seen[slot]);
  for (size_t next = (hole + 1) & mask; places[next] != 0; next = (next + 1) & mask) {
    const size_t home = seen[places[next] - 1].low & mask;
    if (((next - home) & mask) < ((next - hole) & mask)) continue;
    places[hole] = places[next];
    hole = next;
  }
  places[hole] = 0;
  seen[slot] = kNone;
}

}  // namespace tacit::train
