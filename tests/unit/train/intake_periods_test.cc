// An intake whose source cuts periods over all its partitions.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "train/intake.h"
#include "unit/train/intake_bench.h"

namespace tacit::train {
namespace {

// Two partitions of lines as a list's, in periods of given ranges; every seventh line is bad.
class PeriodSource final : public stream::Source {
 public:
  PeriodSource(std::vector<std::vector<OffsetRange>> periods, uint64_t seed)
      : periods_(std::move(periods)), random_(seed) {}

  static bool Bad(uint64_t offset) { return offset % 7 == 3; }
  std::string topic() const override { return "list"; }
  std::vector<int32_t> partitions() const override { return {0, 1}; }
  Result<stream::PollOutcome> Poll(std::chrono::milliseconds, event::RawRecords* out) override {
    out->Clear();
    if (paused_) return stream::PollOutcome::kNothing;
    if (period_ == periods_.size()) return stream::PollOutcome::kEnd;
    std::vector<OffsetRange>& left = left_.empty() ? left_ = periods_[period_] : left_;
    while (range_ < left.size() && left[range_].size() == 0) ++range_;
    if (range_ == left.size()) {
      out->period = periods_[period_++];
      out->partition = out->period[0].partition;
      out->first_offset = out->period[0].end;
      left_.clear();
      range_ = 0;
      return stream::PollOutcome::kRecords;
    }
    OffsetRange& range = left[range_];
    out->partition = range.partition;
    out->first_offset = range.begin;
    const uint64_t n = std::min<uint64_t>(1 + random_() % 40, range.size());
    for (; out->size() < n; ++range.begin) {
      out->bytes += Bad(range.begin) ? "nonsense" : "1\t" + std::to_string(range.begin);
      out->end.push_back(static_cast<uint32_t>(out->bytes.size()));
    }
    return stream::PollOutcome::kRecords;
  }
  Status Seek(std::span<const stream::PartitionOffset>) override { return {}; }
  void Pause(std::span<const int32_t>) override { paused_ = true; }
  void Resume(std::span<const int32_t>) override { paused_ = false; }
  void Advise(std::span<const stream::PartitionOffset>, const stream::StoreClaim&) override {}
  uint64_t RecordsAfter(std::span<const stream::PartitionOffset>) const override { return 0; }
  std::string Identity() const override { return "identity"; }
  Status VerifyIdentity(const std::string&) override { return {}; }

 private:
  const std::vector<std::vector<OffsetRange>> periods_;
  std::mt19937_64 random_;
  std::vector<OffsetRange> left_;
  size_t period_ = 0, range_ = 0;
  bool paused_ = false;
};

IntakeOptions::Learner::MakeParticipation OfTopic() {
  return [](stream::Position start) {
    return stream::MakeTopicPeriodParticipation(50, std::move(start));
  };
}

// A period is one step of each learner that has not had it. Its window ends before these, behind
// all else of them.
TEST(IntakePeriodsTest, APeriodIsDecidedBeforeItIsReleased) {
  const std::vector<std::vector<OffsetRange>> periods{
      {{0, 0, 300}, {1, 0, 100}}, {{1, 100, 190}}, {{0, 300, 400}, {1, 190, 450}}};
  // The second learner has had the first period, and partition 1 of the second.
  stream::Position at;
  at.step = 2;
  at.next = {{0, 300, 300}, {1, 190, 190}};
  for (const uint64_t decided : {0, 350}) {
    Bench bench;
    PeriodSource source(periods, 17);
    Intake intake({.learners = {{LearnerIndex(0), OfTopic(), {}}, {LearnerIndex(1), OfTopic(), at}},
                   .windows = IntakeOptions::Windows{.offsets = 0, .next = {{0, decided, decided}}},
                   .decode_threads = 2},
                  source, *bench.codec, bench.transform, bench.sink);
    ASSERT_TRUE(intake.Start());
    std::vector<uint64_t> unreadable, expected;
    for (const auto& period : periods) {
      expected.push_back(0);
      for (const OffsetRange& range : period)
        for (uint64_t o = range.begin; o < range.end; ++o)
          expected.back() += PeriodSource::Bad(o) && (range.partition == 1 || o >= decided) ? 1 : 0;
    }
    std::map<uint16_t, std::vector<std::vector<OffsetRange>>> taken;
    std::map<uint16_t, uint64_t> examples;
    while (auto step = intake.steps().Pop()) {
      if (step->window_end) {
        unreadable.push_back(step->window_end->unreadable);
        continue;
      }
      const uint16_t learner = step->learner.value;
      examples[learner] += step->batch.examples.size();
      if (step->batch.preview()) continue;
      taken[learner].push_back(step->batch.ranges);
      // The step of a period comes next behind the end of its window.
      EXPECT_EQ(unreadable.size(), learner == 0 ? taken[0].size() : 3);
      EXPECT_EQ(step->batch.after.step, taken[learner].size() + (learner == 0 ? 0 : 2));
    }
    ASSERT_TRUE(intake.status());
    EXPECT_EQ(unreadable, expected);
    EXPECT_EQ(taken[0], periods);
    EXPECT_EQ(taken[1], (std::vector<std::vector<OffsetRange>>{periods[2]}));
    uint64_t good[2] = {0, 0};
    for (size_t i = 0; i < periods.size(); ++i)
      for (const OffsetRange& range : periods[i])
        for (uint64_t o = range.begin; o < range.end; ++o)
          for (int learner = 0; learner < 2; ++learner)
            good[learner] += !PeriodSource::Bad(o) && (learner == 0 || i == 2) ? 1 : 0;
    EXPECT_EQ(examples[0], good[0]);
    EXPECT_EQ(examples[1], good[1]);
  }
}

// A period whose end comes with a partition that a learner has passed is none the less its own in
// another partition.
TEST(IntakePeriodsTest, ALearnerTakesThePartOfAPeriodThatItHasNotHad) {
  Bench bench;
  PeriodSource source({{{0, 0, 100}, {1, 0, 100}}, {{0, 100, 200}, {1, 100, 200}}}, 18);
  stream::Position at;
  at.step = 5;
  at.next = {{0, 200, 200}, {1, 0, 0}};
  Intake intake({.learners = {{LearnerIndex(0), OfTopic(), {}}, {LearnerIndex(1), OfTopic(), at}}},
                source, *bench.codec, bench.transform, bench.sink);
  ASSERT_TRUE(intake.Start());
  std::vector<std::vector<OffsetRange>> taken;
  while (auto step = intake.steps().Pop())
    if (step->learner == LearnerIndex(1) && !step->batch.preview())
      taken.push_back(step->batch.ranges);
  EXPECT_EQ(taken, (std::vector<std::vector<OffsetRange>>{{{1, 0, 100}}, {{1, 100, 200}}}));
}

}  // namespace
}  // namespace tacit::train
