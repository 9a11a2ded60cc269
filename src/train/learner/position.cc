#include "train/learner/position.h"

#include <span>

#include "base/bytes.h"

namespace tacit::train {
namespace {

constexpr uint8_t kFormat = 1;
constexpr uint8_t kAllocationFormat = 1;
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
  out.Put(position.step).Put(position.period_step).Put(position.period_cuts);
  out.Put(position.begun_anew).Put(position.longest_period);
  out.Put(position.reading).Put(position.reading_since);
  PutRanges(position.period_start, &out);
  PutRanges(position.next, &out);
  return std::move(out).Take();
}

Result<stream::Position> DecodePosition(std::string_view bytes) {
  stream::Position position;
  if (bytes.empty()) return position;
  ByteReader in(bytes);
  const auto format = in.Get<uint8_t>();
  for (uint64_t* number : {&position.pass, &position.period, &position.step, &position.period_step,
                           &position.period_cuts, &position.begun_anew, &position.longest_period,
                           &position.reading, &position.reading_since})
    *number = in.Get<uint64_t>();
  const bool ranges =
      GetRanges(&in, &position.period_start) && GetRanges(&in, &position.next) && in.at_end();
  if (format != kFormat || !ranges)
    return Fail(ErrorCode::kCorruption, "a learner's stored position is not in format 1");
  return position;
}

std::string EncodeAllocation(const std::optional<stream::PeriodAllocation>& allocation,
                             double noise_multiplier) {
  if (!allocation) return {};
  ByteWriter out;
  out.Put(kAllocationFormat).PutArray(std::span<const uint8_t>(allocation->key));
  out.Put(allocation->block_steps).Put(allocation->period_steps).Put(noise_multiplier);
  return std::move(out).Take();
}

Result<std::optional<stream::PeriodAllocation>> DecodeAllocation(std::string_view bytes,
                                                                 double noise_multiplier) {
  std::optional<stream::PeriodAllocation> allocation;
  if (bytes.empty()) return allocation;
  ByteReader in(bytes);
  const auto format = in.Get<uint8_t>();
  allocation.emplace();
  in.GetArray(std::span<uint8_t>(allocation->key));
  allocation->block_steps = in.Get<uint64_t>();
  allocation->period_steps = in.Get<uint64_t>();
  const auto charged = in.Get<double>();
  if (format != kAllocationFormat || !in.at_end())
    return Fail(ErrorCode::kCorruption, "a period's stored allocation is not in format 1");
  if (charged != noise_multiplier) allocation.reset();
  return allocation;
}

}  // namespace tacit::train
