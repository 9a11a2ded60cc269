#include "store/witness.h"

#include <gtest/gtest.h>

#include <fstream>

#include "script.h"

namespace tacit::store {
namespace {

const std::string kLineage(32, 'a');

WitnessRecord Record(uint64_t seq) {
  WitnessRecord record{kLineage, CommitSeq(seq), {}};
  record.head.fill(static_cast<uint8_t>(seq));
  return record;
}

void Damage(const std::string& path, std::streamoff place) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(place);
  const char byte = static_cast<char>(file.get());
  file.seekp(place);
  file.put(static_cast<char>(byte ^ 1));
}

TEST(WitnessTest, TellsTheNewestRecordAcrossReopens) {
  const TestFolder folder;
  for (uint64_t seq = 0; seq < 6; ++seq) {
    auto file = WitnessFile::OpenOrCreate(folder.witness(), Record(0));
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->Write(Record(seq)));
    const auto read = WitnessFile::Read(folder.witness());
    ASSERT_TRUE(read && *read);
    EXPECT_EQ((*read)->seq.value, seq);
    EXPECT_EQ((*read)->head, Record(seq).head);
    EXPECT_EQ((*read)->lineage, kLineage);
  }
}

TEST(WitnessTest, AMissingFileIsNoRecord) {
  const TestFolder folder;
  const auto read = WitnessFile::Read(folder.witness());
  ASSERT_TRUE(read);
  EXPECT_FALSE(*read);
}

TEST(WitnessTest, ATornWriteLeavesTheRecordBefore) {
  const TestFolder folder;
  auto file = WitnessFile::OpenOrCreate(folder.witness(), Record(0));
  ASSERT_TRUE(file);
  for (uint64_t seq = 1; seq <= 2; ++seq) ASSERT_TRUE((*file)->Write(Record(seq)));
  Damage(folder.witness(), 20);  // record 2 went into the first slot
  const auto read = WitnessFile::Read(folder.witness());
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->seq.value, 1u);
}

TEST(WitnessTest, TwoDamagedSlotsAreCorruption) {
  const TestFolder folder;
  auto file = WitnessFile::OpenOrCreate(folder.witness(), Record(0));
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->Write(Record(1)));
  Damage(folder.witness(), 20);
  Damage(folder.witness(), 4096 + 20);
  const auto read = WitnessFile::Read(folder.witness());
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kCorruption);
}

TEST(WitnessTest, RefusesWhatItHasNotSeen) {
  const auto check = [](const WitnessRecord& witness, const WitnessRecord& store) {
    return CheckWitness(witness, store, "w", "s").has_value();
  };
  EXPECT_TRUE(check(Record(3), Record(3)));
  EXPECT_TRUE(check(Record(3), Record(4)));   // crash between sync and witness
  EXPECT_FALSE(check(Record(3), Record(2)));  // an older copy
  WitnessRecord fork = Record(3);
  fork.head.fill(99);
  EXPECT_FALSE(check(Record(3), fork));
  WitnessRecord stranger = Record(4);
  stranger.lineage = std::string(32, 'b');
  EXPECT_FALSE(check(Record(3), stranger));
  EXPECT_TRUE(check(Record(0), stranger));
}

}  // namespace
}  // namespace tacit::store
