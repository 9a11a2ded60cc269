#include "train/dedupe.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

namespace tacit::train {
namespace {

struct Record {
  uint64_t offset = 0;
  std::string user, id;
};

event::Batch BatchOf(const std::vector<Record>& records, int32_t partition = 0) {
  event::Batch batch;
  batch.partition = partition;
  for (const Record& record : records) {
    batch.offset.push_back(record.offset);
    batch.timestamp_ms.push_back(0);
    batch.label.push_back(0);
    batch.user.Append(record.user);
    batch.event_id.Append(record.id);
  }
  return batch;
}

std::set<uint64_t> Repeated(Deduper& deduper, const std::vector<Record>& records,
                            int32_t partition = 0) {
  const event::Batch batch = BatchOf(records, partition);
  std::vector<uint32_t> found;
  deduper.Find(batch, &found);
  std::set<uint64_t> offsets;
  for (uint32_t i : found) offsets.insert(batch.offset[i]);
  return offsets;
}

// Against a map that forgets nothing, over batches of any size and offsets without a record.
TEST(DedupeTest, FindsWhatADefinitionFinds) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    const uint64_t window = 1 + random() % 40, ids = 1 + random() % 60;
    Deduper deduper(window, {static_cast<uint8_t>(round)});
    std::map<int32_t, std::map<std::pair<std::string, std::string>, uint64_t>> last;
    std::map<int32_t, uint64_t> next;
    for (int b = 0; b < 40; ++b) {
      const auto partition = static_cast<int32_t>(random() % 2);
      std::vector<Record> records;
      std::set<uint64_t> want;
      uint64_t& offset = next[partition];
      for (uint64_t n = random() % 12; n > 0; --n) {
        offset += random() % 30 == 0 ? random() % 100 : random() % 2;
        const Record record{offset, "u" + std::to_string(random() % 2),
                            random() % 8 == 0 ? "" : "e" + std::to_string(random() % ids)};
        if (!record.id.empty()) {
          const auto key = std::pair(record.user, record.id);
          const auto before = last[partition].find(key);
          if (before != last[partition].end() && offset - before->second <= window)
            want.insert(offset);
          last[partition][key] = offset;
        }
        records.push_back(record);
        ++offset;
      }
      ASSERT_EQ(Repeated(deduper, records, partition), want) << "round " << round;
    }
  }
}

TEST(DedupeTest, TheWindowIsCountedInOffsets) {
  Deduper deduper(10, {});
  EXPECT_EQ(Repeated(deduper, {{0, "u", "a"}, {10, "u", "a"}}), (std::set<uint64_t>{10}));
  // A copy counts as seen: the next is measured from it.
  EXPECT_EQ(Repeated(deduper, {{20, "u", "a"}}), (std::set<uint64_t>{20}));
  EXPECT_EQ(Repeated(deduper, {{31, "u", "a"}}), (std::set<uint64_t>{}));
}

// One user's records must not decide whether another's are there.
TEST(DedupeTest, AnotherUsersEventIsAnotherEvent) {
  Deduper deduper(100, {});
  EXPECT_EQ(Repeated(deduper, {{0, "ann", "1"}, {1, "bob", "1"}, {2, "ann1", ""}, {3, "ann", "1"}}),
            (std::set<uint64_t>{3}));
  // Nor do the texts run together.
  EXPECT_EQ(Repeated(deduper, {{4, "c", "de"}, {5, "cd", "e"}}), (std::set<uint64_t>{}));
}

TEST(DedupeTest, AnotherPassIsAnotherStream) {
  Deduper deduper(100, {});
  EXPECT_EQ(Repeated(deduper, {{0, "u", "a"}, {1, "u", "b"}}), (std::set<uint64_t>{}));
  deduper.Clear();
  EXPECT_EQ(Repeated(deduper, {{0, "u", "a"}, {1, "u", "b"}}), (std::set<uint64_t>{}));
}

}  // namespace
}  // namespace tacit::train
