#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <random>

#include "lab/next_item/sequence_data.h"
#include "support/process.h"

namespace tacit::lab {
namespace {

using test::TempDir;
using testing::ElementsAre;

class SequenceDataTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return dir_ / name;
  }
  std::string Refusal(const std::string& text) {
    const auto data = ReadSequences(Write("data", text));
    return data ? "" : data.error().message;
  }

  TempDir dir_;
};

TEST_F(SequenceDataTest, ALineIsAUserAndAnItem) {
  const auto data = ReadSequences(Write("data", "u 10\nv 7\r\n\nu\t7\n  u   x  \nv 10"));
  ASSERT_TRUE(data) << data.error().message;
  // By sha256sum: 2d711642..., 4a44dc15..., 7902699b....
  EXPECT_THAT(data->items, ElementsAre("x", "10", "7"));
  EXPECT_EQ(data->histories.catalogue, 3u);
  ASSERT_EQ(data->histories.units(), 2u);
  EXPECT_THAT(data->histories.Of(0), ElementsAre(1, 2, 0));
  EXPECT_THAT(data->histories.Of(1), ElementsAre(2, 1));
  EXPECT_EQ(data->identity.size(), 64u);
  EXPECT_NE(data->identity, ReadSequences(Write("other", "u 10\n"))->identity);
}

// An item has the same number with any user first in the file, and after anything that user did.
TEST_F(SequenceDataTest, ItemsAreNumberedWhateverTheOrderOfUsersIs) {
  std::mt19937_64 random(5);
  std::vector<std::string> blocks;
  for (int user = 0; user < 60; ++user) {
    std::string block;
    for (int i = 0; i < 20; ++i)
      block += "u" + std::to_string(user) + " i" + std::to_string((7 * user + i) % 90) + "\n";
    blocks.push_back(block);
  }
  const auto read = [&] {
    std::string text;
    for (const std::string& block : blocks) text += block;
    return *ReadSequences(Write("data", text));
  };
  const SequenceData data = read();
  EXPECT_EQ(data.items.size(), 90u);
  for (int i = 0; i < 5; ++i) {
    std::ranges::shuffle(blocks, random);
    EXPECT_EQ(read().items, data.items);
  }
}

TEST_F(SequenceDataTest, WhatIsNoLineOfTheFormIsNamed) {
  const std::string path = dir_ / "data";
  EXPECT_EQ(Refusal("u 1\nu 2\nu\n"), path + ":3: 1 words where `user item` is expected");
  EXPECT_EQ(Refusal("u 1 5 9\n"), path + ":1: 4 words where `user item` is expected");
  EXPECT_EQ(Refusal(""), path + ": no line `user item` is in it");
  EXPECT_EQ(Refusal("\n\n"), path + ": no line `user item` is in it");
  const auto missing = ReadSequences(dir_ / "not-there");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, testing::HasSubstr("not-there"));
  // A line number beyond what is read at once.
  std::string long_text;
  for (int i = 0; i < 10'000; ++i) long_text += "u 1\n";
  EXPECT_THAT(Refusal(long_text + "u\n"), testing::HasSubstr(":10001: "));
}

TEST_F(SequenceDataTest, ItemsAreDescribedByTheirIds) {
  const SequenceData data = *ReadSequences(Write("data", "u a\nu b\n"));
  const std::string items =
      Write("items", "5::Alien (1979)::Horror|War\n7::Up: a::b (2009)::War\n");
  const std::string ids = Write("ids", "a 7\nb 5\n");
  const auto catalogue = ReadCatalogue(data, items, ids);
  ASSERT_TRUE(catalogue) << catalogue.error().message;
  // By sha256sum, b comes before a.
  EXPECT_EQ(catalogue->features(1).id, 7);
  EXPECT_EQ(catalogue->features(1).year, 2009);
  EXPECT_EQ(catalogue->features(0).year, 1979);
  EXPECT_EQ(std::popcount(catalogue->features(0).genres), 2);

  const auto refusal = [&](const std::string& items_file, const std::string& ids_file) {
    const auto refused = ReadCatalogue(data, items_file, ids_file);
    return refused ? "" : refused.error().message;
  };
  EXPECT_EQ(refusal(items, Write("few", "a 7\n")), dir_ / "few: no line for item b of the data");
  EXPECT_EQ(refusal(items, Write("wrong", "a 7\nb 6\n")),
            dir_ / "items: item b of the data (id 6) is not described");
  EXPECT_EQ(refusal(items, ""), dir_ / "items: item b of the data (id b) is not described");
  EXPECT_EQ(refusal(items, Write("twice", "a 7\na 5\n")), dir_ / "twice:2: item a is there twice");
  EXPECT_EQ(refusal(Write("x", "x::Alien::War\n"), ids),
            dir_ / "x: item b of the data (id 5) is not described");
  // The reader is the daemon's.
  for (const char* line : {"5::Alien\n", "5:::\n"})
    EXPECT_THAT(refusal(Write("bad", line), ids), testing::HasSubstr("bad:1: neither `id` nor"));
  EXPECT_THAT(refusal(Write("same", "5::A::B\n5::A::B\n"), ids),
              testing::AllOf(testing::HasSubstr("same:2: "), testing::HasSubstr("twice")));
}

// A user's id is the same beside any other users in the file: what sha256sum begins with.
TEST_F(SequenceDataTest, AUsersIdOwesNothingToOthers) {
  const std::string first = "u 1 5 10\n", others = "v 1 5 11\nw 2 5 12\nv 2 5 13\n";
  const auto pairs = [](std::string text) {
    for (size_t at; (at = text.find(" 5 1")) != std::string::npos;) text.erase(at, 5);
    return text;
  };
  constexpr uint64_t kU = 0x0bfe935e70c321c7, kV = 0x4c94485e0c21ae6c, kW = 0x50e721e49c013f00;
  const auto all = ReadSequenceStream(Write("all", first + others));
  const auto less = ReadSequenceStream(Write("less", others));
  ASSERT_TRUE(all && less);
  EXPECT_THAT(all->data.histories.id, ElementsAre(kU, kV, kW));
  EXPECT_THAT(less->data.histories.id, ElementsAre(kV, kW));
  const auto all_pairs = ReadSequences(Write("all", pairs(first + others)));
  const auto less_pairs = ReadSequences(Write("less", pairs(others)));
  ASSERT_TRUE(all_pairs && less_pairs);
  EXPECT_EQ(all_pairs->histories.id, all->data.histories.id);
  EXPECT_EQ(less_pairs->histories.id, less->data.histories.id);
  EXPECT_EQ(LeaveLastOut(all_pairs->histories, false).train.id, all->data.histories.id);
}

TEST(LeaveLastOut, TheLastIsAskedForAndAllBeforeLearnt) {
  const model::Histories all{
      .items = {1, 2, 3, 4, 5, 6, 7, 8, 9}, .end = {4, 6, 6, 9}, .catalogue = 10};
  const SequenceSplit test = LeaveLastOut(all, false);
  EXPECT_THAT(test.user, ElementsAre(0, 3));
  EXPECT_THAT(test.answer, ElementsAre(4, 9));
  EXPECT_THAT(test.train.Of(0), ElementsAre(1, 2, 3));
  EXPECT_THAT(test.train.Of(1), ElementsAre(5, 6)) << "too short to be asked about";
  EXPECT_THAT(test.train.Of(2), ElementsAre());
  EXPECT_THAT(test.train.Of(3), ElementsAre(7, 8));
  EXPECT_EQ(test.train.catalogue, 10u);

  const SequenceSplit validation = LeaveLastOut(all, true);
  EXPECT_THAT(validation.user, ElementsAre(0, 3));
  EXPECT_THAT(validation.answer, ElementsAre(3, 8));
  EXPECT_THAT(validation.train.Of(0), ElementsAre(1, 2));
  EXPECT_THAT(validation.train.Of(1), ElementsAre(5, 6));
  EXPECT_THAT(validation.train.Of(3), ElementsAre(7));
}

}  // namespace
}  // namespace tacit::lab
