#include "feed/row_blocks.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "base/check.h"
#include "feed/record.h"

namespace tacit::feed {
namespace {

// More floats than these are worth a record of their own.
constexpr size_t kFloatsMost = 4;
// A publisher holds all rows of such a learner, up to this size.
constexpr uint64_t kHeldBytesMost = uint64_t{64} << 20;

uint64_t BlocksOf(uint64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

}  // namespace

size_t SentFloats(const store::RowLayout& layout, size_t table, bool moves) {
  const uint32_t dim = layout.space.tables()[table].dim;
  return dim + layout.average.StateFloats(dim) + (moves ? kMoveFloats : 0);
}

bool SendsBlocks(const store::RowLayout& layout, bool moves) {
  for (size_t table = 0; table < layout.space.tables().size(); ++table)
    if (SentFloats(layout, table, moves) > kFloatsMost) return false;
  return RowBlocks::BytesOf(layout, moves) <= kHeldBytesMost;
}

size_t Block::rows() const {
  size_t count = 0;
  for (const uint64_t word : written) count += static_cast<size_t>(std::popcount(word));
  return count;
}

Result<Block> DecodeBlock(std::string_view payload) {
  Block block;
  constexpr size_t kHead = sizeof(block.written) + sizeof(block.changed);
  if (payload.size() < kHead) return Fail(ErrorCode::kCorruption, "is a block without a head");
  std::memcpy(block.written.data(), payload.data(), sizeof(block.written));
  std::memcpy(block.changed.data(), payload.data() + sizeof(block.written), sizeof(block.changed));
  block.floats = payload.substr(kHead);
  const size_t row_bytes = sizeof(float) * std::max<size_t>(1, block.rows());
  if (block.floats.size() % row_bytes != 0 || block.floats.empty() != (block.rows() == 0))
    return Fail(ErrorCode::kCorruption, "is a block of another length than its rows have");
  for (size_t word = 0; word < block.written.size(); ++word)
    if ((block.changed[word] & ~block.written[word]) != 0)
      return Fail(ErrorCode::kCorruption, "is a block with a changed row that is not written");
  return block;
}

RowBlocks::RowBlocks(const store::RowLayout& layout, bool moves) {
  TACIT_CHECK(SendsBlocks(layout, moves), "these rows have records of their own");
  for (uint32_t t = 0; t < layout.space.tables().size(); ++t) {
    Table& table = tables_.emplace_back();
    table.number = layout.PlaceOf(t).number;
    table.rows = layout.space.tables()[t].rows;
    table.floats = SentFloats(layout, t, moves);
    table.written.resize(BlocksOf(table.rows));
    table.changed.resize(BlocksOf(table.rows));
    table.values.resize(table.rows * table.floats);
  }
}

void RowBlocks::Put(uint16_t number, uint64_t bucket, std::span<const float> floats, bool changed) {
  // Rows come table by table, and tables are numbered by their place but in models that have grown.
  const bool placed = number < tables_.size() && tables_[number].number == number;
  const auto found =
      placed ? tables_.begin() + number : std::ranges::find(tables_, number, &Table::number);
  TACIT_CHECK(found != tables_.end() && bucket < found->rows && floats.size() == found->floats,
              "a row is none of the layout's");
  Table& table = *found;
  std::ranges::copy(floats, table.values.begin() + static_cast<ptrdiff_t>(bucket * table.floats));
  const uint64_t bit = uint64_t{1} << bucket % 64;
  table.written[bucket / kBlockRows][bucket % kBlockRows / 64] |= bit;
  if (changed) table.changed[bucket / kBlockRows][bucket % kBlockRows / 64] |= bit;
}

void RowBlocks::ForgetChanges() {
  for (Table& table : tables_) std::ranges::fill(table.changed, Block::Bits{});
}

Status RowBlocks::ForChanged(const EachBlock& each) const {
  std::string payload;
  for (const Table& table : tables_)
    for (uint64_t block = 0; block < table.changed.size(); ++block) {
      const Block::Bits& changed = table.changed[block];
      if (changed == Block::Bits{}) continue;
      const Block::Bits& written = table.written[block];
      payload.assign(reinterpret_cast<const char*>(written.data()), sizeof(written));
      payload.append(reinterpret_cast<const char*>(changed.data()), sizeof(changed));
      const size_t row_bytes = table.floats * sizeof(float);
      for (size_t word = 0; word < written.size(); ++word)
        for (uint64_t left = written[word]; left != 0; left &= left - 1) {
          const uint64_t bucket =
              block * kBlockRows + word * 64 + static_cast<uint64_t>(std::countr_zero(left));
          payload.append(reinterpret_cast<const char*>(table.values.data() + bucket * table.floats),
                         row_bytes);
        }
      TACIT_RETURN_IF_ERROR(each(table.number, block, payload));
    }
  return {};
}

uint64_t RowBlocks::BytesOf(const store::RowLayout& layout, bool moves) {
  uint64_t bytes = 0;
  const auto tables = layout.space.tables();
  for (size_t table = 0; table < tables.size(); ++table)
    bytes += tables[table].rows * SentFloats(layout, table, moves) * sizeof(float) +
             BlocksOf(tables[table].rows) * 2 * sizeof(Block::Bits);
  return bytes;
}

}  // namespace tacit::feed
