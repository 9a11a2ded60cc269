#pragma once

#include <librdkafka/rdkafka.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/mapping.h"

namespace tacit::sim {

// A record as clients write and read it.
struct ClusterRecord {
  std::optional<std::string> key = {}, value = {};
  std::vector<std::pair<std::string, std::optional<std::string>>> headers = {};
  int64_t timestamp_ms = 0;
  int64_t offset = -1;
  bool appended = false;  // the broker has set the timestamp

  size_t bytes() const;
};

struct ProducerId {
  int64_t id = -1;
  int16_t epoch = 0;
};

enum class Request : uint8_t {
  kMetadata,
  kOffsets,
  kFetch,
  kProduce,
  kInitProducer,
  kAddPartition,
  kEndTransaction,
  kCommitOffsets,
  kGroupOffsets,
  kSettings,
  kDelete,
};

enum class Fate : uint8_t { kAnswered, kRequestLost, kAnswerLost, kRefused };

// A model of a Kafka cluster: topics, transactions and groups' offsets, and the line to each
// broker. It lies in memory that forked processes share, so it outlives them. Clients of
// librdkafka's functions (calls.cc) find it by its address. Not thread-safe: see OnCluster.
class Cluster {
 public:
  using Error = rd_kafka_resp_err_t;
  using Settings = std::vector<std::pair<std::string, std::string>>;

  struct Unmap {
    void operator()(Cluster* cluster) const;
  };
  using Owned = std::unique_ptr<Cluster, Unmap>;
  static Owned Make(int32_t brokers = 1);
  std::string address() const { return std::string(address_); }
  int32_t brokers() const { return static_cast<int32_t>(lines_.size()); }

  // The acts of operators. The topic must be there, or not, as the act wants.
  void CreateTopic(std::string_view name, int32_t partitions, const Settings& settings = {});
  void GrowTopic(std::string_view name, int32_t partitions);  // to this many in all
  void DeleteTopic(std::string_view name);
  // Leaves the newest record of each key that is decided, and the last of the partition; with
  // `tombstones`, takes these away too.
  void Compact(std::string_view topic, bool tombstones);

  // The line between processes and a broker.
  struct Line {
    bool cut = false;        // no connection
    bool silent = false;     // connections stay, and no request arrives
    bool half_open = false;  // requests arrive, and no answer does
    int64_t latency_us = 0;  // each way
  };
  std::vector<Line*> lines();
  Line& line(int32_t broker) { return lines_[static_cast<size_t>(broker)]; }
  // Gives the next requests of a kind this fate.
  void Plan(Request request, int count, Fate fate, Error error = RD_KAFKA_RESP_ERR_UNKNOWN);
  // Loses requests and answers by chance, one in this many each; 0: none.
  void SetWeather(uint64_t seed, uint32_t requests_per_loss, uint32_t answers_per_loss);
  // The fate of the next request, and the error if it is refused.
  std::pair<Fate, Error> Draw(Request request);
  uint64_t losses() const { return losses_; }

  // The clock of a process moves the cluster's own on, which ends transactions whose time is up. A
  // process whose clock begins anew, begins at the cluster's time.
  void Advance(int64_t clock_ms);
  int64_t now_ms() const { return now_ms_; }

  // Answers to clients.
  int32_t Partitions(std::string_view topic) const;  // 0: no such topic
  int32_t Leader(std::string_view topic, int32_t partition) const;
  int32_t Coordinator(std::string_view name) const;
  std::optional<Settings> SettingsOf(std::string_view topic) const;

  struct Written {
    Error error = RD_KAFKA_RESP_ERR_NO_ERROR;
    int64_t offset = -1;  // of the first record
  };
  // `sequence`: the number of the first record among those that the producer has written to the
  // partition. The last batch of a producer may come again, and is not written twice.
  Written Append(std::string_view topic, int32_t partition, ProducerId producer, int32_t sequence,
                 bool in_transaction, std::span<const ClusterRecord> records);
  struct Fetched {
    Error error = RD_KAFKA_RESP_ERR_NO_ERROR;
    std::vector<ClusterRecord> records = {};
    int64_t next = 0;    // where the next fetch begins
    int64_t start = 0;   // the first offset that is left
    int64_t end = 0;     // high watermark
    int64_t stable = 0;  // where the first undecided transaction begins
  };
  // Returns records from the offset on until they have `bytes`, at least one if there is one.
  Fetched Fetch(std::string_view topic, int32_t partition, int64_t offset, size_t bytes,
                bool committed_only) const;
  // The first offset whose record has at least this timestamp, -1 if there is none; or, as in the
  // protocol, with the time -1 the end and with -2 the start.
  Written OffsetAt(std::string_view topic, int32_t partition, int64_t time_ms,
                   bool committed_only) const;
  Error DeleteBefore(std::string_view topic, int32_t partition, int64_t offset);

  // Without a name: a producer without transactions. With a name, ends the producer that had it.
  std::pair<Error, ProducerId> InitProducer(std::string_view name, int64_t timeout_ms);
  Error AddPartition(std::string_view name, ProducerId producer, std::string_view topic,
                     int32_t partition);
  Error EndTransaction(std::string_view name, ProducerId producer, bool commit);

  struct GroupOffset {
    int64_t offset = 0;
    std::string metadata;
  };
  Error CommitOffset(std::string_view group, std::string_view topic, int32_t partition,
                     const GroupOffset& offset);
  std::optional<GroupOffset> CommittedOffset(std::string_view group, std::string_view topic,
                                             int32_t partition) const;

 private:
  using Memory = std::pmr::memory_resource*;
  template <class Value>
  using ByName = std::pmr::map<std::pmr::string, Value, std::less<>>;
  enum class State : uint8_t { kPlain, kOpen, kCommitted, kAborted, kMarker };

  struct Record {
    explicit Record(Memory memory) : bytes(memory) {}
    int64_t offset = 0, timestamp_ms = 0, producer = -1;
    State state = State::kPlain;
    std::pmr::string bytes;  // key, value and headers
  };
  // A producer's last batch in a partition.
  struct Writer {
    int16_t epoch = -1;
    int32_t next_sequence = 0, last_sequence = -1;
    int64_t last_offset = -1;
  };
  struct Partition {
    explicit Partition(Memory memory) : log(memory), writers(memory), open(memory) {}
    int64_t stable() const;
    std::pmr::deque<Record> log;
    int64_t start = 0, end = 0;
    std::pmr::map<int64_t, Writer> writers;
    std::pmr::map<int64_t, int64_t> open;  // undecided: their first offsets, by producer
  };
  struct Topic {
    explicit Topic(Memory memory) : partitions(memory), settings(memory) {}
    std::pmr::deque<Partition> partitions;
    ByName<std::pmr::string> settings;
  };
  struct Transaction {
    explicit Transaction(Memory memory) : partitions(memory) {}
    ProducerId producer;
    int64_t timeout_ms = 0, begun_ms = 0;
    bool open = false, committed = false;  // the last one, if none is open
    std::pmr::set<std::pair<std::pmr::string, int32_t>> partitions;
  };
  struct StoredOffset {
    explicit StoredOffset(Memory memory) : metadata(memory) {}
    int64_t offset = 0;
    std::pmr::string metadata;
  };
  struct Planned {
    Request request;
    int count;
    Fate fate;
    Error error;
  };

  Cluster(char* begin, char* end, int32_t brokers);
  Partition* Find(std::string_view topic, int32_t partition);
  const Partition* Find(std::string_view topic, int32_t partition) const;
  std::string Setting(const Topic& topic, std::string_view name) const;
  void Decide(Transaction& transaction, bool commit);
  Error Judge(const Transaction& transaction, ProducerId producer) const;

  Mapping mapping_;
  std::pmr::unsynchronized_pool_resource memory_;
  const std::pmr::string address_;
  std::pmr::vector<Line> lines_;
  ByName<Topic> topics_;
  ByName<Transaction> transactions_;
  ByName<StoredOffset> offsets_;  // by group, topic and partition
  std::pmr::deque<Planned> planned_;
  int64_t next_producer_ = 1000;
  int64_t now_ms_ = 0, clock_ms_ = 0;
  uint64_t weather_ = 0, requests_ = 0, losses_ = 0;
  uint32_t requests_per_loss_ = 0, answers_per_loss_ = 0;
};

// A test's act on a cluster, alone: OnCluster(*cluster)->DeleteTopic("t"). Its clients are
// told at the end.
class OnCluster {
 public:
  explicit OnCluster(Cluster& cluster);
  ~OnCluster();
  OnCluster(const OnCluster&) = delete;
  OnCluster& operator=(const OnCluster&) = delete;
  Cluster* operator->() { return &cluster_; }

 private:
  Cluster& cluster_;
};

}  // namespace tacit::sim
