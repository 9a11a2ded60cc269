#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "system/kafka/oracle.h"

namespace tacit::test {

// Writes new events of the oracle's into a topic at a given rate, all the time, from a thread of
// its own, by bare librdkafka: one in fifty is bad, in one of several ways. Not everything that was
// meant to gets into the topic: a client does not take a record for a partition that it does not
// know yet, which is how it is for a while after a topic has grown. What was acked is there, and
// the topic itself shows the rest. The oracle is the writer's until Stop.
class LoadWriter {
 public:
  struct Options {
    std::string bootstrap, topic;
    int32_t partitions = 1;
    double events_per_second = 100;
    uint64_t seed = 0;
    bool users = false;  // JSON with users, instead of Criteo's lines
  };
  LoadWriter(Options options, Oracle& oracle);
  ~LoadWriter();
  LoadWriter(const LoadWriter&) = delete;
  LoadWriter& operator=(const LoadWriter&) = delete;

  // From now on to this many partitions.
  void Grow(int32_t partitions) { partitions_ = partitions; }
  // Waits until what has been written is acked.
  void Stop();

  // After Stop: which events the brokers have said to have; how many records they have of none
  // (null values); how many events the client would not take, and how many it has given up.
  bool IsAcked(size_t event) const { return event < acked_.size() && acked_[event]; }
  uint64_t nulls_acked() const { return nulls_acked_; }
  uint64_t refused() const { return refused_; }
  uint64_t given_up() const { return given_up_; }

 private:
  void Run();
  void WriteOne(std::mt19937_64& random);
  // The record of an event; none: a null value.
  std::optional<std::string> RecordOf(size_t event, std::mt19937_64& random) const;
  // Called by the client where it is polled, with the event's number + 1, or 0 for a null value.
  void Hear(size_t tag, bool delivered);

  const Options options_;
  Oracle& oracle_;
  struct Connection;
  std::unique_ptr<Connection> connection_;
  std::atomic<int32_t> partitions_;
  std::atomic<bool> stopping_ = false;
  std::vector<bool> acked_;
  uint64_t nulls_acked_ = 0, refused_ = 0, given_up_ = 0;
  std::thread thread_;
};

}  // namespace tacit::test
