// Tests a replica's store: a kill between any two steps of a version leaves that version or the one
// before, with the position that belongs to it.
#include "store/replica/replica_store.h"

#include <gmock/gmock.h>

#include "replica_script.h"
#include "support/process.h"
#include "support/scoped_variable.h"

namespace tacit::store {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kVersions = 8;

// All that the store shows is of one version, and so is its position. Returns the version.
uint64_t ExpectOneVersion(const std::string& path) {
  const auto store = ReplicaStore::Open(ReplicaTestOptions(path));
  EXPECT_TRUE(store) << store.error().message;
  if (!store) return 0;
  const auto latest = (*store)->Latest();
  if (latest == nullptr) {
    EXPECT_EQ((*store)->position(), "");
    return 0;
  }
  const uint64_t seq = latest->version().value;
  EXPECT_EQ((*store)->position(), ReplicaPosition(seq));
  const auto learners = TestLearners();
  RowModel model(&learners[0].rows);
  for (uint64_t at = 2; at <= seq; at += 2)
    for (const uint64_t row : Script::RowsOf(at)) {
      auto floats = model.Row(row);
      for (uint32_t i = 0; i < floats.size(); ++i) floats[i] = ReplicaValue(at, row, i);
      model.Set(row, floats);
    }
  ExpectRows(*latest, LearnerIndex(0), model);
  EXPECT_EQ(latest->ServedDense(LearnerIndex(0))[0], static_cast<float>(seq));
  EXPECT_EQ(*latest->Released(LearnerIndex(0)), "released by " + std::to_string(seq));
  EXPECT_EQ(latest->head(), ReplicaLedger(seq).head());
  Script::ExpectLedger(*latest);
  return seq;
}

TEST(ReplicaStoreTest, AKillLeavesAVersionWithItsPosition) {
  int killed = 0;
  for (const char* point : {"replica.begin", "replica.written", "replica.synced", "replica.shown",
                            "fold.ingested", "fold.trimmed"}) {
    for (int hit = 1; hit <= 4; ++hit) {
      SCOPED_TRACE(std::string(point) + " " + std::to_string(hit));
      const TestFolder folder;
      const std::string path = folder.root() + "/replica";
      test::Ended ended;
      {
        const test::ScopedVariable crash("TACIT_TEST_CRASH_AT",
                                         std::string(point) + ":" + std::to_string(hit));
        ended = test::Run({TACIT_REPLICA_CHILD, path, std::to_string(kVersions)});
      }
      if (ended.exit_code == 0) continue;  // folds are fewer
      ++killed;
      const uint64_t seq = ExpectOneVersion(path);
      if (std::string(point) == "replica.begin") {
        EXPECT_EQ(seq, static_cast<uint64_t>(2 * hit - 2));
      }
      if (std::string(point) == "replica.synced") {
        EXPECT_EQ(seq, static_cast<uint64_t>(2 * hit));
      }
      ended = test::Run({TACIT_REPLICA_CHILD, path, std::to_string(kVersions)});
      EXPECT_EQ(ended.exit_code, 0) << ended.err;
      EXPECT_EQ(ExpectOneVersion(path), 2 * kVersions);
    }
  }
  EXPECT_GE(killed, 19);
}

// A kill between rows that go ahead and the version that they belong to leaves nothing, or it.
TEST(ReplicaStoreTest, AKillAheadOfTheFirstVersionLeavesNothingOfIt) {
  int killed = 0;
  for (const char* point : {"replica.taken_ahead", "replica.begin", "replica.filled",
                            "replica.synced", "replica.shown"}) {
    for (int hit = 1; hit <= 3; ++hit) {
      SCOPED_TRACE(std::string(point) + " " + std::to_string(hit));
      const TestFolder folder;
      const std::string path = folder.root() + "/replica";
      const std::vector<std::string> child = {TACIT_REPLICA_CHILD, path, std::to_string(kVersions),
                                              "3"};
      test::Ended ended;
      {
        const test::ScopedVariable crash("TACIT_TEST_CRASH_AT",
                                         std::string(point) + ":" + std::to_string(hit));
        ended = test::Run(child);
      }
      if (ended.exit_code == 0) continue;  // one version alone has rows that went ahead
      ++killed;
      const bool ahead = std::string(point) == "replica.taken_ahead";
      const uint64_t seq = ExpectOneVersion(path);
      if (ahead || std::string(point) == "replica.filled") {
        EXPECT_EQ(seq, 0u);
      }
      if (std::string(point) == "replica.synced") {
        EXPECT_EQ(seq, static_cast<uint64_t>(6 + 2 * hit));
      }
      ended = test::Run(child);
      EXPECT_EQ(ended.exit_code, 0) << ended.err;
      EXPECT_EQ(ExpectOneVersion(path), 2 * kVersions);
    }
  }
  EXPECT_EQ(killed, 13);
}

// Rows that were taken ahead are seen with the first version, and by nobody without it.
TEST(ReplicaStoreTest, RowsThatAreTakenAheadAreOfTheFirstVersionOrForgotten) {
  const TestFolder folder;
  const std::string path = folder.root() + "/replica";
  for (const bool forgotten : {true, false}) {
    const auto store = ReplicaStore::Open(ReplicaTestOptions(path));
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ((*store)->feed(), "");  // the round before, which had no version, is forgotten
    ASSERT_TRUE((*store)->Begin(ReplicaTestOrigin()));
    // In the round that goes on: the older rows first, and those of version 6 with it. Else rows
    // that no version has.
    if (forgotten) {
      ASSERT_TRUE((*store)->Fill(ReplicaVersionOf(40).learners));
      continue;
    }
    for (const uint64_t seq : {2, 4}) ASSERT_TRUE((*store)->Fill(ReplicaVersionOf(seq).learners));
    EXPECT_EQ((*store)->Latest(), nullptr);
    ASSERT_TRUE((*store)->Apply(ReplicaVersionOf(6)));
    ASSERT_TRUE((*store)->Apply(ReplicaVersionOf(8)));
  }
  EXPECT_EQ(ExpectOneVersion(path), 8u);
  const TestFolder other;
  const auto store = ReplicaStore::Open(ReplicaTestOptions(other.root() + "/replica"));
  ASSERT_TRUE(store);
  ASSERT_TRUE((*store)->Begin(ReplicaTestOrigin()));
  auto learners = ReplicaVersionOf(2).learners;
  auto rows = std::make_shared<RowDelta>(*learners[0].rows);
  rows->rows.back() = 1000;
  learners[0].rows = rows;
  const Status wrong = (*store)->Fill(learners);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("row 1000 of learner 'ctr' does not fit"));
}

TEST(ReplicaStoreTest, AVersionThatDoesNotFollowChangesNothing) {
  const TestFolder folder;
  const std::string path = folder.root() + "/replica";
  ASSERT_TRUE(ApplyTo(path, 3));
  {
    const auto store = ReplicaStore::Open(ReplicaTestOptions(path));
    ASSERT_TRUE(store);
    const auto error_of = [&](const std::function<void(ReplicaVersion&)>& change) {
      ReplicaVersion version = ReplicaVersionOf(8);
      change(version);
      const Status applied = (*store)->Apply(std::move(version));
      EXPECT_FALSE(applied);
      return applied ? "" : applied.error().message;
    };
    EXPECT_THAT(error_of([](ReplicaVersion& version) { version.tip.head[0] ^= 1; }),
                HasSubstr("it ends in another head"));
    EXPECT_THAT(error_of([](ReplicaVersion& version) { version.tip.ledger_entries += 1; }),
                HasSubstr("is missing"));
    EXPECT_THAT(error_of([](ReplicaVersion& version) { version.entries.rbegin()->second += "x"; }),
                HasSubstr("the ledger's chain is broken"));
    EXPECT_THAT(error_of([](ReplicaVersion& version) {
                  auto rows = std::make_shared<RowDelta>(*version.learners[0].rows);
                  rows->rows.back() = 1000;
                  version.learners[0].rows = rows;
                }),
                HasSubstr("row 1000 of learner 'ctr' does not fit"));
  }
  EXPECT_EQ(ExpectOneVersion(path), 6u);
}

}  // namespace
}  // namespace tacit::store
