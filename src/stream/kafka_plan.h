#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "stream/kafka_marks.h"
#include "stream/source.h"

// Whether a topic is still what a store has read of it, and where to go on. No broker is asked
// here: every refusal is a function of what the brokers have said.
namespace tacit::stream {

// What there is of a partition.
struct PartitionSpan {
  int32_t partition = 0;
  uint64_t begin = 0;  // the first offset that is still there
  uint64_t end = 0;    // the next one to be written
};

struct PartitionStart {
  int32_t partition = 0;
  uint64_t offset = 0;
  uint64_t lost = 0;  // so many offsets before it are gone
};

// What somebody has committed for a group.
struct GroupOffset {
  int32_t partition = 0;
  uint64_t offset = 0;
  std::string metadata;
};

enum class OnLost {
  kRefuse,
  kGoOn,  // behind what is lost
};

// Where each partition is to be read from. Partitions nobody wants anything of are new: they begin
// at their beginning. kRefused, naming partition and offsets: records that were to be read are gone
// (unless `on_lost` goes on), or a partition ends before what was read of it, or is not there.
Result<std::vector<PartitionStart>> PlanStarts(const std::string& topic,
                                               std::span<const PartitionSpan> there,
                                               std::span<const PartitionOffset> wanted,
                                               OnLost on_lost);

// The marks of records that can still be looked at; kRefused where a partition is not there or ends
// before its mark.
Result<std::vector<PartitionOffset>> MarksToCheck(const KafkaIdentity& identity,
                                                  std::span<const PartitionSpan> there);
// kRefused where the record found at a mark's offset is another one. `found`: by partition, the
// first record at or behind the mark's offset; where compaction has taken the record nothing can be
// said.
Status CheckMarks(const KafkaIdentity& identity, const std::map<int32_t, RecordMark>& found);

// kRefused where another store has read with this group, or this one when it was further.
Status CheckReader(const std::string& topic, const std::string& group,
                   std::span<const GroupOffset> committed, const StoreMark& own);

}  // namespace tacit::stream
