#pragma once

#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "stream/kafka/client.h"
#include "stream/kafka/fetcher.h"
#include "stream/kafka/period_cut.h"
#include "stream/kafka/plan.h"
#include "stream/kafka/source.h"
#include "stream/kafka/topic.h"
#include "stream/kafka/waker.h"

namespace tacit::stream {

// The facts that a topic is checked against when it is opened.
struct KafkaExpectation {
  std::vector<PartitionOffset> positions;
  KafkaIdentity identity;           // of the records read before
  std::optional<StoreClaim> store;  // the store that reads; nothing if unknown
};

// A consumer of one topic, from its opening until it is closed: the calls into librdkafka. Each
// partition has its own queue, so that messages of one take no room from another, and the reader
// can wait for the partition whose turn it is; the queues share `queued.max.messages.kbytes`. Not
// thread-safe. Private to the room.
class KafkaReader final : public MessageFetcher, public OffsetsByTime {
 public:
  explicit KafkaReader(const KafkaSourceOptions& options) : options_(options) {}
  ~KafkaReader() override {
    Close();
    if (asker_ != nullptr) EndKafkaClient(std::move(asker_), asker_context_);
  }
  KafkaReader(const KafkaReader&) = delete;
  KafkaReader& operator=(const KafkaReader&) = delete;

  // Makes the client unless there is one. kInvalidArgument: its settings are refused. Does not wait
  // for a broker.
  Status MakeClient() { return MakeClient(1); }

  // Asks the brokers, checks, and begins to read; returns where each partition begins.
  // kUnavailable: try again. kRefused: never. kNotFound, kInvalidArgument: no such topic, or no
  // access.
  Result<std::vector<PartitionStart>> Open(const KafkaExpectation& expected);
  // Asks the brokers, and reads nothing yet: Seek begins a partition, and Leave ends it.
  // kUnavailable, kNotFound, kInvalidArgument: as Open.
  Status OpenIdle();
  bool open() const { return open_; }
  // Closes the client. REQUIRES that none of its messages is kept.
  void Close();

  // Returns the partitions that exist now.
  Result<std::vector<int32_t>> Refresh() {
    return ReadPartitions(client_.get(), options_.topic, kQuestion);
  }
  Result<uint64_t> Add(int32_t partition) override;
  Status Seek(int32_t partition, uint64_t offset) override;
  // Reads the partition no more. REQUIRES that it is read, and none of its messages is kept.
  Status Leave(int32_t partition);
  // Returns the offsets that are there.
  Result<std::vector<PartitionSpan>> Spans(std::span<const int32_t> partitions) {
    return ReadSpans(client_.get(), options_.topic, partitions, kQuestion);
  }
  Result<std::vector<uint64_t>> FirstFrom(int64_t time_ms,
                                          std::span<const OffsetRange> ranges) override;
  // Messages must be destroyed before Close. Wakes librdkafka's fetcher if needed.
  Status Fetch(int32_t partition, size_t max, Milliseconds timeout,
               std::vector<FetchedMessage>* messages) override;
  // Serves callbacks. Fails like Fetch if the client as a whole has a fault.
  Status Serve();
  // Commits for the group. With `wait`, waits until the brokers have the commit or time is up.
  void Commit(std::span<const PartitionOffset> offsets, const StoreMark& store, bool wait);
  // Returns why the last commit has failed, once.
  std::string TakeCommitFailure() { return std::exchange(context_->commit_failure, {}); }
  // Returns the offset that the brokers have confirmed of this client's commits.
  std::optional<uint64_t> CommittedOffset(int32_t partition) const;
  // Returns the partition's end as of the last fetch.
  std::optional<uint64_t> End(int32_t partition) const;

  KafkaContext::Events TakeEvents() { return context_->TakeEvents(); }
  const std::string& group() const { return group_; }

 private:
  static constexpr Milliseconds kQuestion{1000};

  struct Context : KafkaContext {
    // Callbacks write these; they run on the thread that polls.
    std::string commit_failure;
    std::map<int32_t, uint64_t> committed;
  };
  static void OnCommit(rd_kafka_t* client, rd_kafka_resp_err_t error,
                       rd_kafka_topic_partition_list_t* offsets, void* opaque);

  // A partition's fetched messages, and the waker that keeps the fetcher going.
  struct PartitionQueue {
    KafkaQueue queue;
    FetchWaker waker;
  };

  Status MakeClient(size_t partitions);
  // Returns the partitions that exist, as the first question to the brokers.
  Result<std::vector<int32_t>> FirstRefresh();
  Status SetSizes(size_t partitions, rd_kafka_conf_t* conf) const;
  void Retire();
  // REQUIRES that the partition is not assigned yet.
  void Split(int32_t partition);
  Status Check(const KafkaExpectation& expected, std::span<const PartitionSpan> spans) const;
  Status OnError(const rd_kafka_message_t& message) const;

  const KafkaSourceOptions& options_;
  std::string group_;
  std::shared_ptr<Context> context_ = std::make_shared<Context>();  // of the client
  KafkaClient client_;
  // For FirstFrom; made at the first question, and kept.
  std::shared_ptr<KafkaContext> asker_context_ = std::make_shared<KafkaContext>();
  KafkaClient asker_;
  size_t made_for_ = 0;        // the number of partitions
  std::future<void> retired_;  // the end of the previous client
  KafkaQueue queue_;           // for messages of no partition
  std::map<int32_t, PartitionQueue> queues_;
  std::vector<rd_kafka_message_t*> batch_;
  bool open_ = false;
};

}  // namespace tacit::stream
