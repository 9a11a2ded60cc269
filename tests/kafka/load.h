#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "kafka/oracle.h"

namespace tacit::test {

// Writes new events of the oracle's into a topic, so many a second, all the time, from a thread of
// its own, by bare librdkafka: one in fifty is bad. What has got into the topic is not what was
// meant to, where the broker fails: the topic itself tells. The oracle is the writer's until Stop.
class LoadWriter {
 public:
  struct Options {
    std::string bootstrap, topic;
    int32_t partitions = 1;
    double events_per_second = 100;
    uint64_t seed = 0;
  };
  LoadWriter(Options options, Oracle& oracle);
  ~LoadWriter();
  LoadWriter(const LoadWriter&) = delete;
  LoadWriter& operator=(const LoadWriter&) = delete;

  // From now on to so many partitions.
  void Grow(int32_t partitions) { partitions_ = partitions; }
  // Waits until what has been written is acked.
  void Stop();

 private:
  void Run();
  void WriteOne(std::mt19937_64& random);

  const Options options_;
  Oracle& oracle_;
  struct Connection;
  std::unique_ptr<Connection> connection_;
  std::atomic<int32_t> partitions_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace tacit::test
