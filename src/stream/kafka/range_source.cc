#include "stream/kafka/range_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/threads/mutex.h"
#include "stream/kafka/range_reader.h"
#include "stream/kafka/reader.h"

namespace tacit::stream {
namespace {

// No partition is begun here, so that the reader goes to where a range begins.
constexpr uint64_t kNowhere = PartitionOffset::kNowhere;

class KafkaRanges final : public RangeSource {
 public:
  KafkaRanges(KafkaSourceOptions options, std::unique_ptr<event::Envelope> envelope)
      : options_(std::move(options)),
        clock_(options_.clock == nullptr ? system_clock_ : *options_.clock),
        envelope_(std::move(envelope)),
        reader_(options_),
        ranges_reader_({.topic = options_.topic, .max_record_bytes = options_.max_record_bytes},
                       clock_, envelope_.get()) {}
  ~KafkaRanges() override { Close(); }

  Status Init() { return reader_.MakeClient(); }

  void SetRanges(std::vector<OffsetRange> ranges) override { ranges_ = std::move(ranges); }
  const std::vector<ReadRange>& read() const override { return read_; }

  std::string topic() const override { return options_.topic; }
  std::vector<int32_t> partitions() const override;
  Status Seek(std::span<const PartitionOffset>) override;
  Result<PollOutcome> Poll(Milliseconds timeout, event::RawRecords* records) override;
  void Pause(std::span<const int32_t>) override { paused_ = true; }
  void Resume(std::span<const int32_t>) override { paused_ = false; }
  void Advise(std::span<const PartitionOffset>, const StoreClaim&) override {}
  SourceHealth health() const override {
    const MutexLock lock(mutex_);
    return {.connected = alert_.empty(), .alert = alert_};
  }
  uint64_t RecordsAfter(std::span<const PartitionOffset>) const override { return 0; }
  std::string Identity() const override { return ""; }
  Status VerifyIdentity(const std::string&) override { return {}; }

 private:
  enum class Stage : uint8_t { kNext, kBefore, kRange };

  Result<PollOutcome> PollOpen(Milliseconds timeout, event::RawRecords* records);
  // Begins the range that is next: asks for what is there, and goes to the record before it.
  Status BeginRange();
  Status LookBefore();
  Status EndStage();
  void End(event::RawRecords* records);
  void Close();
  void SetAlert(std::string alert) {
    const MutexLock lock(mutex_);
    alert_ = std::move(alert);
  }

  const SystemClock system_clock_;
  const KafkaSourceOptions options_;
  const Clock& clock_;
  const std::unique_ptr<event::Envelope> envelope_;
  KafkaReader reader_;
  KafkaRangeReader ranges_reader_;
  std::vector<OffsetRange> ranges_;
  std::vector<ReadRange> read_;
  Stage stage_ = Stage::kNext;
  ReadRange reading_;
  uint64_t first_ = 0;        // that the partition still has
  uint64_t looked_from_ = 0;  // where the look for the record before the range has begun
  bool ended_ = false, paused_ = false;
  mutable Mutex mutex_;
  std::string alert_ TACIT_GUARDED_BY(mutex_);
};

std::vector<int32_t> KafkaRanges::partitions() const {
  std::vector<int32_t> partitions;
  for (const OffsetRange& range : ranges_)
    if (partitions.empty() || partitions.back() != range.partition)
      partitions.push_back(range.partition);
  return partitions;
}

// A client stays open from slice to slice.
Status KafkaRanges::Seek(std::span<const PartitionOffset>) {
  if (stage_ != Stage::kNext) Close();
  read_.clear();
  stage_ = Stage::kNext;
  ended_ = paused_ = false;
  return {};
}

void KafkaRanges::Close() {
  ranges_reader_.Clear();
  reader_.Close();
  stage_ = Stage::kNext;
}

Result<PollOutcome> KafkaRanges::Poll(Milliseconds timeout, event::RawRecords* records) {
  records->Clear();
  auto polled = PollOpen(timeout, records);
  if (polled) return polled;
  SetAlert(polled.error().message);
  records->Clear();
  Close();
  return polled;
}

Result<PollOutcome> KafkaRanges::PollOpen(Milliseconds timeout, event::RawRecords* records) {
  const KafkaRangeReader::Deadline deadline = std::chrono::steady_clock::now() + timeout;
  if (!reader_.open()) TACIT_RETURN_IF_ERROR(reader_.OpenIdle());
  TACIT_RETURN_IF_ERROR(reader_.Serve());
  if (paused_) {
    std::this_thread::sleep_for(timeout);
    return PollOutcome::kNothing;
  }
  while (read_.size() < ranges_.size()) {
    if (stage_ == Stage::kNext) TACIT_RETURN_IF_ERROR(BeginRange());
    std::optional<LastRecord> last;
    TACIT_ASSIGN(const auto outcome, ranges_reader_.Take(reader_, Left(deadline), records, &last));
    if (last) (stage_ == Stage::kBefore ? reading_.before : reading_.last) = last;
    if (outcome == KafkaRangeReader::Outcome::kNothing) {
      SetAlert(ranges_reader_.stall());
      return PollOutcome::kNothing;
    }
    if (outcome == KafkaRangeReader::Outcome::kDone)
      TACIT_RETURN_IF_ERROR(EndStage());
    else if (stage_ == Stage::kRange)
      return PollOutcome::kRecords;
    else
      records->Clear();
  }
  if (std::exchange(ended_, true)) return PollOutcome::kEnd;
  SetAlert("");
  End(records);
  return PollOutcome::kRecords;
}

Status KafkaRanges::BeginRange() {
  const OffsetRange& range = ranges_[read_.size()];
  TACIT_ASSIGN(const auto spans, reader_.Spans({&range.partition, 1}));
  first_ = spans.at(0).begin;
  if (range.begin < first_)
    return Fail(ErrorCode::kUnavailable,
                fmt::format("topic '{}' partition {}: offset {} is gone, the first is {}",
                            options_.topic, range.partition, range.begin, first_));
  reading_ = {};
  reading_.range = range;
  looked_from_ = range.begin;
  ranges_reader_.Start({.partition = range.partition, .offset = kNowhere});
  return LookBefore();
}

// Looks for the record before the range, each time in twice as many offsets: there may be none at
// the offsets just before it.
Status KafkaRanges::LookBefore() {
  const OffsetRange& range = reading_.range;
  if (reading_.before || looked_from_ == first_) {
    stage_ = Stage::kRange;
    return ranges_reader_.Begin(reader_, range);
  }
  const uint64_t further = std::min(2 * (range.begin - looked_from_) + 1, range.begin - first_);
  OffsetRange look{range.partition, range.begin - further, looked_from_};
  looked_from_ = look.begin;
  stage_ = Stage::kBefore;
  return ranges_reader_.Begin(reader_, look);
}

Status KafkaRanges::EndStage() {
  if (stage_ == Stage::kBefore) return LookBefore();
  if (!reading_.last) reading_.last = reading_.before;
  reading_.empty = ranges_reader_.empty();
  read_.push_back(reading_);
  stage_ = Stage::kNext;
  ranges_reader_.Find(reading_.range.partition)->DropFetched();
  return reader_.Leave(reading_.range.partition);
}

// One range a partition.
void KafkaRanges::End(event::RawRecords* records) {
  for (const OffsetRange& range : ranges_) {
    if (!records->period.empty() && records->period.back().partition == range.partition)
      records->period.back().end = range.end;
    else
      records->period.push_back(range);
  }
  if (ranges_.empty()) return;
  records->partition = ranges_.back().partition;
  records->first_offset = ranges_.back().end;
}

}  // namespace

Result<std::unique_ptr<RangeSource>> OpenKafkaRanges(KafkaSourceOptions options,
                                                     std::unique_ptr<event::Envelope> envelope) {
  TACIT_CHECK(!options.topic.empty(), "ranges of a topic");
  auto source = std::make_unique<KafkaRanges>(std::move(options), std::move(envelope));
  TACIT_RETURN_IF_ERROR(source->Init());
  return source;
}

}  // namespace tacit::stream
