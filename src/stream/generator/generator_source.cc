// The identity of a generator. The notation is base/bytes.h's.
//     identity := format:u32 days:u32 rows_per_day:u64 seed:u64
//     format   := 1
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/bytes.h"
#include "stream/generator/criteo_generator.h"

namespace tacit::stream {
namespace {

constexpr uint32_t kIdentityFormat = 1;

class GeneratorSource final : public Source {
 public:
  explicit GeneratorSource(CriteoGeneratorOptions options) : generator_(options) {}

  std::string topic() const override { return "generator"; }
  std::vector<int32_t> partitions() const override { return {0}; }

  Result<PollOutcome> Poll(std::chrono::milliseconds timeout, event::RawRecords* records) override {
    records->Clear();
    if (paused_) {
      std::this_thread::sleep_for(timeout);
      return PollOutcome::kNothing;
    }
    if (offset_ == end_offset()) return PollOutcome::kEnd;
    const uint64_t rows_per_day = generator_.options().rows_per_day;
    const auto day = static_cast<uint32_t>(offset_ / rows_per_day);
    const uint64_t row = offset_ % rows_per_day;
    const uint64_t n = std::min(kRecordsPerPoll, rows_per_day - row);
    records->first_offset = offset_;
    records->origin = fmt::format("day {}", day);
    records->origin_line = row + 1;
    generator_.Generate(day, row, n, &records->bytes, nullptr);
    DropNewlines(records);
    offset_ += n;
    if (row + n == rows_per_day)
      records->cuts.push_back({event::PublicCut::Kind::kFileEnd, offset_, records->origin});
    return PollOutcome::kRecords;
  }

  Status Seek(std::span<const PartitionOffset> positions) override {
    if (positions.size() != 1 || positions[0].partition != 0)
      return Fail(ErrorCode::kInvalidArgument, "the generator has one partition, 0");
    const uint64_t offset = positions[0].from_beginning ? 0 : positions[0].offset;
    if (offset > end_offset())
      return Fail(ErrorCode::kRefused,
                  fmt::format("offset {} is past the end of the generator, which has {} records",
                              offset, end_offset()));
    offset_ = positions[0].first();
    return {};
  }

  void Pause(std::span<const int32_t> partitions) override { SetPaused(partitions, true); }
  void Resume(std::span<const int32_t> partitions) override { SetPaused(partitions, false); }
  void Advise(std::span<const PartitionOffset>, const StoreClaim&) override {}

  uint64_t RecordsAfter(std::span<const PartitionOffset> positions) const override {
    const uint64_t before = positions.empty() ? 0 : positions[0].offset;
    return end_offset() - std::min(before, end_offset());
  }

  // The number of days is included: it shapes the records, as new values arrive over all days.
  std::string Identity() const override {
    const CriteoGeneratorOptions& options = generator_.options();
    ByteWriter out;
    out.Put(kIdentityFormat).Put(options.days).Put(options.rows_per_day).Put(options.seed);
    return std::move(out).Take();
  }

  Status VerifyIdentity(const std::string& stored) override {
    if (stored.empty() || stored == Identity()) return {};
    return Fail(ErrorCode::kRefused,
                "the generator's days, rows_per_day or seed have changed since its records were "
                "read");
  }

 private:
  uint64_t end_offset() const {
    return generator_.options().days * generator_.options().rows_per_day;
  }
  void SetPaused(std::span<const int32_t> partitions, bool paused) {
    if (std::find(partitions.begin(), partitions.end(), 0) != partitions.end()) paused_ = paused;
  }

  // Removes the newlines by moving the lines together.
  static void DropNewlines(event::RawRecords* records) {
    std::string& bytes = records->bytes;
    size_t to = 0;
    for (size_t from = 0; from < bytes.size();) {
      const size_t newline = bytes.find('\n', from);
      std::char_traits<char>::move(bytes.data() + to, bytes.data() + from, newline - from);
      to += newline - from;
      records->end.push_back(static_cast<uint32_t>(to));
      from = newline + 1;
    }
    bytes.resize(to);
  }

  CriteoGenerator generator_;
  uint64_t offset_ = 0;
  bool paused_ = false;
};

}  // namespace

std::unique_ptr<Source> MakeGeneratorSource(CriteoGeneratorOptions options) {
  return std::make_unique<GeneratorSource>(options);
}

}  // namespace tacit::stream
