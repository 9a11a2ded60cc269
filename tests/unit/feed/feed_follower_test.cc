// The daemon's thread that follows a feed: its sign of life, which a service manager's watchdog
// looks at, and what it tells of a store that fails.
#include "daemon/feed_follower.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "replica_rig.h"
#include "watched_stage.h"

namespace tacit::feed {
namespace {

using ::testing::HasSubstr;

// A store whose disk is full from some version on.
class FullStore final : public store::ReplicaStore {
 public:
  explicit FullStore(std::unique_ptr<store::ReplicaStore> store) : store_(std::move(store)) {}
  std::shared_ptr<const store::Snapshot> Latest() const override { return store_->Latest(); }
  std::string feed() const override { return store_->feed(); }
  std::string position() const override { return store_->position(); }
  const std::vector<store::LearnerRecord>& learners() const override { return store_->learners(); }
  Status Begin(const store::ReplicaOrigin& origin) override { return store_->Begin(origin); }
  Status Fill(const std::vector<store::ReplicaLearner>& learners) override {
    if (full) return Fail(ErrorCode::kIo, "No space left on device");
    return store_->Fill(learners);
  }
  Status Apply(store::ReplicaVersion version) override {
    if (full) return Fail(ErrorCode::kIo, "No space left on device");
    return store_->Apply(std::move(version));
  }
  Status Settle() override { return store_->Settle(); }
  uint64_t unfolded() const override { return store_->unfolded(); }

  std::atomic<bool> full = false;

 private:
  const std::unique_ptr<store::ReplicaStore> store_;
};

class FeedFollowerTest : public ReplicaTest {
 protected:
  FeedFollowerTest() : full_(OpenReplica()) {
    feed_.topic = kTopic;
    feed_.max_age_ms = 3'600'000;
  }
  std::unique_ptr<daemon::FeedFollower> MakeFollower(ReplicaSource from) {
    return std::make_unique<daemon::FeedFollower>(full_, feed_, options_.learners, std::move(from),
                                                  clock_, registry_, [](int64_t) {});
  }
  [[nodiscard]] testing::AssertionResult Shows(uint64_t version) const {
    return test::Eventually("the version is shown", [&] {
      return full_.Latest() && full_.Latest()->version().value == version;
    });
  }

  config::Feed feed_;
  metrics::Registry registry_;
  FullStore full_;
};

TEST_F(FeedFollowerTest, AStuckFeedEndsTheSignsOfLifeAndAnIdleOneDoesNot) {
  const auto publisher = MakePublisher();
  StepAndPublish(*publisher, 2);
  std::promise<void> gate;  // the planted fault: a request that is never answered
  ReplicaSource from = source();
  from.check_topic = [opened = gate.get_future().share()] {
    opened.wait();
    return Status();
  };
  const auto follower = MakeFollower(from);
  ASSERT_TRUE(
      test::Eventually("it begins", [&] { return follower->heartbeat().Look().has_value(); }));
  WatchedStage stage(follower->heartbeat());
  stage.ExpectStuck();
  gate.set_value();
  ASSERT_TRUE(Shows(2));
  // It waits for others now, and gives signs as it does.
  const auto beat = follower->heartbeat().Look();
  ASSERT_TRUE(test::Eventually("it goes on", [&] { return follower->heartbeat().Look() != beat; }));
  follower->Stop();
  const int before = stage.told();
  stage.Pass(600);
  EXPECT_GT(stage.told(), before + 25);
}

TEST_F(FeedFollowerTest, AFullDiskLeavesWhatIsShownAndIsTold) {
  const auto publisher = MakePublisher();
  StepAndPublish(*publisher, 2);
  const auto follower = MakeFollower(source());
  ASSERT_TRUE(Shows(2));
  EXPECT_EQ(follower->readiness().degraded, "");
  full_.full = true;
  StepAndPublish(*publisher, 1);
  ASSERT_TRUE(
      test::Eventually("it is told", [&] { return !follower->readiness().degraded.empty(); }));
  const serve::Readiness readiness = follower->readiness();
  EXPECT_TRUE(readiness.ready);
  EXPECT_EQ(readiness.degraded, "the replica's store has failed");
  EXPECT_THAT(readiness.degraded_for_operators, HasSubstr("version 2 is"));
  EXPECT_THAT(readiness.degraded_for_operators, HasSubstr("No space left on device"));
  ExpectSame(*full_.Latest());
  EXPECT_EQ(full_.Latest()->version().value, 2u);
}

}  // namespace
}  // namespace tacit::feed
