// Tests users' histories as a learner sees them: against a model that remembers everything, over
// commits at any moment, crashes, and periods that are read again.
#include "train/counts/recent_histories.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace tacit::train {
namespace {

constexpr uint32_t kItems = 50, kMost = 6;
constexpr SipHash::Key kKey{1, 2, 3};

struct Record {
  std::string user;
  uint32_t item = 0;
  float label = 1;
  int64_t time = 1;
};

// The store's part: what was committed, as of which step.
struct Stored {
  uint64_t step = 0;
  std::map<Hash128, std::vector<store::HistoryItem>> items;

  void Commit(const store::HistoryCommit& commit) {
    step = commit.step;
    for (const store::UserHistory& user : commit.appended) {
      auto& kept = items[user.user];
      kept.insert(kept.end(), user.items.begin(), user.items.end());
      if (kept.size() > commit.items_most)
        kept.erase(kept.begin(), kept.end() - static_cast<ptrdiff_t>(commit.items_most));
    }
  }
};

stream::StepBatch BatchOf(const std::vector<Record>& records, uint64_t step) {
  stream::StepBatch batch;
  std::map<std::string, std::vector<Record>> by_user;
  for (const Record& record : records) by_user[record.user].push_back(record);
  for (const auto& [user, own] : by_user) {
    for (const Record& record : own) {
      batch.examples.user.Append(user);
      batch.examples.item.push_back(record.item);
      batch.examples.label.push_back(record.label);
      batch.examples.timestamp_ms.push_back(record.time);
      batch.unit_of.push_back(batch.units);
    }
    ++batch.units;
  }
  batch.after.step = step;
  return batch;
}

class RecentHistoriesTest : public ::testing::Test {
 protected:
  void Restart() {
    recent_.emplace(
        RecentHistoriesOptions{.catalogue = kItems, .items_most = kMost, .user_key = kKey},
        [this](std::span<store::UserHistory> users) -> Result<uint64_t> {
          for (store::UserHistory& user : users) user.items = stored_.items[user.user];
          return stored_.step;
        });
  }
  // Describes a step: per user in the order of names, before and new, joined by commas.
  std::vector<std::string> Gathered(const stream::StepBatch& batch) {
    StepHistories step;
    EXPECT_TRUE(recent_->Gather(batch, &step));
    EXPECT_EQ(step.histories.units(), batch.units);
    EXPECT_TRUE(model::CheckHistories(step.histories));
    std::vector<std::string> texts;
    for (size_t u = 0; u < step.units(); ++u)
      texts.push_back(
          fmt::format("{}|{}", fmt::join(step.Before(u), ","), fmt::join(step.New(u), ",")));
    return texts;
  }
  void Commit() {
    if (const auto taken = recent_->Take()) stored_.Commit(*taken);
  }

  Stored stored_;
  std::optional<RecentHistories> recent_;
};

using Texts = std::vector<std::string>;

TEST_F(RecentHistoriesTest, StepsSeeWhatIsNotCommittedYet) {
  Restart();
  const auto first = BatchOf({{"anna", 1}, {"bert", 9}, {"anna", 2}}, 1);
  EXPECT_EQ(Gathered(first), (Texts{"|1,2", "|9"}));
  recent_->Taken(first);
  const auto second = BatchOf({{"anna", 3}}, 2);
  EXPECT_EQ(Gathered(second), Texts{"1,2|3"});
  Commit();  // of the first alone: the second was not taken
  EXPECT_EQ(Gathered(second), Texts{"1,2|3"});
  recent_->Taken(second);
  Restart();  // lost
  EXPECT_EQ(Gathered(second), Texts{"1,2|3"});
}

TEST_F(RecentHistoriesTest, WhatIsNoItemIsNotRemembered) {
  Restart();
  const auto batch =
      BatchOf({{"anna", event::kNoItem}, {"anna", 1, 0}, {"anna", 2}, {"bert", event::kNoItem}}, 1);
  EXPECT_EQ(Gathered(batch), (Texts{"|2", "|"}));
}

// Only the last of a period's steps remembers it, with any users sampled; until then it may
// be read again.
TEST_F(RecentHistoriesTest, APeriodIsRememberedWhenItIsDone) {
  const std::vector<Record> all = {{"anna", 1}, {"bert", 2}, {"anna", 3}};
  const auto step = [&](const std::vector<Record>& sampled, uint64_t number, uint64_t of_period) {
    auto batch = BatchOf(sampled, number);
    batch.kind = stream::StepBatch::Kind::kPeriodNext;
    batch.after.period_step = of_period;
    return batch;
  };
  const auto preview = [&](bool again) {
    auto batch = BatchOf(all, 0);
    batch.kind = again ? stream::StepBatch::Kind::kPreviewAgain : stream::StepBatch::Kind::kPreview;
    StepHistories none;
    const auto held_out = recent_->Preview(batch, &none);
    EXPECT_TRUE(held_out && !*held_out);
  };
  Restart();
  preview(false);
  const auto first = step({{"bert", 2}}, 1, 1);
  EXPECT_EQ(Gathered(first), Texts{"|2"});
  recent_->Taken(first);
  Commit();
  EXPECT_TRUE(stored_.items.empty() || stored_.items.begin()->second.empty());
  EXPECT_EQ(stored_.step, 1u);
  Restart();  // a crash in mid-period: it is shown again
  preview(true);
  const auto last = step({{"anna", 1}, {"anna", 3}}, 2, 0);
  EXPECT_EQ(Gathered(last), Texts{"|1,3"});
  recent_->Taken(last);
  // The next period sees all of it, though bert was not in its last step.
  preview(false);
  const auto next = step({{"anna", 1}, {"anna", 3}, {"bert", 2}}, 3, 1);
  EXPECT_EQ(Gathered(next), (Texts{"1,3|1,3", "2|2"}));
  Commit();
  EXPECT_EQ(Gathered(next), (Texts{"1,3|1,3", "2|2"}));
}

// Nothing is learnt from records that are held out; the next held-out records of a user follow
// them.
TEST_F(RecentHistoriesTest, RecordsHeldOutAreReadAndRememberedAtOnce) {
  Restart();
  const auto learnt = BatchOf({{"anna", 1}}, 1);
  EXPECT_EQ(Gathered(learnt), Texts{"|1"});
  recent_->Taken(learnt);
  Commit();
  for (const uint64_t item : {2, 3}) {
    auto batch = BatchOf({{"anna", static_cast<uint32_t>(item)}}, item);
    batch.kind = stream::StepBatch::Kind::kHeldOut;
    StepHistories step;
    const auto held_out = recent_->Preview(batch, &step);
    ASSERT_TRUE(held_out && *held_out);
    EXPECT_EQ(step.New(0).size(), 1u);
    EXPECT_EQ(step.Before(0).size(), item - 1);
  }
}

TEST_F(RecentHistoriesTest, AgainstAModelThatForgetsNothing) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::map<std::string, std::vector<uint32_t>> known, committed;
  uint64_t step = 0, committed_step = 0;
  Restart();
  for (int i = 0; i < 3000; ++i) {
    std::vector<Record> records;
    for (uint64_t n = random() % 8; n > 0; --n)
      records.push_back({fmt::format("user-{}", random() % 5),
                         static_cast<uint32_t>(random() % kItems),
                         static_cast<float>(random() % 3 > 0), static_cast<int64_t>(i + 1)});
    const auto batch = BatchOf(records, step + 1);
    Texts expected;
    std::map<std::string, std::vector<uint32_t>> fresh;
    for (const Record& record : records) {
      fresh[record.user];
      if (record.label > 0) fresh[record.user].push_back(record.item);
    }
    for (const auto& [user, items] : fresh) {
      const auto& before = known[user];
      const std::span<const uint32_t> last =
          std::span(before).last(std::min<size_t>(before.size(), kMost));
      expected.push_back(fmt::format("{}|{}", fmt::join(last, ","), fmt::join(items, ",")));
    }
    ASSERT_EQ(Gathered(batch), expected) << "step " << step;
    if (random() % 10 > 0) {
      recent_->Taken(batch);
      ++step;
      for (const auto& [user, items] : fresh)
        known[user].insert(known[user].end(), items.begin(), items.end());
    }
    if (random() % 4 == 0) {
      Commit();
      committed = known;
      committed_step = step;
    }
    if (random() % 20 == 0) {  // a crash: what was not committed comes again, or other steps do
      Restart();
      known = committed;
      step = committed_step;
    }
  }
}

}  // namespace
}  // namespace tacit::train
