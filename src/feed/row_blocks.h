#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/types/delta.h"

// Small rows, many to a record. A linear model's row is one weight, and a record has 63 bytes and a
// microsecond of work around it. So such rows are sent in blocks of neighbours. A block holds all
// of its rows that were ever written, and so a newer block takes an older one's place whole.
namespace tacit::feed {

inline constexpr uint64_t kBlockRows = 256;  // buckets of a table that have a block

// The floats of a row of the table as it is sent (RecordOrigin::moves).
size_t SentFloats(const store::RowLayout& layout, size_t table, bool moves);
// True if a learner's rows are sent in blocks: each has few floats, and all of them together fit
// into the publisher's memory. It follows from the layout, so both ends say the same.
bool SendsBlocks(const store::RowLayout& layout, bool moves = false);

// A block as a record has it.
//     block := written:u64*4 changed:u64*4 f32*n for each written row
// A bit stands for a bucket of the block. `changed`: since the version that was published before;
// of a version that was sent whole, all that are written.
struct Block {
  using Bits = std::array<uint64_t, kBlockRows / 64>;
  Bits written{}, changed{};
  std::string_view floats;  // of the bytes that were decoded

  size_t rows() const;  // written
  // each(place in the block, bytes of its floats, whether it has changed)
  template <class Each>
  void ForRows(const Each& each) const;
};
// Takes a payload apart. kCorruption: it is no block.
Result<Block> DecodeBlock(std::string_view payload);

// All rows of a learner that a publisher has released, as blocks. Not thread-safe. Memory: BytesOf.
class RowBlocks {
 public:
  // REQUIRES SendsBlocks(layout, moves).
  explicit RowBlocks(const store::RowLayout& layout, bool moves = false);

  // Notes a row's floats. `changed`: since the version before.
  void Put(uint16_t table, uint64_t bucket, std::span<const float> floats, bool changed);
  // From now on nothing has changed.
  void ForgetChanges();
  // Shows each block that has a changed row: the table's number, the block's, and its payload. A
  // failure of `each` ends it.
  using EachBlock = std::function<Status(uint16_t table, uint64_t block, std::string_view payload)>;
  Status ForChanged(const EachBlock& each) const;

  static uint64_t BytesOf(const store::RowLayout& layout, bool moves = false);

 private:
  struct Table {
    uint16_t number = 0;
    uint64_t rows = 0;
    size_t floats = 0;                          // of a row
    std::vector<Block::Bits> written, changed;  // by block
    std::vector<float> values;                  // by bucket
  };
  std::vector<Table> tables_;
};

template <class Each>
void Block::ForRows(const Each& each) const {
  const size_t count = rows();
  const size_t bytes = count == 0 ? 0 : floats.size() / count;
  size_t at = 0;
  for (size_t word = 0; word < written.size(); ++word)
    for (uint64_t left = written[word]; left != 0; left &= left - 1, at += bytes) {
      const auto bit = static_cast<size_t>(std::countr_zero(left));
      each(word * 64 + bit, floats.substr(at, bytes), (changed[word] >> bit & 1) != 0);
    }
}

}  // namespace tacit::feed
