#include "lab/clicks/event_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/hash.h"
#include "base/text.h"
#include "event/codec.h"
#include "wiring/assembly.h"
#include "wiring/plans/codec.h"
#include "wiring/plans/source.h"

namespace tacit::lab {
namespace {

// Extracts the part of a run of records within [begin, end). REQUIRES that they overlap.
void Slice(const event::RawRecords& frame, const event::Batch& batch, uint64_t begin, uint64_t end,
           event::RawRecords* frame_part, event::Batch* part) {
  frame_part->Clear();
  frame_part->partition = frame.partition;
  frame_part->first_offset = std::max(begin, frame.first_offset);
  frame_part->end.resize(std::min(end, frame.end_offset()) - frame_part->first_offset);
  for (const event::PublicCut& cut : frame.cuts)
    if (cut.offset > begin && cut.offset <= end) frame_part->cuts.push_back(cut);
  const auto place = [&](uint64_t offset) {
    return static_cast<size_t>(std::lower_bound(batch.offset.begin(), batch.offset.end(), offset) -
                               batch.offset.begin());
  };
  *part = EmptyLike(batch);
  part->AppendRange(batch, place(begin), place(end));
}

// An experiment compares learners on all records of its files: not on those of a corrupt file, nor
// without a record that the source does not hold in memory. A file that is cut fails the source.
Status CheckWhole(const event::RawRecords& records) {
  if (records.faults.empty()) return {};
  const event::RawRecords::Fault& fault = records.faults.front();
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}:{}: {}; an experiment is made on whole logs: mend the file, or raise "
                          "source.max_record_bytes for long records",
                          records.origin, records.origin_line + fault.index, fault.reason));
}

bool OneRowASlot(const event::Batch& batch) {
  for (size_t i = 0; i < batch.slot_end.size(); ++i)
    if (batch.slot_end[i] != i + 1) return false;
  return true;
}

}  // namespace

uint64_t EventLog::Piece::bytes() const {
  return label.size() + 4 * (offset.size() + dense.size() + row.size() + slot_end.size());
}

void EventLog::Piece::Expand(const event::FeatureTransform& transform, event::RawRecords* frame,
                             event::Batch* batch) const {
  frame->Clear();
  frame->first_offset = first_offset;
  frame->end.assign(records, 0);
  frame->cuts = cuts;
  transform.StartBatch(batch);
  for (const uint32_t o : offset) batch->offset.push_back(first_offset + o);
  batch->timestamp_ms.assign(offset.size(), 0);
  batch->label.assign(label.begin(), label.end());
  batch->dense = dense;
  batch->row.assign(row.begin(), row.end());
  batch->slot_end = slot_end;
  if (!slot_end.empty()) return;
  batch->slot_end.resize(row.size());
  for (size_t i = 0; i < row.size(); ++i) batch->slot_end[i] = static_cast<uint32_t>(i + 1);
}

Result<std::unique_ptr<EventLog>> EventLog::Open(const config::Source& log,
                                                 const event::FeatureTransform& transform,
                                                 uint64_t cache_bytes_max) {
  std::unique_ptr<EventLog> opened(new EventLog(log, transform));
  if (transform.row_space().rows() > std::numeric_limits<uint32_t>::max()) opened->cached_ = false;
  const auto keep = [&](const event::RawRecords& frame, const event::Batch& batch) -> Result<bool> {
    opened->Keep(frame, batch, cache_bytes_max);
    return true;
  };
  std::string identity;
  TACIT_RETURN_IF_ERROR(opened->Read(keep, &identity, &opened->dead_letters_));
  opened->identity_ = ToHex(Sha256().Update(identity).Finish());
  return opened;
}

void EventLog::Keep(const event::RawRecords& frame, const event::Batch& batch,
                    uint64_t cache_bytes_max) {
  records_ = frame.end_offset();
  for (const event::PublicCut& cut : frame.cuts)
    if (cut.kind == event::PublicCut::Kind::kFileEnd) file_ends_.push_back(cut.offset);
  if (!cached_) return;
  Piece piece;
  piece.first_offset = frame.first_offset;
  piece.records = frame.size();
  piece.cuts = frame.cuts;
  for (const uint64_t offset : batch.offset)
    piece.offset.push_back(static_cast<uint32_t>(offset - frame.first_offset));
  piece.label.assign(batch.label.begin(), batch.label.end());
  piece.dense = batch.dense;
  piece.row.assign(batch.row.begin(), batch.row.end());
  if (!OneRowASlot(batch)) piece.slot_end = batch.slot_end;
  cache_bytes_ += piece.bytes();
  pieces_.push_back(std::move(piece));
  if (cache_bytes_ <= cache_bytes_max) return;
  cached_ = false;
  pieces_ = {};
  cache_bytes_ = 0;
}

Status EventLog::Read(const Take& take, std::string* identity, DeadLetters* dead) const {
  TACIT_ASSIGN(const auto source, wiring::OpenSource(log_));
  std::vector<stream::PartitionOffset> start;
  for (const int32_t partition : source->partitions()) start.push_back({partition, 0});
  TACIT_RETURN_IF_ERROR(source->Seek(start));
  const auto codec = wiring::MakeCodec(log_, transform_);
  event::RawRecords records;
  event::Batch batch;
  std::vector<event::DeadLetter> letters;
  while (true) {
    TACIT_ASSIGN(const stream::PollOutcome outcome,
                 source->Poll(std::chrono::milliseconds(100), &records));
    if (outcome == stream::PollOutcome::kEnd) break;
    if (outcome == stream::PollOutcome::kNothing) continue;
    TACIT_RETURN_IF_ERROR(CheckWhole(records));
    transform_.StartBatch(&batch);
    letters.clear();
    codec->Decode(records, &batch, &letters);
    if (dead->count == 0 && !letters.empty())
      dead->first = fmt::format("{}:{}: {}", letters[0].origin, letters[0].line, letters[0].reason);
    dead->count += letters.size();
    TACIT_ASSIGN(const bool more, take(records, batch));
    if (!more) return {};
  }
  *identity = source->Identity();
  return {};
}

Status EventLog::ForEach(uint64_t begin, uint64_t end, const Take& take) const {
  event::RawRecords frame_part;
  event::Batch part;
  const auto take_part = [&](const event::RawRecords& frame,
                             const event::Batch& batch) -> Result<bool> {
    if (frame.end_offset() <= begin) return true;
    if (frame.first_offset > end) return false;  // its file-end cut may be at `end`
    if (frame.first_offset >= begin && frame.end_offset() <= end) return take(frame, batch);
    Slice(frame, batch, begin, end, &frame_part, &part);
    return take(frame_part, part);
  };
  if (!cached_) {
    std::string identity;
    DeadLetters dead;
    return Read(take_part, &identity, &dead);
  }
  event::RawRecords frame;
  event::Batch batch;
  for (const Piece& piece : pieces_) {
    if (piece.first_offset + piece.records <= begin && piece.records > 0) continue;
    if (piece.first_offset > end) break;
    piece.Expand(transform_, &frame, &batch);
    TACIT_ASSIGN(const bool more, take_part(frame, batch));
    if (!more) break;
  }
  return {};
}

}  // namespace tacit::lab
