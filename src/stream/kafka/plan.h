#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "stream/kafka/identity.h"
#include "stream/source.h"

// Decides whether a topic still is what a store has read, and where to continue. Asks no broker:
// every refusal is a function of the brokers' answers.
namespace tacit::stream {

// The offsets that exist in a partition.
struct PartitionSpan {
  int32_t partition = 0;
  uint64_t begin = 0;  // the first offset that is still there
  uint64_t end = 0;    // the next one to be written
};

struct PartitionStart {
  int32_t partition = 0;
  uint64_t offset = 0;
  uint64_t lost = 0;  // number of lost offsets before it
  uint64_t end = 0;   // the next one to be written
};

// An offset committed for a group.
struct GroupOffset {
  int32_t partition = 0;
  uint64_t offset = 0;
  std::string metadata;
};

enum class OnLost {
  kRefuse,
  kGoOn,  // after the lost offsets
};

// Returns the offset at which to read each partition. A partition without a wanted position is new
// and starts at its first offset. kRefused, naming partition and offsets: records still to be read
// are gone (unless `on_lost` goes on), or a partition ends before the position read, or does not
// exist.
Result<std::vector<PartitionStart>> PlanStarts(const std::string& topic,
                                               std::span<const PartitionSpan> there,
                                               std::span<const PartitionOffset> wanted,
                                               OnLost on_lost);

// Returns the places of last records that still exist. kRefused: a partition does not exist or ends
// before its last record.
Result<std::vector<PartitionOffset>> LastRecordsToCheck(const KafkaIdentity& identity,
                                                        std::span<const PartitionSpan> there);
// kRefused: the record found at the last record's offset is another one. `found`: by partition, the
// first record at or after that offset; a last record that compaction has taken is not checked.
Status CheckLastRecords(const KafkaIdentity& identity, const std::map<int32_t, LastRecord>& found);

// kRefused: another store has read with this group, or this one when it was further, or a copy of
// this one that diverged, however far this one is by now.
Status CheckReader(const std::string& topic, const std::string& group,
                   std::span<const GroupOffset> committed, const StoreClaim& own);

}  // namespace tacit::stream
