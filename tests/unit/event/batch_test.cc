#include "event/batch.h"

#include <gtest/gtest.h>

#include <random>

namespace tacit::event {
namespace {

constexpr size_t kDense = 2, kSlots = 3;

// Example `offset` in a batch: everything about it follows from its offset.
void AppendExample(uint64_t offset, Batch* batch) {
  batch->offset.push_back(offset);
  batch->timestamp_ms.push_back(static_cast<int64_t>(offset * 10));
  batch->label.push_back(offset % 3 == 0 ? 1.0f : 0.0f);
  for (size_t i = 0; i < kDense; ++i) batch->dense.push_back(static_cast<float>(offset + i));
  for (size_t s = 0; s < kSlots; ++s) {
    for (uint64_t k = 0; k <= (offset + s) % 3; ++k)
      batch->row.push_back(offset * 100 + s * 10 + k);
    batch->slot_end.push_back(static_cast<uint32_t>(batch->row.size()));
  }
  batch->weight.push_back(static_cast<float>(offset) / 256);
  batch->item.push_back(offset % 5 == 0 ? kNoItem : static_cast<uint32_t>(offset * 7));
  batch->user.Append("user" + std::to_string(offset));
}

Batch Empty() {
  Batch batch;
  batch.dense_width = kDense;
  batch.slots = kSlots;
  return batch;
}

void ExpectEqual(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.offset, b.offset);
  EXPECT_EQ(a.timestamp_ms, b.timestamp_ms);
  EXPECT_EQ(a.label, b.label);
  EXPECT_EQ(a.dense, b.dense);
  EXPECT_EQ(a.slot_end, b.slot_end);
  EXPECT_EQ(a.row, b.row);
  EXPECT_EQ(a.weight, b.weight);
  EXPECT_EQ(a.item, b.item);
  ASSERT_EQ(a.user.size(), b.user.size());
  for (size_t i = 0; i < a.user.size(); ++i) EXPECT_EQ(a.user[i], b.user[i]);
}

TEST(BatchTest, PiecesPutTogetherAreTheWhole) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Batch whole = Empty();
  for (uint64_t offset = 0; offset < 200; ++offset) AppendExample(offset, &whole);
  Batch pieces = Empty();
  for (size_t at = 0; at < whole.size();) {
    const size_t end = std::min<size_t>(whole.size(), at + random() % 20);
    pieces.AppendRange(whole, at, end);
    at = end;
  }
  ExpectEqual(pieces, whole);
}

TEST(BatchTest, SlotsOfAnAppendedRangeHoldTheirRows) {
  Batch whole = Empty();
  for (uint64_t offset = 0; offset < 10; ++offset) AppendExample(offset, &whole);
  Batch part = Empty();
  part.AppendRange(whole, 7, 9);
  ASSERT_EQ(part.size(), 2u);
  const auto rows = part.Slot(1, 1);  // of offset 8: (8 + 1) % 3 + 1 rows
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0], 810u);
}

TEST(BatchTest, ClearKeepsTheShape) {
  Batch batch = Empty();
  AppendExample(1, &batch);
  batch.Clear();
  EXPECT_EQ(batch.size(), 0u);
  EXPECT_EQ(batch.slots, kSlots);
  ExpectEqual(batch, Empty());
}

// A run of nothing but bad records gives a batch without columns.
TEST(BatchTest, NothingIsAppendedWhateverItsColumns) {
  Batch batch = Empty();
  AppendExample(1, &batch);
  ASSERT_FALSE(batch.user.empty());
  batch.AppendRange(Empty(), 0, 0);
  EXPECT_EQ(batch.size(), 1u);
  EXPECT_EQ(batch.user.size(), 1u);
}

TEST(BatchDeathTest, ColumnsThatAreNotInAllBatchesAreRefused) {
  Batch batch = Empty(), other = Empty();
  AppendExample(1, &batch);
  AppendExample(2, &other);
  other.item.clear();
  EXPECT_DEATH(batch.AppendRange(other, 0, 1), "differ in columns");
  other.item = batch.item;
  other.weight.clear();
  EXPECT_DEATH(batch.AppendRange(other, 0, 1), "differ in columns");
}

TEST(BatchDeathTest, BatchesOfAnotherShapeAreRefused) {
  Batch batch = Empty(), other;
  other.dense_width = 1;
  EXPECT_DEATH(batch.AppendRange(other, 0, 0), "differ in shape");
}

}  // namespace
}  // namespace tacit::event
