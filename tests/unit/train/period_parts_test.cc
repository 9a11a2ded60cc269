// A topic's period through an intake: parts of it are read in any order, or summed up elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "event/codec.h"
#include "train/intake.h"

namespace tacit::train {
namespace {

// A period's frames in the order of a list: records, sums of others, and the end.
class FrameSource final : public stream::Source {
 public:
  explicit FrameSource(std::vector<event::RawRecords> frames) : frames_(std::move(frames)) {}

  std::string topic() const override { return "frames"; }
  std::vector<int32_t> partitions() const override { return {0}; }
  Result<stream::PollOutcome> Poll(std::chrono::milliseconds, event::RawRecords* out) override {
    if (next_ == frames_.size()) return stream::PollOutcome::kEnd;
    *out = frames_[next_++];
    return stream::PollOutcome::kRecords;
  }
  Status Seek(std::span<const stream::PartitionOffset>) override { return {}; }
  void Pause(std::span<const int32_t>) override {}
  void Resume(std::span<const int32_t>) override {}
  void Advise(std::span<const stream::PartitionOffset>, const stream::StoreClaim&) override {}
  uint64_t RecordsAfter(std::span<const stream::PartitionOffset>) const override { return 0; }
  std::string Identity() const override { return ""; }
  Status VerifyIdentity(const std::string&) override { return {}; }

 private:
  const std::vector<event::RawRecords> frames_;
  size_t next_ = 0;
};

class NoLetters final : public event::DeadLetterSink {
 public:
  Status Write(std::span<const event::DeadLetter> letters) override {
    EXPECT_TRUE(letters.empty());
    return {};
  }
  void Interrupt() override {}
};

class PeriodPartsTest : public testing::TestWithParam<uint32_t> {};

TEST_P(PeriodPartsTest, ComeInAnyOrder) {
  const event::FeatureTransform transform{
      {.dense = {{.name = "n", .transform = event::DenseTransform::kIdentity}}, .categorical = {}}};
  const auto codec = event::MakeCriteoTsvCodec(transform);
  NoLetters sink;
  const auto records = [](uint64_t from, uint64_t to) {
    event::RawRecords frame;
    frame.first_offset = from;
    for (uint64_t i = from; i < to; ++i) {
      frame.bytes += "1\t7";
      frame.end.push_back(static_cast<uint32_t>(frame.bytes.size()));
    }
    return frame;
  };
  event::RawRecords part, end;
  part.origin = "w-1";
  part.sums = "a part";
  end.first_offset = 40;
  end.period = {{0, 0, 40}};
  FrameSource source({records(30, 40), part, records(0, 10), records(20, 30), end});
  const auto periods = [](stream::Position start) {
    return stream::MakeTopicPeriodParticipation(/*offsets_per_part=*/15, std::move(start));
  };
  Intake intake({.learners = {{LearnerIndex(0), periods, {}}},
                 .parts_in_any_order = true,
                 .decode_threads = GetParam()},
                source, *codec, transform, sink);
  ASSERT_TRUE(intake.Start());
  std::vector<uint64_t> offsets;
  std::vector<std::string> sums;
  size_t steps = 0;
  while (auto step = intake.steps().Pop()) {
    const std::vector<uint64_t>& part = step->batch.examples.offset;
    EXPECT_TRUE(std::ranges::is_sorted(part));
    offsets.insert(offsets.end(), part.begin(), part.end());
    EXPECT_EQ(steps, 0u) << "a part behind its step";
    if (step->batch.kind == stream::StepBatch::Kind::kSums) sums.push_back(step->batch.sums);
    steps += step->batch.preview() ? 0 : 1;
  }
  std::ranges::sort(offsets);
  std::vector<uint64_t> due;
  for (uint64_t i = 0; i < 40; ++i)
    if (i < 10 || i >= 20) due.push_back(i);
  EXPECT_EQ(offsets, due);
  EXPECT_EQ(sums, std::vector<std::string>{"a part"});
  EXPECT_EQ(steps, 1u);
}
INSTANTIATE_TEST_SUITE_P(DecodeThreads, PeriodPartsTest, testing::Values(1, 3));

}  // namespace
}  // namespace tacit::train
