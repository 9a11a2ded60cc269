#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "stream/kafka/rounds.h"

namespace tacit::stream {

// The order of the partitions' records, decided by rounds, offsets and record timestamps alone. A
// record's content and size, the time of its fetch and how long any work on it took have no
// influence, so nulling one record changes no step of other people.
//
// A round gives each partition a share: the offsets from its position to the round's end. Shares
// are cut into blocks at multiples of kBlock. The next block belongs to the partition whose first
// record not yet taken has the least (timestamp, blocks taken in this round, partition). So records
// that existed before are learnt in the order of time, and partitions with equal times take turns.
// Shares of which something comes first (SetFirst) go before all others, up to there.
// A block that has begun is taken whole. If the first record of a share is not known yet, the order
// waits for it.
//
// Pure: makes no call to brokers or clocks. Not thread-safe.
class TurnOrder {
 public:
  static constexpr uint64_t kBlock = 4096;

  struct Head {
    uint64_t offset = 0;
    int64_t timestamp_ms = 0;
  };
  // A partition's position, and the facts known about what follows.
  struct Place {
    int32_t partition = 0;
    uint64_t next = 0;                        // the next offset to take
    std::optional<Head> head = std::nullopt;  // the first record at or after `next`, if it has come
    uint64_t empty_until = 0;                 // no record is between `next` and here
  };
  struct Turn {
    enum class Kind {
      kLook,     // Set the head of `partition`: nothing can be decided before
      kTake,     // records of `partition` below `until`
      kNoRound,  // the round is over, or there was none
    };
    Kind kind = Kind::kNoRound;
    int32_t partition = 0;
    uint64_t until = 0;
  };

  // Takes what the partition has before `until` before the other partitions' records. It follows
  // from the position that a store has committed, and so from public facts.
  void SetFirst(int32_t partition, uint64_t until) { first_[partition] = until; }
  // Sets a partition's place. A new partition has no share before the next round.
  void Set(const Place& place);
  bool Knows(int32_t partition) const;
  // Begins a round. REQUIRES that the last round is over and all its partitions are known.
  void Begin(const Round& round);
  Turn Next();

  // The last round's tick, if it has one, and the round's end in a partition.
  bool tick() const { return tick_; }
  void ClearTick() { tick_ = false; }
  uint64_t End(int32_t partition) const;
  // Forgets the round and the shares not taken.
  void DropRound();
  void Clear();

 private:
  struct Share {
    Place place;
    uint64_t end = 0;
    uint64_t blocks = 0;  // taken in this round
  };
  struct Block {
    int32_t partition = 0;
    uint64_t until = 0;
  };

  // Returns the index of the partition's share, or the index where it belongs.
  size_t IndexOf(int32_t partition) const;
  // Returns true if the first record of a's block comes before that of b's.
  static bool IsBefore(const Share& a, const Share& b);
  // Begins the next block, or returns what is missing for that.
  Turn Choose();
  Turn ChooseFirst();
  Turn Take(const Share& share, uint64_t end);

  std::vector<Share> shares_;  // ascending by partition
  std::map<int32_t, uint64_t> first_;
  std::optional<Block> block_;
  bool tick_ = false;
};

}  // namespace tacit::stream
