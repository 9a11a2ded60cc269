// A topic's period through an intake: parts of it are read in any order, or summed up elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "event/codec.h"
#include "metrics/families.h"
#include "train/intake.h"
#include "train/watch/dead_letter_news.h"

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

class CountedLetters final : public event::DeadLetterSink {
 public:
  Status Write(std::span<const event::DeadLetter> letters) override {
    count += letters.size();
    return {};
  }
  void Interrupt() override { interrupted = true; }

  size_t count = 0;
  bool interrupted = false;
};

// A number of records; every third is without a label if `some_dead`.
event::RawRecords Records(uint64_t from, uint64_t to, bool some_dead = false) {
  event::RawRecords frame;
  frame.first_offset = from;
  for (uint64_t i = from; i < to; ++i) {
    frame.bytes += some_dead && i % 3 == 0 ? "x\t7" : "1\t7";
    frame.end.push_back(static_cast<uint32_t>(frame.bytes.size()));
  }
  return frame;
}
event::RawRecords Sums(const event::SummedRecords& summed, bool recount = false) {
  event::RawRecords frame;
  frame.origin = "w-1";
  frame.sums = {{LearnerIndex(0), "a part"}};
  frame.summed = summed;
  frame.recount = recount;
  return frame;
}
event::RawRecords End(uint64_t end) {
  event::RawRecords frame;
  frame.first_offset = end;
  frame.period = {{0, 0, end}};
  return frame;
}

class PeriodPartsTest : public testing::TestWithParam<uint32_t> {
 protected:
  // Has an intake take these frames, which must end a period.
  Intake& Take(std::vector<event::RawRecords> frames) {
    source_.emplace(std::move(frames));
    const auto periods = [](stream::Position start) {
      return stream::MakeTopicPeriodParticipation(/*offsets_per_part=*/15, std::move(start));
    };
    intake_.emplace(
        IntakeOptions{
            .learners = {{LearnerIndex(0), periods, {}}},
            .parts_in_any_order = true,
            .filter = {.opted_out = registry_.AddCounter("tacit_records_opted_out_total")},
            .decode_threads = GetParam(),
            .on_decoded = [this](auto& records, auto&, auto dead) { news_.See(records, dead); }},
        *source_, *codec_, transform_, letters_);
    EXPECT_TRUE(intake_->Start());
    return *intake_;
  }

  const event::FeatureTransform transform_{
      {.dense = {{.name = "n", .transform = event::DenseTransform::kIdentity}}, .categorical = {}}};
  const std::unique_ptr<event::Codec> codec_ = event::MakeCriteoTsvCodec(transform_);
  const SystemClock clock_;
  metrics::Registry registry_;
  DeadLetterNews news_{clock_, registry_, "letters"};
  CountedLetters letters_;
  std::optional<FrameSource> source_;
  std::optional<Intake> intake_;
};

TEST_P(PeriodPartsTest, ComeInAnyOrder) {
  Intake& intake = Take({Records(30, 40), Sums({}), Records(0, 10), Records(20, 30), End(40)});
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
  EXPECT_EQ(letters_.count, 0u);
}

// Records that others have read count as if they had been read here.
TEST_P(PeriodPartsTest, RecordsOfOthersAreCounted) {
  Intake& intake = Take({Records(0, 30, /*some_dead=*/true),
                         Sums({.records = 50, .dead = {0, 2, 0, 5}, .opted_out = 7}), End(80)});
  while (intake.steps().Pop()) continue;
  EXPECT_EQ(intake.records_read(), 80u);
  EXPECT_EQ(intake.records_dead(), 17u);
  EXPECT_EQ(intake.records_good(), 56u);
  EXPECT_EQ(letters_.count, 10u) << "the worker has written the others";
  intake.Stop();
  EXPECT_FALSE(letters_.interrupted) << "the next intake could not write there";
  const auto count = [&](metrics::CounterName name, const metrics::Labels& labels = {}) {
    return registry_.AddCounter(name, labels).value();
  };
  EXPECT_EQ(count("tacit_records_read_total"), 80);
  EXPECT_EQ(count("tacit_records_opted_out_total"), 7);
  EXPECT_EQ(count("tacit_dead_letters_total", {{"part", "label"}}), 15);
  EXPECT_EQ(count("tacit_dead_letters_total", {{"part", "schema"}}), 2);
}

// Records that are read to check others' sums are parts of their own, and count once. Sums of other
// records cannot be compared with them.
TEST_P(PeriodPartsTest, RecordsThatOthersHaveSummedTooComeApart) {
  struct Case {
    event::SummedRecords theirs;
    bool compared = false;
    int bad_schemas = 0;  // of those that are read here
  };
  for (const Case& one : std::vector<Case>{{{.records = 20, .dead = {}}, true},
                                           {{.records = 20, .dead = {0, 0, 0, 2}}, true},
                                           {{.records = 21, .dead = {}}, false},
                                           {{.records = 20, .dead = {0, 1}}, false},
                                           {{.records = 20, .dead = {0, 1}}, true, 1}}) {
    event::RawRecords first = Records(10, 20, /*some_dead=*/true), second = Records(20, 30);
    first.recount = second.recount = true;
    // A broken frame is broken in both processes.
    for (int i = 0; i < one.bad_schemas; ++i)
      second.faults.push_back({static_cast<uint32_t>(i), "no frame", event::BadPart::kSchema});
    Intake& intake = Take({Records(0, 10), first, Records(30, 35), second,
                           Sums(one.theirs, /*recount=*/true), Records(35, 40), End(40)});
    std::vector<uint64_t> again, others;
    bool ended = false, compared = false;
    while (auto step = intake.steps().Pop()) {
      const std::vector<uint64_t>& part = step->batch.examples.offset;
      std::vector<uint64_t>& all = step->batch.recount ? again : others;
      all.insert(all.end(), part.begin(), part.end());
      if (step->batch.kind != stream::StepBatch::Kind::kSums) continue;
      EXPECT_TRUE(step->batch.recount);
      EXPECT_EQ(step->batch.sums_from, "w-1");
      EXPECT_EQ(again.size(), 17u - one.bad_schemas) << "the sums came before their records";
      ended = true;
      compared = !step->batch.sums.empty();
    }
    EXPECT_TRUE(ended);
    EXPECT_EQ(compared, one.compared);
    EXPECT_EQ(again.front(), 10u);
    EXPECT_EQ(again.back(), 29u);
    EXPECT_EQ(others.size(), 20u);
    EXPECT_EQ(intake.records_read(), 40u);
    EXPECT_EQ(intake.records_good(), 37u - one.bad_schemas);
    EXPECT_EQ(intake.records_dead(), 3u + one.bad_schemas);
  }
}
// Each learner gets its own part of others' sums; one that is ahead gets nothing of a period that
// it has had, and neither do windows.
TEST_P(PeriodPartsTest, AreForTheLearnersThatHaveNotHadThem) {
  const auto sums = [](uint64_t first, std::vector<event::SummedPart> parts, uint64_t dead) {
    event::RawRecords frame = Sums({.records = dead, .dead = {0, 0, 0, dead}});
    frame.first_offset = first;
    frame.sums = std::move(parts);
    return frame;
  };
  event::RawRecords end = End(80);
  end.period = {{0, 40, 80}};
  source_.emplace(std::vector{
      sums(0, {{LearnerIndex(0), "a0"}}, 100), Records(0, 20, true), End(40),
      sums(40, {{LearnerIndex(0), "b0"}, {LearnerIndex(1), "b1"}}, 5), Records(60, 80, true), end});
  const auto periods = [](stream::Position start) {
    return stream::MakeTopicPeriodParticipation(/*offsets_per_part=*/15, std::move(start));
  };
  stream::Position ahead;
  ahead.step = 1;
  ahead.next = {{0, 40, 40}};
  intake_.emplace(
      IntakeOptions{.learners = {{LearnerIndex(0), periods, {}}, {LearnerIndex(1), periods, ahead}},
                    .parts_in_any_order = true,
                    .windows = IntakeOptions::Windows{.next = {{0, 40, 40}}},
                    .decode_threads = GetParam()},
      *source_, *codec_, transform_, letters_);
  ASSERT_TRUE(intake_->Start());
  std::vector<std::string> told[2];
  size_t examples[2] = {0, 0};
  std::vector<uint64_t> unreadable;
  while (auto step = intake_->steps().Pop()) {
    if (step->window_end) {
      unreadable.push_back(step->window_end->unreadable);
      continue;
    }
    const uint16_t learner = step->learner.value;
    examples[learner] += step->batch.examples.size();
    if (step->batch.kind == stream::StepBatch::Kind::kSums)
      told[learner].push_back(step->batch.sums);
    if (!step->batch.preview())
      told[learner].push_back(std::to_string(step->batch.ranges[0].begin));
  }
  ASSERT_TRUE(intake_->status());
  EXPECT_EQ(told[0], (std::vector<std::string>{"a0", "0", "b0", "40"}));
  EXPECT_EQ(told[1], (std::vector<std::string>{"b1", "40"}));
  EXPECT_EQ(examples[0], 13u + 13u);
  EXPECT_EQ(examples[1], 13u);
  EXPECT_EQ(unreadable, std::vector<uint64_t>{5 + 7});
}

INSTANTIATE_TEST_SUITE_P(DecodeThreads, PeriodPartsTest, testing::Values(1, 3));

}  // namespace
}  // namespace tacit::train
