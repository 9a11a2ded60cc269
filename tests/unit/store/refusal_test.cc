#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "script.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

void ExpectRefusal(const StoreOptions& options, ErrorCode code, const std::string& says) {
  const auto store = Store::Open(options);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, code) << store.error().message;
  EXPECT_THAT(store.error().message, HasSubstr(says));
}

// A folder whose store has had some commits.
class RefusalTest : public testing::Test {
 protected:
  RefusalTest() : options_(TestOptions(folder_)) { Train(3); }
  void Train(int commits) {
    const auto store = MustOpen(options_);
    for (int i = 0; i < commits; ++i) ASSERT_TRUE(Script::Step(*store));
  }
  void Copy(const std::string& from, const std::string& to) {
    fs::remove_all(to);
    fs::copy(from, to, fs::copy_options::recursive);
  }
  const TestFolder folder_;
  StoreOptions options_;
};

TEST_F(RefusalTest, AnOlderCopyOfTheStore) {
  Copy(folder_.store(), folder_.root() + "/copy");
  Train(2);
  Copy(folder_.root() + "/copy", folder_.store());
  ExpectRefusal(options_, ErrorCode::kRefused, "the witness has seen commit 5");
  const auto reader = OpenReadOnly(folder_.store(), folder_.witness(), options_.learners);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, ErrorCode::kRefused);
}

TEST_F(RefusalTest, AForkOfTheStore) {
  Copy(folder_.store(), folder_.root() + "/copy");
  fs::copy_file(folder_.witness(), folder_.root() + "/witness2");
  Train(1);
  StoreOptions fork = options_;
  fork.path = folder_.root() + "/copy";
  fork.witness = folder_.root() + "/witness2";
  fork.code_version = "another";  // another entry, another head
  { ASSERT_TRUE(Script::Step(*MustOpen(fork))); }
  fork.witness = folder_.witness();
  ExpectRefusal(fork, ErrorCode::kRefused, "ledger head");
}

TEST_F(RefusalTest, AnotherLineage) {
  StoreOptions other = options_;
  other.path = folder_.root() + "/other";
  other.witness = "";
  { ASSERT_TRUE(Script::Step(*MustOpen(other))); }
  other.witness = folder_.witness();
  ExpectRefusal(other, ErrorCode::kRefused, "lineage");
}

TEST_F(RefusalTest, AnEmptyFolderBesideAWitnessWithCommits) {
  fs::remove_all(folder_.store());
  ExpectRefusal(options_, ErrorCode::kRefused, "has seen 3 commits");
  EXPECT_FALSE(fs::exists(folder_.store()));
}

// To begin afresh throws the account away: that is said last.
TEST_F(RefusalTest, AStoreThatIsGoneIsLookedForFirst) {
  fs::rename(folder_.store(), folder_.root() + "/elsewhere");
  const auto message = [&] {
    const auto store = Store::Open(options_);
    return store ? "it opened" : store.error().message;
  };
  EXPECT_THAT(message(), testing::ContainsRegex("mounted.*tacit checkpoint restore.*afresh"));
  EXPECT_THAT(message(), Not(HasSubstr(".restoring")));
  fs::create_directory(folder_.store() + ".restoring");
  EXPECT_THAT(message(), testing::ContainsRegex("/store.restoring is what a restore .*mounted"));
}

TEST_F(RefusalTest, AMissingWitnessUnlessItIsAccepted) {
  fs::remove(folder_.witness());
  ExpectRefusal(options_, ErrorCode::kRefused, "accept-witness");
  const auto reader = OpenReadOnly(folder_.store(), folder_.witness(), {});
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, ErrorCode::kRefused);
  options_.accept_missing_witness = true;
  { Script::ExpectStore(*MustOpen(options_)); }
  options_.accept_missing_witness = false;
  Script::ExpectStore(*MustOpen(options_));
}

TEST_F(RefusalTest, AWitnessInsideTheStore) {
  options_.witness = folder_.store() + "/witness";
  ExpectRefusal(options_, ErrorCode::kInvalidArgument, "lies inside");
}

TEST_F(RefusalTest, AStoreThatIsOpenAlready) {
  const auto store = MustOpen(options_);
  ExpectRefusal(options_, ErrorCode::kUnavailable, folder_.store());
}

TEST_F(RefusalTest, AnotherShardCount) {
  options_.shards = 8;
  ExpectRefusal(options_, ErrorCode::kRefused,
                "has 4 shards, the configuration says 8: tacit store reshard makes it so");
}

TEST_F(RefusalTest, AnotherModelNamesTheLearnerAndTheDifference) {
  const auto with = [&](const LearnerLayout& learner) {
    StoreOptions options = options_;
    options.learners[0] = learner;
    return options;
  };
  ExpectRefusal(with(MakeLearner("ctr", {{"site", 41, 4, 1}, {"ad", 200, 8, 8}})),
                ErrorCode::kRefused,
                "learner 'ctr' differs from the store's model of that name: table 'site' has 40 "
                "rows in the store, 41 in the configuration");
  ExpectRefusal(with(MakeLearner("ctr", {{"site", 40, 4, 1}, {"ad", 200, 9, 8}})),
                ErrorCode::kRefused, "8 floats in a row in the store, 9 in the configuration");
  ExpectRefusal(with(MakeLearner("ctr", {{"site", 40, 4, 4}, {"ad", 200, 8, 8}})),
                ErrorCode::kRefused, "optimiser floats");
  ExpectRefusal(with(MakeLearner("ctr", {{"site", 40, 4, 1}})), ErrorCode::kRefused, "tables");
  LearnerLayout learner = options_.learners[0];
  learner.rows.seed += 1;
  ExpectRefusal(with(learner), ErrorCode::kRefused, "seed");
  learner = options_.learners[0];
  learner.promise.model_fingerprint.fill(77);
  ExpectRefusal(with(learner), ErrorCode::kRefused, "fingerprint");
  learner = options_.learners[0];
  learner.promise.delta = 1e-3;
  ExpectRefusal(with(learner), ErrorCode::kRefused, "delta");
  Script::ExpectStore(*MustOpen(options_));  // nothing of it stuck
}

TEST_F(RefusalTest, NewLearnersAndAnotherOrderAreFine) {
  std::swap(options_.learners[0], options_.learners[1]);
  options_.learners.push_back(MakeLearner("third", {{"t", 10, 2, 0}}));
  {
    const auto store = MustOpen(options_);
    EXPECT_EQ(store->State(LearnerIndex(1)).position, Script::PositionOf(3));
    EXPECT_EQ(store->State(LearnerIndex(2)).position, "");
    EXPECT_EQ(store->Latest()->Dense(LearnerIndex(1))->parameters, Script::DenseOf(3));
  }
  options_.learners = {TestLearners()[0]};  // the others gone
  Train(2);
  Script::ExpectStore(*MustOpen(options_));
}

TEST_F(RefusalTest, ALearnerThatWasNeverTrainedMayChange) {
  options_.learners[1] = MakeLearner("next", {{"item", 500, 6, 2}});
  Script::ExpectStore(*MustOpen(options_));
}

TEST(OpenReadOnlyTest, NeedsAStore) {
  const TestFolder folder;
  const auto reader = OpenReadOnly(folder.store(), "", {});
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(fs::exists(folder.store()));
}

}  // namespace
}  // namespace tacit::store
