// The notation is base/bytes.h's.
//     end     := feed:byte*16 partition:u32 partitions:u32 previous:u64 whole_since:u64
//                 term:byte*16 time:i64 records:u64 checksum:u64 all_records:u64 all_bytes:u64
//                 tip:string learners:u16 learner*learners [mark:u64*2]
//     learner  := key:u16 record:string step:u32 dense_floats:u64 dense_chunks:u32
//                 released_bytes:u64 released_chunks:u32
// `tip` is the commit tip of store/view/delta_codec.cc, `record` the learner of
// store/rows/learner_directory.cc.
#include "feed/version_end.h"

#include "base/bytes.h"
#include "feed/record.h"

namespace tacit::feed {
namespace {

constexpr uint32_t kPartitionsMost = 1 << 20;
constexpr uint64_t kChunksBytesMost = uint64_t{kChunksMost} * kPayloadBytesMost;

LearnerAtEnd GetLearnerAtEnd(ByteReader& reader) {
  LearnerAtEnd learner;
  learner.key = reader.Get<uint16_t>();
  learner.record = reader.GetString();
  learner.step = reader.Get<uint32_t>();
  learner.dense_floats = reader.Get<uint64_t>();
  learner.dense_chunks = reader.Get<uint32_t>();
  learner.released_bytes = reader.Get<uint64_t>();
  learner.released_chunks = reader.Get<uint32_t>();
  return learner;
}

// Chunks are there where something is in them, and not too many.
bool ChunksFit(uint64_t amount, uint64_t amount_most, uint32_t chunks) {
  return (amount == 0) == (chunks == 0) && chunks <= kChunksMost && amount <= amount_most &&
         chunks <= amount;
}

bool Fits(const VersionEnd& end) {
  if (end.partitions == 0 || end.partitions > kPartitionsMost || end.partition >= end.partitions ||
      end.records > end.all_records || end.previous >= end.tip.seq || end.whole_since > end.tip.seq)
    return false;
  for (size_t i = 0; i < end.learners.size(); ++i) {
    const LearnerAtEnd& learner = end.learners[i];
    if (i > 0 && learner.key <= end.learners[i - 1].key) return false;
    if (!ChunksFit(learner.dense_floats, kChunksBytesMost / sizeof(float), learner.dense_chunks) ||
        !ChunksFit(learner.released_bytes, kChunksBytesMost, learner.released_chunks))
      return false;
  }
  return true;
}

}  // namespace

std::string EncodeVersionEnd(const VersionEnd& end) {
  ByteWriter writer;
  writer.PutArray(std::span<const uint8_t>(end.feed)).Put(end.partition).Put(end.partitions);
  writer.Put(end.previous.value).Put(end.whole_since.value);
  writer.PutArray(std::span<const uint8_t>(end.term)).Put(end.time_ms).Put(end.records);
  writer.Put(end.checksum).Put(end.all_records).Put(end.all_bytes);
  writer.PutString(store::EncodeTip(end.tip)).Put(static_cast<uint16_t>(end.learners.size()));
  for (const LearnerAtEnd& learner : end.learners)
    writer.Put(learner.key)
        .PutString(learner.record)
        .Put(learner.step)
        .Put(learner.dense_floats)
        .Put(learner.dense_chunks)
        .Put(learner.released_bytes)
        .Put(learner.released_chunks);
  if (end.mark) writer.Put(end.mark->low).Put(end.mark->high);
  return std::move(writer).Take();
}

Result<VersionEnd> DecodeVersionEnd(std::string_view payload) {
  ByteReader reader(payload);
  VersionEnd end;
  reader.GetArray(std::span<uint8_t>(end.feed));
  end.partition = reader.Get<uint32_t>();
  end.partitions = reader.Get<uint32_t>();
  end.previous = CommitSeq(reader.Get<uint64_t>());
  end.whole_since = CommitSeq(reader.Get<uint64_t>());
  reader.GetArray(std::span<uint8_t>(end.term));
  end.time_ms = reader.Get<int64_t>();
  end.records = reader.Get<uint64_t>();
  end.checksum = reader.Get<uint64_t>();
  end.all_records = reader.Get<uint64_t>();
  end.all_bytes = reader.Get<uint64_t>();
  TACIT_ASSIGN(end.tip, store::DecodeTip(reader.GetString()));
  const auto learners = reader.Get<uint16_t>();
  for (uint16_t i = 0; i < learners && reader.ok(); ++i)
    end.learners.push_back(GetLearnerAtEnd(reader));
  if (reader.ok() && !reader.at_end()) {
    end.mark.emplace();
    end.mark->low = reader.Get<uint64_t>();
    end.mark->high = reader.Get<uint64_t>();
  }
  if (!reader.at_end() || !Fits(end))
    return Fail(ErrorCode::kCorruption, "is a mark that cannot be read: its fields do not fit");
  return end;
}

}  // namespace tacit::feed
