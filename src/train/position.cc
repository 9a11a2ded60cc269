#include "train/position.h"

#include "base/bytes.h"

namespace tacit::train {
namespace {

constexpr uint8_t kFormat = 2;
constexpr uint32_t kMaxPartitions = 1 << 20;

void PutRanges(const std::vector<OffsetRange>& ranges, ByteWriter* out) {
  out->Put(static_cast<uint32_t>(ranges.size()));
  for (const OffsetRange& range : ranges) out->Put(range.partition).Put(range.begin).Put(range.end);
}

bool GetRanges(ByteReader* in, std::vector<OffsetRange>* ranges) {
  const auto count = in->Get<uint32_t>();
  if (count > kMaxPartitions) return false;
  ranges->resize(count);
  for (OffsetRange& range : *ranges) {
    range.partition = in->Get<int32_t>();
    range.begin = in->Get<uint64_t>();
    range.end = in->Get<uint64_t>();
  }
  return in->ok();
}

}  // namespace

std::string EncodePosition(const stream::Position& position) {
  ByteWriter out;
  out.Put(kFormat).Put(position.pass).Put(position.period);
  out.Put(position.step).Put(position.period_step).Put(position.period_marks);
  PutRanges(position.period_start, &out);
  PutRanges(position.next, &out);
  return std::move(out).Take();
}

Result<stream::Position> DecodePosition(std::string_view bytes) {
  stream::Position position;
  if (bytes.empty()) return position;
  ByteReader in(bytes);
  const auto format = in.Get<uint8_t>();
  for (uint64_t* number : {&position.pass, &position.period, &position.step, &position.period_step})
    *number = in.Get<uint64_t>();
  if (format > 1) position.period_marks = in.Get<uint64_t>();
  const bool ranges =
      GetRanges(&in, &position.period_start) && GetRanges(&in, &position.next) && in.at_end();
  if (format == 0 || format > kFormat || !ranges)
    return Fail(ErrorCode::kCorruption, "a learner's stored position is not in format 1 or 2");
  return position;
}

}  // namespace tacit::train
