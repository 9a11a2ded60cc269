// Sum blocks of steps: which units are in one is up to each unit alone. Two streams that differ in
// one record, or in one user's, put all others together and apart in the same way.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "seeded_coins.h"
#include "stream/steps/participation.h"
#include "support/silent_noise.h"

namespace tacit::stream {
namespace {

class NothingCounted final : public AllowanceView {
 public:
  Result<uint64_t> Read(std::span<UserUses>) override { return 0; }
};

struct UserRecords {
  std::vector<std::string> users;  // of the record at each offset; "": it did not decode
  event::RawRecords frame;
  event::Batch batch;

  void Make() {
    frame.end.resize(users.size());
    batch.dense_width = 0;
    batch.slots = 0;
    for (uint64_t offset = 0; offset < users.size(); ++offset) {
      if (users[offset].empty()) continue;
      batch.offset.push_back(offset);
      batch.timestamp_ms.push_back(0);
      batch.label.push_back(0);
      batch.user.Append(users[offset]);
      batch.event_id.Append("");
    }
  }
};

struct Cut {
  std::string name;
  bool of_users = false;
  uint64_t block_records = 0;  // the most of a unit event's block, or 0
};

std::vector<StepBatch> StepsOf(const Cut& cut, UserRecords stream) {
  stream.Make();
  NothingCounted nobody;
  AllowanceBook book(nobody);
  std::optional<UserOptions> users;
  if (cut.of_users) users = UserOptions{.key = {5, 6}, .allowances = &book, .allowance = 1000};
  std::unique_ptr<Participation> participation;
  if (cut.name == "once") {
    participation =
        MakeOnceParticipation({.offsets_per_step = 2048, .start = {}, .users = std::move(users)});
  } else if (cut.name == "poisson") {
    participation = MakePoissonParticipation({.offsets_per_period = 8192,
                                              .steps_per_period = 6,
                                              .sampling_rate = 0.2,
                                              .start = {},
                                              .users = std::move(users)},
                                             std::make_unique<SeededCoins>(1));
  } else {
    participation = MakeAllocationParticipation({.offsets_per_period = 8192,
                                                 .block_steps = 4,
                                                 .blocks = 2,
                                                 .start = {},
                                                 .users = std::move(users)},
                                                std::make_unique<SeededCoins>(1));
  }
  std::vector<StepBatch> steps;
  const auto take = [&](StepBatch&& step) {
    if (!step.preview()) steps.push_back(std::move(step));
    return true;
  };
  EXPECT_TRUE(participation->Cut(stream.frame, stream.batch, take));
  EXPECT_TRUE(participation->Finish(take));
  return steps;
}

// The block of each record of a step, by offset. Checks that blocks are whole units.
std::map<uint64_t, size_t> BlocksOf(const StepBatch& step) {
  std::map<uint64_t, size_t> blocks;
  EXPECT_TRUE(step.sum_block_end.empty() ? step.examples.size() == 0
                                         : step.sum_block_end.back() == step.examples.size());
  size_t block = 0;
  for (size_t i = 0; i < step.examples.size(); ++i) {
    if (i == step.sum_block_end[block]) {
      EXPECT_NE(step.unit_of[i], step.unit_of[i - 1]) << "a unit is in two blocks";
      ++block;
    }
    blocks[step.examples.offset[i]] = block;
  }
  return blocks;
}

class SumBlocks : public ::testing::TestWithParam<Cut> {};

TEST_P(SumBlocks, OthersDecideNothing) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 4; ++trial) {
    UserRecords all;
    for (uint64_t i = 0; i < 20000; ++i)
      all.users.push_back(random() % 30 == 0 ? "" : "u" + std::to_string(random() % 3000));
    const std::string victim = "u" + std::to_string(random() % 3000);
    UserRecords less = all;
    bool nulled = false;
    for (std::string& user : less.users) {
      if (user != victim || (nulled && !GetParam().of_users)) continue;
      user.clear();
      nulled = true;
    }
    const auto with = StepsOf(GetParam(), all), without = StepsOf(GetParam(), less);
    ASSERT_EQ(with.size(), without.size());
    ASSERT_GT(with.size(), 5u);
    size_t blocks_in_all = 0;
    for (size_t s = 0; s < with.size(); ++s) {
      const auto a = BlocksOf(with[s]), b = BlocksOf(without[s]);
      std::map<size_t, size_t> to, back;
      for (const auto& [offset, block] : b) {
        const auto same = a.find(offset);
        if (same == a.end()) continue;  // other coins
        EXPECT_EQ(to.try_emplace(same->second, block).first->second, block) << offset;
        EXPECT_EQ(back.try_emplace(block, same->second).first->second, same->second) << offset;
      }
      blocks_in_all += with[s].sum_block_end.size();
    }
    EXPECT_GT(blocks_in_all, 2 * with.size()) << "steps of one block test nothing";
  }
}

TEST_P(SumBlocks, HoldSome256Records) {
  UserRecords all;
  std::mt19937_64 random(12);
  for (uint64_t i = 0; i < 20000; ++i) all.users.push_back("u" + std::to_string(random() % 5000));
  size_t records = 0, blocks = 0;
  for (const StepBatch& step : StepsOf(GetParam(), all)) {
    records += step.examples.size();
    blocks += step.sum_block_end.size();
    for (size_t b = 0, first = 0; b < step.sum_block_end.size(); first = step.sum_block_end[b++])
      EXPECT_LE(step.sum_block_end[b] - first,
                GetParam().block_records > 0 ? GetParam().block_records : 400);
  }
  EXPECT_GT(static_cast<double>(records), 150.0 * static_cast<double>(blocks));
}

INSTANTIATE_TEST_SUITE_P(Cuts, SumBlocks,
                         ::testing::Values(Cut{"once", false, 256}, Cut{"once", true},
                                           Cut{"poisson", false}, Cut{"poisson", true},
                                           Cut{"allocate", false}, Cut{"allocate", true}),
                         [](const auto& info) {
                           return info.param.name + (info.param.of_users ? "Users" : "Events");
                         });

}  // namespace
}  // namespace tacit::stream
