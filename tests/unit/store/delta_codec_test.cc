#include "store/view/delta_codec.h"

#include <gtest/gtest.h>

#include <random>

namespace tacit::store {
namespace {

DeltaRecord MakeRecord() {
  DeltaRecord record;
  record.previous.seq = CommitSeq(6);
  record.previous.ledger_entries = 2;
  record.tip.seq = CommitSeq(7);
  record.tip.head.fill(3);
  record.tip.ledger_entries = 3;
  record.tip.learners = {{"ctr", privacy::Unit::kEvent, 1.5, 1e-6, 70}};
  record.tip.total = {"", privacy::Unit::kEvent, 1.5, 1e-6, 70};
  record.previous_entries = {"before"};
  record.entries = {"after", ""};
  record.source_identity = "log of 3 files";
  auto rows = std::make_shared<RowDelta>();
  rows->rows = {2, 5, 9};
  rows->end = {2, 3, 5};
  rows->floats = {1, 2, 3, 4, 5};
  auto dense = std::make_shared<DenseState>();
  dense->parameters = {0.5f, -1};
  dense->optimizer = {9};
  record.learners.emplace_back(0, LearnerCommit{.rows = rows, .position = "at 12"});
  record.learners.emplace_back(4, LearnerCommit{.dense = dense});
  return record;
}

std::string Flatten(const DeltaBlob& blob) {
  std::string flat;
  for (std::string_view piece : blob.pieces()) flat.append(piece);
  EXPECT_EQ(flat.size(), blob.bytes());
  return flat;
}

TEST(DeltaCodecTest, ReadsBackWhatWasWritten) {
  const DeltaRecord record = MakeRecord();
  const auto read = DecodeDelta(Flatten(DeltaBlob(record)), CommitSeq(7));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(EncodeTip(read->tip), EncodeTip(record.tip));
  EXPECT_EQ(EncodeTip(read->previous), EncodeTip(record.previous));
  EXPECT_EQ(read->tip.learners[0].steps, 70u);
  EXPECT_EQ(read->entries, record.entries);
  EXPECT_EQ(read->previous_entries, record.previous_entries);
  EXPECT_EQ(read->source_identity, "log of 3 files");
  ASSERT_EQ(read->learners.size(), 2u);
  const auto& [key, first] = read->learners[0];
  EXPECT_EQ(key, 0);
  EXPECT_EQ(first.position, "at 12");
  EXPECT_EQ(first.rows->rows, record.learners[0].second.rows->rows);
  EXPECT_EQ(first.rows->floats, record.learners[0].second.rows->floats);
  EXPECT_EQ(first.dense, nullptr);
  const auto& [other_key, other] = read->learners[1];
  EXPECT_EQ(other_key, 4);
  EXPECT_EQ(other.rows, nullptr);
  EXPECT_EQ(other.dense->parameters, record.learners[1].second.dense->parameters);
  EXPECT_EQ(other.dense->optimizer, record.learners[1].second.dense->optimizer);
}

TEST(DeltaCodecTest, EveryFlippedByteAndEveryCutIsFound) {
  const std::string blob = Flatten(DeltaBlob(MakeRecord()));
  for (size_t i = 0; i < blob.size(); ++i) {
    std::string flipped = blob;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    EXPECT_FALSE(DecodeDelta(flipped, CommitSeq(7))) << "byte " << i;
    EXPECT_FALSE(DecodeDelta(blob.substr(0, i), CommitSeq(7))) << "cut at " << i;
  }
  EXPECT_FALSE(DecodeDelta(blob, CommitSeq(8)));
}

TEST(DeltaCodecTest, FindsRows) {
  const auto rows = MakeRecord().learners[0].second.rows;
  EXPECT_EQ(rows->Find(5), 1u);
  EXPECT_EQ(rows->Find(9), 2u);
  EXPECT_EQ(rows->Find(0), rows->size());
  EXPECT_EQ(rows->Find(6), rows->size());
  EXPECT_EQ(rows->Find(10), rows->size());
  EXPECT_EQ(rows->Row(2)[1], 5.0f);
}

}  // namespace
}  // namespace tacit::store
