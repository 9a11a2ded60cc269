#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/threads/mutex.h"
#include "base/threads/paced_thread.h"
#include "stream/kafka/client.h"
#include "stream/kafka/rounds.h"
#include "stream/kafka/source.h"
#include "stream/kafka/topic.h"

namespace tacit::stream {

// Closes rounds: every `round` it asks the brokers where the partitions end. It has a thread and a
// client of its own, so that neither fetching nor learning can delay a request. It looks for new
// partitions too. A missing answer closes no round: records that came meanwhile are in the next
// round. It runs from its construction to its destruction, which may take as long as a request
// under way (a second). Private to the room.
class EndWatcher {
 public:
  // `rounds` already holds the first round. `options`, `clock` and `rounds` must outlive it.
  static Result<std::unique_ptr<EndWatcher>> Make(const KafkaSourceOptions& options,
                                                  const Clock& clock,
                                                  std::vector<int32_t> partitions,
                                                  Clock::TimePoint first_tick, RoundQueue* rounds);
  ~EndWatcher();

  // Returns true if brokers have answered since the last call.
  bool TakeHeard();
  // Returns true if a partition ends before an earlier end: then no more rounds are closed.
  bool shrunk() const;

 private:
  EndWatcher(const KafkaSourceOptions& options, const Clock& clock, std::vector<int32_t> partitions,
             Clock::TimePoint first_tick, RoundQueue* rounds);
  void Run();
  void Ask();
  std::vector<PartitionEnd> AskEach();
  void LookForPartitions();

  const KafkaSourceOptions& options_;
  const Clock& clock_;
  RoundQueue* const rounds_;
  std::shared_ptr<KafkaContext> context_ = std::make_shared<KafkaContext>();
  KafkaClient client_;
  std::vector<int32_t> partitions_;
  Clock::TimePoint next_tick_, next_look_;
  bool ticks_ = false;

  mutable Mutex mutex_;
  bool heard_ TACIT_GUARDED_BY(mutex_) = false;
  bool shrunk_ TACIT_GUARDED_BY(mutex_) = false;
  PacedThread thread_;
};

}  // namespace tacit::stream
