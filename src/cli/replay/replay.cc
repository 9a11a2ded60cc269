#include "cli/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/files/log.h"
#include "cli/replay/pacer.h"
#include "event/raw_records.h"
#include "stream/kafka/topic_reader.h"
#include "stream/log/line_reader.h"

namespace tacit::cli {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kSlice(100);
constexpr milliseconds kAnswer(30'000);  // how long brokers may take to answer at the start
constexpr uint64_t kTailRecords = 1000;
constexpr size_t kLinesPerRead = 1000;
constexpr size_t kBytesPerRead = 1 << 20;
constexpr double kDayMs = 24 * 3'600'000.0;
constexpr uint64_t kFaultsTold = 10;

// A broker that does not answer is a failure of this run; kUnavailable stands for a store's
// refusal.
Error AtRunTime(Error error) {
  if (error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kRefused)
    error.code = ErrorCode::kIo;
  return error;
}

class Replayer {
 public:
  Replayer(const ReplayOptions& options, const std::vector<ReplayFile>& files, LineFields& fields,
           const Clock& clock, const std::function<bool(const ReplayView&)>& watch)
      : options_(options),
        files_(files),
        fields_(fields),
        clock_(clock),
        watch_(watch),
        history_(files),
        pacer_({.rate = options.rate, .speed = options.speed}, clock) {
    for (const ReplayFile& file : files) raw_total_ += file.raw_bytes;
  }

  Result<ReplaySummary> Run() {
    TACIT_RETURN_IF_ERROR(Begin());
    const Clock::TimePoint start = clock_.Now();
    for (size_t file = 0; file < files_.size() && !stopped_; ++file) {
      TACIT_RETURN_IF_ERROR(SendFile(file));
      raw_before_ += files_[file].raw_bytes;
    }
    TACIT_RETURN_IF_ERROR(Flush());
    summary_.sent = producer_->records_acked();
    summary_.seconds = Seconds(clock_.Now() - start);
    summary_.complete = !stopped_;
    return summary_;
  }

 private:
  Status Begin() {
    auto producer = stream::KafkaProducer::Open({.properties = options_.properties,
                                                 .topic = options_.topic,
                                                 .record_bytes_max = options_.max_record_bytes});
    if (!producer) return Fail(std::move(producer.error()));
    producer_ = std::move(*producer);
    auto partitions = producer_->CountPartitions(kAnswer);
    if (!partitions) return Fail(AtRunTime(std::move(partitions.error())));
    summary_.partitions = *partitions;
    Status read =
        stream::ReadKafkaTail(options_.properties, options_.topic, kTailRecords, kAnswer,
                              [this](const stream::KafkaTopicRecord& record) -> Status {
                                for (const event::MessageHeader& header : record.headers)
                                  if (header.name == kReplayHeaderName)
                                    if (const auto parsed = ParseReplayHeader(header.value))
                                      history_.Note(record.partition, *parsed);
                                return {};
                              });
    if (!read)
      return Fail(AtRunTime(std::move(read.error()).Context("looking for what is there already")));
    if (options_.again) return {};
    Status same = history_.Check(*partitions, options_.key);
    if (!same) return Fail(AtRunTime(std::move(same.error())));
    return {};
  }

  Status SendFile(size_t index) {
    const ReplayFile& file = files_[index];
    TACIT_ASSIGN(file_lines_,
                 options_.speed > 0 && !fields_.timed() ? CountLines(file) : Result<uint64_t>(0));
    TACIT_ASSIGN(auto input, stream::InputFile::Open(file.path));
    stream::LineReader reader(std::move(input), options_.max_record_bytes);
    event::RawRecords records;
    for (uint64_t line = 1; !stopped_; line += records.size()) {
      records.Clear();
      if (Status read = reader.Read(kLinesPerRead, kBytesPerRead, &records); !read) {
        if (reader.file().waiting()) {
          TACIT_RETURN_IF_ERROR(Look());
          continue;
        }
        TACIT_RETURN_IF_ERROR(Flush());
        return read;
      }
      if (records.size() == 0) return {};
      raw_now_ = raw_before_ + reader.file().raw_read();
      TACIT_RETURN_IF_ERROR(SendLines(index, line, records));
    }
    return {};
  }

  // If lines have no times, a day's lines are spread evenly over it, so their number must be known.
  Result<uint64_t> CountLines(const ReplayFile& file) {
    TACIT_ASSIGN(auto input, stream::InputFile::Open(file.path));
    if (input->is_standard_input())
      return Fail(ErrorCode::kInvalidArgument,
                  "--speed: lines without times are spread evenly over a day, so their number must "
                  "be known; standard input comes once");
    return stream::LineReader(std::move(input), options_.max_record_bytes).Skip(UINT64_MAX);
  }

  Status SendLines(size_t file, uint64_t first_line, const event::RawRecords& records) {
    auto fault = records.faults.begin();
    for (size_t i = 0; i < records.size() && !stopped_; ++i) {
      const ReplayPlace place{file, first_line + i};
      ++summary_.lines;
      if (fault != records.faults.end() && fault->index == i) {
        NotSent(place, (fault++)->reason);
        continue;
      }
      TACIT_RETURN_IF_ERROR(SendLine(place, records[i]));
    }
    return {};
  }

  Status SendLine(const ReplayPlace& place, std::string_view line) {
    fields_.Read(line);
    const auto key = fields_.key();
    // A line without a key has a fixed partition too; otherwise a second run could not know whether
    // the line is already there.
    const int32_t partition =
        key ? stream::KafkaProducer::PartitionOfKey(*key, summary_.partitions)
            : static_cast<int32_t>((place.file + place.line) %
                                   static_cast<uint64_t>(summary_.partitions));
    if (!options_.again && place <= history_.Last(partition)) {
      ++summary_.already_there;
      return Look();
    }
    TACIT_RETURN_IF_ERROR(WaitUntil(pacer_.Next(TimeOf(place))));
    if (stopped_) return {};
    return Send(place, partition, key, line);
  }

  Status Send(const ReplayPlace& place, int32_t partition, std::optional<std::string_view> key,
              std::string_view line) {
    const ReplayFile& file = files_[place.file];
    const std::string text = ReplayHeaderText({.name = file.name,
                                               .line = place.line,
                                               .id = file.id,
                                               .run = run(),
                                               .partitions = summary_.partitions,
                                               .key = options_.key});
    const event::MessageHeader header{kReplayHeaderName, text};
    std::string_view value = line;
    if (!options_.frame.empty()) {
      framed_ = options_.frame;
      framed_ += line;
      value = framed_;
    }
    for (;;) {
      const Status sent = producer_->Send({.partition = partition,
                                           .key = key,
                                           .value = value,
                                           .headers = std::span(&header, 1),
                                           .tag = PackTag(place)},
                                          kSlice);
      if (!sent && sent.error().code != ErrorCode::kUnavailable)
        return Fail(AtRunTime(sent.error()));
      if (sent) break;
      TACIT_RETURN_IF_ERROR(Look());
      if (stopped_) return {};
    }
    summary_.bytes += value.size();
    return Look();
  }

  // With --again, the run's number is one above the last run found in the topic.
  uint64_t run() const {
    if (options_.again) return history_.run() + 1;
    return std::max<uint64_t>(history_.run(), 1);
  }

  static uint64_t PackTag(const ReplayPlace& place) {
    return (static_cast<uint64_t>(place.file) << 48) | place.line;
  }

  std::optional<double> TimeOf(const ReplayPlace& place) const {
    if (options_.speed <= 0) return std::nullopt;
    if (fields_.timed()) {
      const auto own = fields_.timestamp_ms();
      return own ? std::optional<double>(static_cast<double>(*own)) : std::nullopt;
    }
    return kDayMs * (static_cast<double>(place.file) +
                     static_cast<double>(place.line - 1) / static_cast<double>(file_lines_));
  }

  Status WaitUntil(Clock::TimePoint due) {
    for (;;) {
      const auto left = due - clock_.Now();
      if (left <= Clock::Duration(0)) return {};
      producer_->Wait(
          std::clamp(std::chrono::duration_cast<milliseconds>(left), milliseconds(1), kSlice));
      TACIT_RETURN_IF_ERROR(Look());
      if (stopped_) return {};
    }
  }

  // Waits for all records in flight; for a few seconds only if the replay was stopped.
  Status Flush() {
    const Clock::TimePoint patience = clock_.Now() + std::chrono::seconds(5);
    for (;;) {
      const Status flushed = producer_->Flush(kSlice);
      TACIT_RETURN_IF_ERROR(Look());
      if (flushed) return {};
      if (flushed.error().code != ErrorCode::kUnavailable) return Fail(AtRunTime(flushed.error()));
      if (stopped_ && clock_.Now() >= patience) return {};
    }
  }

  // Records failed deliveries and shows progress.
  Status Look() {
    for (const stream::FailedDelivery& failed : producer_->TakeFailures()) {
      const ReplayPlace place{failed.tag >> 48, failed.tag & ((uint64_t{1} << 48) - 1)};
      // Headers could no longer give the order of the records after the failed one.
      if (!failed.too_large) return Fail(ErrorCode::kIo, failed.reason);
      NotSent(place, failed.reason);
    }
    const Clock::TimePoint now = clock_.Now();
    if (now < next_look_) return {};
    next_look_ = now + kSlice;
    const double share =
        raw_total_ == 0 ? 1 : static_cast<double>(raw_now_) / static_cast<double>(raw_total_);
    if (!watch_({.share = share,
                 .sent = producer_->records_acked(),
                 .already_there = summary_.already_there,
                 .trouble = producer_->trouble()}))
      stopped_ = true;
    return {};
  }

  void NotSent(const ReplayPlace& place, std::string_view reason) {
    if (++summary_.not_sent > kFaultsTold) return;
    spdlog::warn("{}:{} is not sent: {}", files_[place.file].path, place.line, reason);
  }

  const ReplayOptions& options_;
  const std::vector<ReplayFile>& files_;
  LineFields& fields_;
  const Clock& clock_;
  const std::function<bool(const ReplayView&)>& watch_;
  ReplayHistory history_;
  ReplayPacer pacer_;
  std::unique_ptr<stream::KafkaProducer> producer_;
  ReplaySummary summary_;
  std::string framed_;
  uint64_t raw_total_ = 0, raw_before_ = 0, raw_now_ = 0;
  uint64_t file_lines_ = 0;
  Clock::TimePoint next_look_;
  bool stopped_ = false;
};

}  // namespace

Result<ReplaySummary> Replay(const ReplayOptions& options, const std::vector<ReplayFile>& files,
                             LineFields& fields, const Clock& clock,
                             const std::function<bool(const ReplayView&)>& watch) {
  return Replayer(options, files, fields, clock, watch).Run();
}

}  // namespace tacit::cli
