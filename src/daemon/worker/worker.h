#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/result.h"
#include "base/threads/heartbeat.h"
#include "base/threads/mutex.h"
#include "base/threads/paced_thread.h"
#include "base/threads/worker_pool.h"
#include "daemon/worker/slice_run.h"
#include "daemon/worker/worker_model.h"
#include "event/codec.h"
#include "event/dead_letters.h"
#include "feed/replica.h"
#include "metrics/registry.h"
#include "serve/api.h"
#include "stream/kafka/producer.h"
#include "stream/kafka/topic_reader.h"
#include "wiring/assembly.h"
#include "workers/records.h"

namespace tacit::daemon {

// The outside of a worker; it must outlive it.
struct WorkerParts {
  const wiring::Assembly& assembly;
  const Clock& clock;
  metrics::Registry& registry;
  std::string name;  // of this process: it ends with digits that were drawn at its start
  std::string_view sources = {};  // of the program (console::BuildInfo)
  // Checks the settings of feed.topic; if empty, feed::CheckCompacted.
  std::function<Status()> check_feed = {};
};

// Sums up slices of periods for a trainer, on a thread of its own: it follows the feed and the
// plans, and where a plan is of the feed's head and of its own build, it sums the slice that is
// announced for it and sends the body. It says hello once a second, and goodbye at its end. It
// holds a model and a slice, and nothing that a start needs. Thread-safe.
class Worker {
 public:
  // kInvalidArgument: the key file, or settings of the brokers. Asks no broker yet.
  static Result<std::unique_ptr<Worker>> Open(const WorkerParts& parts);
  ~Worker() { Stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Ready: a plan of this build is here, and a model. The reason says what it waits for.
  serve::Readiness readiness() const;
  const Heartbeat& heartbeat() const { return heartbeat_; }
  // Says goodbye and ends the thread.
  void Stop() { thread_.Stop(); }

 private:
  struct Slice {
    Digest head{};
    std::unique_ptr<SliceRun> run;
    Clock::TimePoint begun;
  };
  using Milliseconds = std::chrono::milliseconds;

  explicit Worker(const WorkerParts& parts);
  Status Init();
  Status ReadOptOut();
  void Loop();

  // The model.
  void FollowFeed(Milliseconds timeout);
  void ForgetModel();
  std::optional<Digest> head() const;

  // The plan.
  void ReadPlan(Milliseconds timeout);
  Status ReadPlanOnce(Milliseconds timeout);
  // The slice that the plan has for this worker, if it can be summed now.
  const workers::Slice* Announced() const;

  // The slice in hand.
  void DropSlice();
  void ChooseSlice();
  Status BeginSlice(const workers::Slice& slice);
  Result<std::vector<SummedLearner>> LoadLearners();
  void Sum(Milliseconds timeout);
  Status Deliver(const workers::Body& body);

  void SayHello(bool leaves);
  Status OpenProducer();
  // A producer that has failed is replaced after a pause, which grows up to half a minute; what it
  // had not delivered is lost, and summed again where the plan has it still.
  Status Send(const workers::KafkaRecord& record, Milliseconds timeout, bool of_body);
  // Returns the last failure of what was sent, if there is one.
  Status TakeFailures();
  // Says how it went; a failure is told until the next success. Returns the time before which it
  // is not tried again.
  Clock::TimePoint Note(const std::string& what, const Status& outcome);
  std::string Trouble() const;
  void ShowReadiness();
  std::string WaitsFor() const;
  std::string OtherHead() const;

  const WorkerParts parts_;
  workers::SharedKey key_{};
  Digest build_{};
  stream::KafkaProperties properties_;
  Heartbeat heartbeat_;

  // The thread's own from here on.
  std::unique_ptr<WorkerModel> model_;
  std::unique_ptr<feed::Replica> replica_;
  Clock::TimePoint feed_again_{}, plan_again_{}, slice_again_{}, hello_due_{};
  std::unique_ptr<stream::KafkaTopicReader> plans_;
  std::optional<workers::Plan> plan_;
  std::unique_ptr<stream::RangeSource> source_;
  std::unique_ptr<stream::KafkaProducer> producer_;  // null until the pause has ended
  Status producer_failure_;
  Clock::Duration producer_pause_{};
  Clock::TimePoint producer_again_{};
  std::unique_ptr<event::Codec> codec_;
  train::RecordFilterOptions filter_;
  WorkerPool pool_;
  std::vector<std::unique_ptr<train::PartSummer>> summers_;  // by place in the configuration
  std::optional<Digest> loaded_;                             // the head that they have the model of
  std::unique_ptr<event::DeadLetterSink> dead_letters_;      // from slice to slice
  std::optional<Slice> slice_;
  std::vector<workers::Ranges> done_;  // under the plan's head
  uint64_t events_per_second_ = 0, hellos_ = 0;
  std::map<std::string, std::string> troubles_;
  train::DeadLetterNews news_;
  train::StreamWatch watch_;
  const metrics::Counter sent_;
  const metrics::Gauge letters_waiting_;

  mutable Mutex mutex_;
  serve::Readiness readiness_ TACIT_GUARDED_BY(mutex_);
  PacedThread thread_;  // the last member: it uses all others
};

}  // namespace tacit::daemon
