#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "stream/kafka_client.h"
#include "stream/kafka_plan.h"
#include "stream/kafka_source.h"
#include "stream/kafka_topic.h"
#include "stream/kafka_waker.h"

namespace tacit::stream {

// What a topic is held against when it is opened.
struct KafkaExpectation {
  std::vector<PartitionOffset> positions;
  KafkaIdentity identity;          // of what was read before
  std::optional<StoreMark> store;  // who reads; nothing: nobody says
};

// One consumer of one topic, from its opening until it is given up: the calls into librdkafka. Not
// thread-safe. Private to the room.
class KafkaReader {
 public:
  explicit KafkaReader(const KafkaSourceOptions& options) : options_(options) {}
  ~KafkaReader() { Close(); }
  KafkaReader(const KafkaReader&) = delete;
  KafkaReader& operator=(const KafkaReader&) = delete;

  // Makes the client, unless there is one: kInvalidArgument where its settings are refused. Waits
  // for no broker.
  Status MakeClient();

  // Asks the brokers, checks, and begins to read; tells where each partition begins. kUnavailable:
  // try again. kRefused: never. kNotFound, kInvalidArgument: no such topic, or no entry.
  Result<std::vector<PartitionStart>> Open(const KafkaExpectation& expected);
  bool open() const { return open_; }
  // Gives the client up. REQUIRES that no message of it is kept.
  void Close();

  // The partitions there are now.
  Result<std::vector<int32_t>> Refresh() {
    return ReadPartitions(client_.get(), options_.topic, kQuestion);
  }
  // Begins to read a new partition at its beginning, which it tells.
  Result<uint64_t> Add(int32_t partition);

  // Appends what has come, and serves callbacks; waits for the first message. Each is to be
  // destroyed by the caller, before Close. Sees to it that more is fetched meanwhile.
  void Fetch(Milliseconds timeout, std::vector<rd_kafka_message_t*>* messages);
  // Holds a partition back, or goes on with it where its last message left off.
  void Pause(int32_t partition, bool pause);
  // Commits for the group without waiting, or waits until the brokers have it or time is up.
  void Commit(std::span<const PartitionOffset> offsets, const StoreMark& store, bool wait);
  // Why the last commit has failed, once.
  std::string TakeCommitFailure() { return std::exchange(context_->commit_failure, {}); }
  // What the brokers have confirmed of this client's commits.
  std::optional<uint64_t> CommittedOffset(int32_t partition) const;
  // Where a partition ends, as far as the last fetch has told.
  std::optional<uint64_t> End(int32_t partition) const;

  KafkaContext::Events TakeEvents() { return context_->TakeEvents(); }
  const std::string& group() const { return group_; }

 private:
  static constexpr Milliseconds kQuestion{1000};

  struct Context : KafkaContext {
    // Written by callbacks, which run where we poll.
    std::string commit_failure;
    std::map<int32_t, uint64_t> committed;
  };
  static void OnCommit(rd_kafka_t* client, rd_kafka_resp_err_t error,
                       rd_kafka_topic_partition_list_t* offsets, void* opaque);

  Status Check(const KafkaExpectation& expected, std::span<const PartitionSpan> spans) const;

  const KafkaSourceOptions& options_;
  std::string group_;
  std::shared_ptr<Context> context_ = std::make_shared<Context>();  // of the client
  KafkaClient client_;
  KafkaQueue queue_;
  std::optional<FetchWaker> waker_;  // of the client
  std::vector<int32_t> assigned_;    // to it
  bool open_ = false;
};

}  // namespace tacit::stream
