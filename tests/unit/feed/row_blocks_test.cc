// Tests blocks of small rows. The oracle keeps each row by its table and bucket.
#include "feed/row_blocks.h"

#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace tacit::feed {
namespace {

using ::testing::HasSubstr;

store::RowLayout SmallRows(std::vector<uint64_t> rows, std::vector<uint32_t> dims) {
  store::RowLayout layout;
  for (size_t i = 0; i < rows.size(); ++i) {
    layout.space.AddTable("t" + std::to_string(i), rows[i], dims[i]);
    layout.state_floats.push_back(3);
    layout.initial_scale.push_back(0);
  }
  return layout;
}

TEST(RowBlocksTest, SmallRowsThatFitIntoMemoryGoInBlocks) {
  EXPECT_TRUE(SendsBlocks(SmallRows({1}, {1})));
  EXPECT_TRUE(SendsBlocks(SmallRows({1000, 500}, {1, 4})));
  EXPECT_FALSE(SendsBlocks(SmallRows({1000, 500}, {1, 5})));
  EXPECT_TRUE(SendsBlocks(SmallRows({10'000'000}, {1})));
  EXPECT_FALSE(SendsBlocks(SmallRows({10'000'000, 10'000'000}, {1, 1})));
  // An average and its step are sent with a row.
  store::RowLayout averaged = SmallRows({1000}, {1});
  averaged.average = MovingAverage(0.5);
  EXPECT_TRUE(SendsBlocks(averaged));
  store::RowLayout two = SmallRows({1000}, {2});
  EXPECT_TRUE(SendsBlocks(two));
  two.average = MovingAverage(0.5);
  EXPECT_FALSE(SendsBlocks(two));
}

// Random writes over versions, read back from the newest block of each place.
TEST(RowBlocksTest, TheNewestBlocksHoldAllThatWasWritten) {
  const std::vector<uint64_t> sizes = {1, 255, 256, 257, 1000};
  const std::vector<uint32_t> dims = {1, 2, 4, 1, 3};
  store::RowLayout layout = SmallRows(sizes, dims);
  for (const uint16_t number : {5, 1, 9, 3, 0}) layout.places.push_back({.number = number});
  using Place = std::pair<uint16_t, uint64_t>;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    RowBlocks blocks(layout);
    std::map<Place, std::vector<float>> model;
    std::map<Place, std::string> topic;  // by table and block
    for (int version = 1; version <= 12; ++version) {
      blocks.ForgetChanges();
      std::set<Place> changed;
      for (uint32_t i = 0; i < 1 + random() % 200; ++i) {
        const size_t table = random() % sizes.size();
        const Place place{layout.places[table].number, random() % sizes[table]};
        std::vector<float> floats(dims[table]);
        for (float& one : floats) one = static_cast<float>(random());
        const bool kept = version == 1 && random() % 2 == 0;  // as after a start
        blocks.Put(place.first, place.second, floats, !kept);
        model[place] = floats;
        if (!kept) changed.insert(place);
      }
      std::set<Place> said;
      ASSERT_TRUE(blocks.ForChanged([&](uint16_t table, uint64_t at, std::string_view payload) {
        topic[{table, at}] = payload;
        const auto block = DecodeBlock(payload);
        EXPECT_TRUE(block) << block.error().message;
        size_t changes = 0;
        block->ForRows([&](size_t in_block, std::string_view, bool has_changed) {
          if (has_changed) said.insert({table, at * kBlockRows + in_block});
          changes += has_changed ? 1 : 0;
        });
        EXPECT_GT(changes, 0u);
        return Status();
      }));
      EXPECT_EQ(said, changed);
      std::map<Place, std::vector<float>> read;
      for (const auto& [place, payload] : topic)
        DecodeBlock(payload)->ForRows([&](size_t in_block, std::string_view bytes, bool) {
          std::vector<float> floats(bytes.size() / sizeof(float));
          std::memcpy(floats.data(), bytes.data(), bytes.size());
          read[{place.first, place.second * kBlockRows + in_block}] = floats;
        });
      // Rows that were there at the start and have not changed are in no record of this feed yet.
      for (const auto& [place, floats] : read) EXPECT_EQ(floats, model[place]);
      for (const Place& place : changed) EXPECT_TRUE(read.contains(place));
      if (version == 12) {
        EXPECT_EQ(read, model);
      }
    }
  }
}

TEST(RowBlocksTest, AFailureOfWhoTakesABlockEndsIt) {
  RowBlocks blocks(SmallRows({1000}, {1}));
  const float one = 1;
  blocks.Put(0, 3, {&one, 1}, true);
  blocks.Put(0, 999, {&one, 1}, true);
  int calls = 0;
  const Status failed = blocks.ForChanged([&](uint16_t, uint64_t, std::string_view) -> Status {
    ++calls;
    return Fail(ErrorCode::kIo, "full");
  });
  EXPECT_EQ(failed.error().code, ErrorCode::kIo);
  EXPECT_EQ(calls, 1);
}

TEST(RowBlocksTest, OtherBytesAreNoBlock) {
  RowBlocks blocks(SmallRows({300}, {2}));
  const std::array<float, 2> floats = {1, 2};
  for (const uint64_t bucket : {0, 7, 64, 255}) blocks.Put(0, bucket, floats, bucket == 7);
  std::string payload;
  ASSERT_TRUE(blocks.ForChanged([&](uint16_t, uint64_t, std::string_view bytes) {
    payload = bytes;
    return Status();
  }));
  ASSERT_TRUE(DecodeBlock(payload));
  EXPECT_EQ(DecodeBlock(payload)->rows(), 4u);
  for (size_t cut = 0; cut < payload.size(); ++cut) {
    const auto block = DecodeBlock(std::string_view(payload).substr(0, cut));
    // Four rows of one float are a block, too: of another layout, which the reader knows.
    if (block) {
      EXPECT_EQ(block->floats.size(), 16u);
    } else {
      EXPECT_EQ(block.error().code, ErrorCode::kCorruption);
    }
  }
  std::string unwritten = payload;
  unwritten[sizeof(Block::Bits) + 1] = 1;  // bucket 8 has changed, and was never written
  EXPECT_THAT(DecodeBlock(unwritten).error().message, HasSubstr("not written"));
  EXPECT_FALSE(DecodeBlock(std::string(sizeof(Block::Bits) * 2, '\0') + "1234"));
}

}  // namespace
}  // namespace tacit::feed
