#include "lab/part_of_log.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace tacit::lab {
namespace {

using event::RawRecords;
using std::chrono::milliseconds;
constexpr milliseconds kPatience(1000);

// Leaves the records with offsets in [from, to), and the cuts behind the first and up to the last.
// A part ends as a file of its records would.
void Keep(uint64_t from, uint64_t to, RawRecords* records) {
  const uint64_t first = records->first_offset;
  const uint64_t begin = std::clamp(from, first, records->end_offset());
  const uint64_t end = std::clamp(to, begin, records->end_offset());
  std::erase_if(records->cuts,
                [&](const event::PublicCut& cut) { return cut.offset <= from || cut.offset > to; });
  const bool ends = end == to && end > from;
  if (ends && std::ranges::none_of(records->cuts, [&](const event::PublicCut& cut) {
        return cut.offset == to && cut.kind == event::PublicCut::Kind::kFileEnd;
      }))
    records->cuts.push_back({.kind = event::PublicCut::Kind::kFileEnd,
                             .offset = to,
                             .name = std::filesystem::path(records->origin).filename()});
  if (begin == first && end == records->end_offset()) return;
  RawRecords kept;
  kept.partition = records->partition;
  kept.first_offset = begin;
  kept.origin = std::move(records->origin);
  kept.origin_line = records->origin_line == 0 ? 0 : records->origin_line + (begin - first);
  kept.cuts = std::move(records->cuts);
  for (uint64_t offset = begin; offset < end; ++offset) {
    const size_t i = offset - first;
    kept.bytes += (*records)[i];
    kept.end.push_back(static_cast<uint32_t>(kept.bytes.size()));
    if (!records->timestamp_ms.empty()) kept.timestamp_ms.push_back(records->timestamp_ms[i]);
    if (!records->event_id.empty()) kept.event_id.Append(records->event_id[i]);
  }
  for (RawRecords::Fault& fault : records->faults) {
    if (first + fault.index < begin || first + fault.index >= end) continue;
    fault.index -= static_cast<uint32_t>(begin - first);
    kept.faults.push_back(std::move(fault));
  }
  *records = std::move(kept);
}

class LogPart final : public stream::Source {
 public:
  LogPart(std::unique_ptr<stream::Source> log, uint64_t from, uint64_t to)
      : log_(std::move(log)), from_(from), to_(to) {}

  std::string topic() const override { return log_->topic(); }
  std::vector<int32_t> partitions() const override { return log_->partitions(); }
  Result<stream::PollOutcome> Poll(milliseconds timeout, RawRecords* records) override {
    for (;;) {
      records->Clear();
      if (at_ >= to_) return stream::PollOutcome::kEnd;
      TACIT_ASSIGN(const stream::PollOutcome outcome, log_->Poll(timeout, records));
      if (outcome != stream::PollOutcome::kRecords) return outcome;
      at_ = records->end_offset();
      Keep(from_, to_, records);
      if (records->size() > 0 || !records->cuts.empty()) return outcome;
    }
  }
  Status Seek(std::span<const stream::PartitionOffset> positions) override {
    at_ = positions.empty() ? 0 : positions[0].first();
    return log_->Seek(positions);
  }
  void Pause(std::span<const int32_t> partitions) override { log_->Pause(partitions); }
  void Resume(std::span<const int32_t> partitions) override { log_->Resume(partitions); }
  void Advise(std::span<const stream::PartitionOffset> committed,
              const stream::StoreClaim& store) override {
    log_->Advise(committed, store);
  }
  stream::SourceHealth health() const override { return log_->health(); }
  uint64_t RecordsAfter(std::span<const stream::PartitionOffset> positions) const override {
    return to_ - std::clamp(positions.empty() ? 0 : positions[0].first(), from_, to_);
  }
  std::string Identity() const override { return log_->Identity(); }
  Status VerifyIdentity(const std::string& stored) override { return log_->VerifyIdentity(stored); }

 private:
  const std::unique_ptr<stream::Source> log_;
  const uint64_t from_, to_;
  uint64_t at_ = 0;  // the next offset that the log delivers
};

}  // namespace

std::unique_ptr<stream::Source> PartOfLog(std::unique_ptr<stream::Source> log, uint64_t from,
                                          uint64_t to) {
  return std::make_unique<LogPart>(std::move(log), from, to);
}

Result<uint64_t> CountOffsets(stream::Source& log, uint64_t* files) {
  RawRecords records;
  *files = 0;
  for (uint64_t count = 0;;) {
    TACIT_ASSIGN(const stream::PollOutcome outcome, log.Poll(kPatience, &records));
    if (outcome == stream::PollOutcome::kEnd) return count;
    if (outcome != stream::PollOutcome::kRecords) continue;
    count = records.end_offset();
    *files += records.origin_line == 1 && records.size() > 0 ? 1 : 0;
  }
}

}  // namespace tacit::lab
