// The daemon's thread that publishes: its sign of life, which a service manager's watchdog looks
// at.
#include "daemon/feed_sender.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "feed_rig.h"
#include "watched_stage.h"

namespace tacit::feed {
namespace {

class FeedSenderTest : public FeedTest {
 protected:
  // A sender whose first look at the topic waits for `gate`.
  std::unique_ptr<daemon::FeedSender> MakeSender(std::shared_future<void> gate) {
    return MakeSender([gate] {
      gate.wait();
      return Status();
    });
  }
  std::unique_ptr<daemon::FeedSender> MakeSender(std::function<Status()> check_topic) {
    feed_.topic = kTopic;
    feed_.interval_ms = 20;
    return std::make_unique<daemon::FeedSender>(
        *store_, feed_,
        PublisherOptions{.properties = properties(), .topic = kTopic, .check_topic = check_topic},
        clock_, registry_);
  }

  config::Feed feed_;
  metrics::Registry registry_;
};

TEST_F(FeedSenderTest, AStuckFeedEndsTheSignsOfLifeAndAnIdleOneDoesNot) {
  Steps(2);
  std::promise<void> gate;  // the planted fault: a request that is never answered
  const auto sender = MakeSender(gate.get_future().share());
  ASSERT_TRUE(
      test::Eventually("it begins", [&] { return sender->heartbeat().Look().has_value(); }));
  WatchedStage stage(sender->heartbeat());
  stage.ExpectStuck();
  gate.set_value();
  // It publishes now, and then waits for others.
  ASSERT_TRUE(test::Eventually("it rests", [&] {
    return store_->Latest()->version().value > 0 && sender->trouble().empty() &&
           !sender->heartbeat().Look().has_value() && !ReadTopic().empty();
  }));
  sender->Finish(daemon::FeedSender::kOnStop);
  const int before = stage.told();
  stage.Pass(600);
  EXPECT_GT(stage.told(), before + 25);
}

// At its end a run waits for brokers that are away, as long as it is told to.
TEST_F(FeedSenderTest, TheLastVersionIsWaitedForAsLongAsIsSaid) {
  Steps(2);
  std::atomic<bool> away = true;
  const auto check = [&away]() -> Status {
    if (away) return Fail(ErrorCode::kUnavailable, "no broker answers");
    return {};
  };
  MakeSender(check)->Finish(std::chrono::seconds(0));
  EXPECT_TRUE(ReadTopic().empty());
  const auto sender = MakeSender(check);
  std::thread back([&away] {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    away = false;
  });
  sender->Finish(daemon::FeedSender::kAtTheEnd);
  back.join();
  EXPECT_FALSE(ReadTopic().empty());
}

// Brokers that vanish while a version is on its way hold a stop up no longer than is said: a
// service manager would kill the daemon. A version that is begun is waited for, for a minute,
// otherwise.
TEST_F(FeedSenderTest, AStopEndsTheWaitForAVersionThatIsBegun) {
  Steps(2);
  const auto sender = MakeSender([] { return Status(); });
  ASSERT_TRUE(test::Eventually("it is published", [&] { return !ReadTopic().empty(); }));
  constexpr int16_t kEndTransaction = 26;  // Kafka's EndTxn
  const std::vector<rd_kafka_resp_err_t> away(10'000, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE);
  rd_kafka_mock_push_request_errors_array(kafka_.cluster(), kEndTransaction, away.size(),
                                          away.data());
  Steps(1);
  const auto asked = std::chrono::steady_clock::now();
  sender->Finish(std::chrono::seconds(1));
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(45));
  rd_kafka_mock_clear_request_errors(kafka_.cluster(), kEndTransaction);
}

// A version that takes long is no standstill: it gives signs as it gets on.
TEST_F(FeedSenderTest, ALargeVersionGivesSigns) {
  Steps(1500);
  size_t signs = 0;
  Publisher publisher(*store_, clock_,
                      PublisherOptions{.properties = properties(),
                                       .topic = kTopic,
                                       .check_topic = [] { return Status(); },
                                       .on_progress = [&signs] { ++signs; }});
  const PublishedVersion published = MustPublish(publisher);
  ASSERT_GT(published.records, 512u);
  EXPECT_GE(signs, published.records / 256);
}

}  // namespace
}  // namespace tacit::feed
