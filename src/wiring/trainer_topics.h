#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/threads/mutex.h"
#include "base/threads/paced_thread.h"
#include "config/config.h"
#include "stream/kafka/producer.h"
#include "stream/kafka/properties.h"
#include "stream/kafka/topic_reader.h"
#include "workers/dealer.h"

namespace tacit::wiring {

// NAME.plan and NAME.sums on brokers, which a thread of its own reads and writes. A trainer that
// begins to write plans ends the one that wrote them before, by the name of its transactions. A
// topic that has failed is tried again after a pause, which grows up to a minute each time that
// another trainer has ended this one's writing: that one may be gone by now.
class KafkaTrainerTopics final : public workers::TrainerTopics {
 public:
  // Records of NAME.sums that are read and not shown yet have about this many bytes at most, for
  // plans of memory.
  static constexpr uint64_t kQueuedBytesMost = uint64_t{32} << 20;

  // Asks no broker before the first call.
  KafkaTrainerTopics(const config::Workers& config, stream::KafkaProperties properties);
  ~KafkaTrainerTopics() override { thread_.Stop(); }

  Status ReadSums(std::chrono::milliseconds timeout, const Show& show) override;
  bool caught_up() const override;
  void WritePlan(std::string plan) override;
  Status plan_status() const override;
  bool plan_written() const override;
  Status DeleteShown() override;

 private:
  using Steady = std::chrono::steady_clock;
  struct Record {
    int32_t partition = 0;
    uint64_t offset = 0;
    uint64_t joined = 0;  // the reading that it is of
    std::string key, value;
    bool old = false;  // there when reading began
  };
  using Positions = std::map<int32_t, uint64_t>;

  void Loop();
  void FollowSums();
  Status JoinSums();
  Status Read();
  void SendNewPlan();
  Status SendPlan(const std::string& plan);
  Status JoinPlan();
  void DeleteAsked();

  const std::string plan_topic_, sums_topic_;
  const stream::KafkaProperties properties_;

  // The thread's.
  std::unique_ptr<stream::KafkaTopicReader> sums_;  // null until it is joined
  Positions ends_;                                  // of NAME.sums, when it was joined
  std::unique_ptr<stream::KafkaProducer> plan_;
  Steady::time_point sums_again_{}, plan_again_{};
  Steady::duration ended_pause_{};  // since another trainer has ended this one's writing last

  // The caller's.
  Positions shown_;
  uint64_t shown_of_ = 0;  // the reading that these are of

  mutable Mutex mutex_;
  Condition came_;
  std::deque<Record> records_ TACIT_GUARDED_BY(mutex_);  // read, and not shown
  uint64_t bytes_ TACIT_GUARDED_BY(mutex_) = 0;          // of them
  // Readings that have begun: the topic may have been made anew between two.
  uint64_t joined_ TACIT_GUARDED_BY(mutex_) = 0;
  size_t old_ TACIT_GUARDED_BY(mutex_) = 0;        // old records that are not shown
  bool read_up_ TACIT_GUARDED_BY(mutex_) = false;  // to the ends that were there at first
  std::optional<std::string> new_plan_ TACIT_GUARDED_BY(mutex_);
  bool plan_written_ TACIT_GUARDED_BY(mutex_) = false;
  std::optional<Positions> to_delete_ TACIT_GUARDED_BY(mutex_);
  Status sums_status_ TACIT_GUARDED_BY(mutex_), plan_status_ TACIT_GUARDED_BY(mutex_),
      deletion_status_ TACIT_GUARDED_BY(mutex_);
  PacedThread thread_;  // the last member: it uses all others
};

}  // namespace tacit::wiring
