#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "feed/assembler.h"
#include "store/replica/replica_store.h"
#include "stream/kafka/topic_reader.h"

namespace tacit::feed {

struct ReplicaSource {
  stream::KafkaProperties properties = {};
  std::string topic = {};
  std::chrono::milliseconds patience{2'000};  // for one answer of the brokers
  // Checks the topic's settings before anything is read. If empty, CheckCompacted.
  std::function<Status()> check_topic = {};
  // A release checkpoint that an empty store begins with; if empty, it begins with the topic.
  std::string checkpoint = {};
  // A new replica holds at most this many bytes of records; the rest goes into its store.
  uint64_t held_bytes_most = uint64_t{64} << 20;
  Assembler::Moves moves = Assembler::Moves::kLeftOut;
  // Both are for a topic that is none of a broker's. If empty, ReadNewestEnds and
  // KafkaTopicReader::Open.
  std::function<Result<NewestEnds>()> newest_ends = {};
  std::function<Result<std::unique_ptr<stream::KafkaTopicReader>>()> open_reader = {};
};

// A replica's progress.
struct ReplicaSight {
  CommitSeq served;            // 0: no version yet
  int64_t served_time_ms = 0;  // when it was published, Unix
  CommitSeq newest;            // of which anything was seen
  int64_t newest_time_ms = 0;
  uint64_t records_behind = 0;  // offsets of the topic that were not read yet, when last asked
  uint64_t pending_bytes = 0;   // read, and of no version that was applied
  uint64_t versions = 0, records = 0, bytes = 0;  // applied since the start
};

// Follows a topic into a replica's store: every version that it applies is whole. One thread; the
// store and what it shows are for all. The store must outlive it.
class Replica {
 public:
  Replica(store::ReplicaStore& store, std::vector<store::LearnerLayout> layouts,
          ReplicaSource source);
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // Reads for `timeout` at most (a little longer where brokers do not answer), and applies what is
  // whole. Returns true if a newer version is shown. kUnavailable: brokers are away, or there is no
  // version yet: the next call goes on. Any other failure stays, and the store shows what it shows.
  Result<bool> Step(std::chrono::milliseconds timeout);

  ReplicaSight sight() const;

 private:
  Status Join();
  Status JoinEmpty();
  Status JoinAgain();
  Result<store::ReplicaVersion> ReadCheckpoint(const FeedIdentity& identity) const;
  Status BeginReading(FeedIdentity identity, std::optional<CommitSeq> base,
                      const std::map<int32_t, uint64_t>& next);
  Result<std::map<int32_t, PartitionSight>> AskEnds();
  Result<bool> StepOnce(std::chrono::milliseconds timeout);
  Status HoldNoMore();
  Status Apply(WholeVersion version);

  store::ReplicaStore& store_;
  const std::vector<store::LearnerLayout> layouts_;
  const ReplicaSource source_;
  std::unique_ptr<stream::KafkaTopicReader> reader_;  // null until it is joined
  std::optional<FeedIdentity> identity_;
  std::optional<Assembler> assembler_;
  std::chrono::steady_clock::time_point asked_{};
  std::optional<Error> refused_;  // for good
  ReplicaSight sight_;
};

}  // namespace tacit::feed
