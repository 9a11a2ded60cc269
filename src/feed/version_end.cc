// The notation is base/bytes.h's.
//     mark     := feed:byte*16 partition:u32 partitions:u32 previous:u64 whole_since:u64
//                 term:byte*16 time:i64 records:u64 checksum:u64 all_records:u64 all_bytes:u64
//                 tip:string learners:u16 learner*learners
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

MarkedLearner GetMarkedLearner(ByteReader& reader) {
  MarkedLearner learner;
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

bool Fits(const Mark& mark) {
  if (mark.partitions == 0 || mark.partitions > kPartitionsMost ||
      mark.partition >= mark.partitions || mark.records > mark.all_records ||
      mark.previous >= mark.tip.seq || mark.whole_since > mark.tip.seq)
    return false;
  for (size_t i = 0; i < mark.learners.size(); ++i) {
    const MarkedLearner& learner = mark.learners[i];
    if (i > 0 && learner.key <= mark.learners[i - 1].key) return false;
    if (!ChunksFit(learner.dense_floats, kChunksBytesMost / sizeof(float), learner.dense_chunks) ||
        !ChunksFit(learner.released_bytes, kChunksBytesMost, learner.released_chunks))
      return false;
  }
  return true;
}

}  // namespace

std::string EncodeMark(const Mark& mark) {
  ByteWriter writer;
  writer.PutArray(std::span<const uint8_t>(mark.feed)).Put(mark.partition).Put(mark.partitions);
  writer.Put(mark.previous.value).Put(mark.whole_since.value);
  writer.PutArray(std::span<const uint8_t>(mark.term)).Put(mark.time_ms).Put(mark.records);
  writer.Put(mark.checksum).Put(mark.all_records).Put(mark.all_bytes);
  writer.PutString(store::EncodeTip(mark.tip)).Put(static_cast<uint16_t>(mark.learners.size()));
  for (const MarkedLearner& learner : mark.learners)
    writer.Put(learner.key)
        .PutString(learner.record)
        .Put(learner.step)
        .Put(learner.dense_floats)
        .Put(learner.dense_chunks)
        .Put(learner.released_bytes)
        .Put(learner.released_chunks);
  return std::move(writer).Take();
}

Result<Mark> DecodeMark(std::string_view payload) {
  ByteReader reader(payload);
  Mark mark;
  reader.GetArray(std::span<uint8_t>(mark.feed));
  mark.partition = reader.Get<uint32_t>();
  mark.partitions = reader.Get<uint32_t>();
  mark.previous = CommitSeq(reader.Get<uint64_t>());
  mark.whole_since = CommitSeq(reader.Get<uint64_t>());
  reader.GetArray(std::span<uint8_t>(mark.term));
  mark.time_ms = reader.Get<int64_t>();
  mark.records = reader.Get<uint64_t>();
  mark.checksum = reader.Get<uint64_t>();
  mark.all_records = reader.Get<uint64_t>();
  mark.all_bytes = reader.Get<uint64_t>();
  TACIT_ASSIGN(mark.tip, store::DecodeTip(reader.GetString()));
  const auto learners = reader.Get<uint16_t>();
  for (uint16_t i = 0; i < learners && reader.ok(); ++i)
    mark.learners.push_back(GetMarkedLearner(reader));
  if (!reader.at_end() || !Fits(mark))
    return Fail(ErrorCode::kCorruption, "is a mark that cannot be read: its fields do not fit");
  return mark;
}

}  // namespace tacit::feed
