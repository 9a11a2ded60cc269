#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>

namespace tacit::event {

// The offsets of partitions seen so far, in bounded memory: a block of about 128 bytes covers 512
// neighbours, however many of them are set. If a new block exceeds the limit, the lowest block of
// its partition is dropped: after a restart the highest offsets come again.
class RecentOffsets {
 public:
  // Four MiB: sixteen million neighbouring offsets.
  static constexpr size_t kBlocksMost = 32768;

  explicit RecentOffsets(size_t blocks_most = kBlocksMost) : blocks_most_(blocks_most) {}

  bool Contains(int32_t partition, uint64_t offset) const {
    const auto blocks = partitions_.find(partition);
    if (blocks == partitions_.end()) return false;
    const auto block = blocks->second.find(offset / kBlock);
    return block != blocks->second.end() && block->second.test(offset % kBlock);
  }

  void Insert(int32_t partition, uint64_t offset) {
    Blocks& blocks = partitions_[partition];
    const auto [block, is_new] = blocks.try_emplace(offset / kBlock);
    block->second.set(offset % kBlock);
    if (!is_new || ++size_ <= blocks_most_) return;
    --size_;
    blocks.erase(blocks.begin());
  }

  size_t blocks() const { return size_; }

 private:
  static constexpr uint64_t kBlock = 512;
  using Blocks = std::map<uint64_t, std::bitset<kBlock>>;

  size_t blocks_most_;
  size_t size_ = 0;
  std::map<int32_t, Blocks> partitions_;
};

}  // namespace tacit::event
