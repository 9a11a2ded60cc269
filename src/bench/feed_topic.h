#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>

#include "feed/assembler.h"
#include "feed/newest_ends.h"
#include "feed/record.h"
#include "store/replica/replica_store.h"
#include "stream/kafka/topic_reader.h"

// A feed of a model that nobody has trained: one table of rows, whose values are made of their
// numbers. What it costs to encode, read and apply does not depend on the values.
namespace tacit::bench {

// A version of the synthetic model: `rows` of its rows from the `first` of a scattered order on,
// which begins again behind the last.
struct SyntheticVersion {
  CommitSeq version, previous;
  CommitSeq whole_since;
  uint64_t first = 0, rows = 0;
};

class SyntheticModel {
 public:
  static constexpr uint32_t kDimension = 16;
  static constexpr uint32_t kPartitions = 4;
  using Sink =
      std::function<Status(int32_t partition, std::string_view key, std::string_view value)>;

  explicit SyntheticModel(uint64_t rows);

  uint64_t rows() const { return rows_; }
  const store::LearnerLayout& layout() const { return layout_; }
  store::ReplicaOrigin origin() const;
  feed::FeedIdentity identity() const;
  // A version end of each partition, without counts, for a replica that joins at this version.
  feed::NewestEnds NewestEndsOf(const SyntheticVersion& version) const;
  // The records of each partition, its version end among them.
  std::map<int32_t, uint64_t> CountRecords(const SyntheticVersion& version) const;
  // Encodes the version's records, and then its version ends. The first failure of `sink` ends it.
  Status Send(const SyntheticVersion& version, const Sink& sink) const;
  // The number of a row at a place of the scattered order, and its value.
  uint64_t RowAt(uint64_t place) const;
  static void FillRow(uint64_t row, CommitSeq version, std::span<float> floats);

 private:
  feed::VersionEnd MakeVersionEnd(const SyntheticVersion& version) const;
  feed::RecordPlace PlaceOf(uint64_t row) const;
  feed::RecordOrigin OriginOf(CommitSeq version, feed::RecordKind kind) const;

  const uint64_t rows_;
  store::LearnerLayout layout_;
  store::LearnerRecord record_;
};

// Opens a reader of a topic that holds this version alone. It exists nowhere: a thread makes the
// records as they are read, as librdkafka's makes records of what brokers send. The model must
// outlive it.
std::unique_ptr<stream::KafkaTopicReader> ReadSynthetic(const SyntheticModel& model,
                                                        const SyntheticVersion& version);

}  // namespace tacit::bench
