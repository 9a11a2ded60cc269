// De-duplication and records without a user, through the intake: over starts at any position the
// same records are learnt from.
#include "train/record_filter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>

#include "event/codec.h"
#include "metrics/families.h"
#include "support/process.h"
#include "train/intake.h"

namespace tacit::train {
namespace {

struct Line {
  std::string user, id;
};

// JSON lines in one partition.
class JsonSource final : public stream::Source {
 public:
  explicit JsonSource(std::vector<Line> lines, bool forgets = false)
      : lines_(std::move(lines)), forgets_(forgets) {}

  std::string topic() const override { return "lines"; }
  std::vector<int32_t> partitions() const override { return {0}; }
  Result<stream::PollOutcome> Poll(std::chrono::milliseconds, event::RawRecords* out) override {
    out->Clear();
    if (paused_) return stream::PollOutcome::kNothing;
    if (next_ >= lines_.size()) return stream::PollOutcome::kEnd;
    out->first_offset = next_;
    out->origin = "lines";
    for (uint64_t n = 0; n < 7 && next_ < lines_.size(); ++n, ++next_) {
      const Line& line = lines_[next_];
      out->bytes += fmt::format(R"({{"label":1,"features":{{"n":{}}})", next_);
      if (!line.user.empty()) out->bytes += fmt::format(R"(,"user":"{}")", line.user);
      if (!line.id.empty()) out->bytes += fmt::format(R"(,"event_id":"{}")", line.id);
      out->bytes += '}';
      out->end.push_back(static_cast<uint32_t>(out->bytes.size()));
    }
    return stream::PollOutcome::kRecords;
  }
  Status Seek(std::span<const stream::PartitionOffset> positions) override {
    next_ = forgets_ ? positions[0].offset : positions[0].first();
    return {};
  }
  void Pause(std::span<const int32_t>) override { paused_ = true; }
  void Resume(std::span<const int32_t>) override { paused_ = false; }
  void Advise(std::span<const stream::PartitionOffset>, const stream::StoreClaim&) override {}
  uint64_t RecordsAfter(std::span<const stream::PartitionOffset>) const override { return 0; }
  std::string Identity() const override { return ""; }
  Status VerifyIdentity(const std::string&) override { return {}; }

 private:
  const std::vector<Line> lines_;
  const bool forgets_;  // the mistake: what lies before a position is not read again
  uint64_t next_ = 0;
  bool paused_ = false;
};

class Letters final : public event::DeadLetterSink {
 public:
  Status Write(std::span<const event::DeadLetter> letters) override {
    for (const auto& letter : letters) {
      offsets.push_back(letter.offset);
      reason = letter.reason;
    }
    return {};
  }
  std::vector<uint64_t> offsets;
  std::string reason;
};

struct Learnt {
  std::vector<uint64_t> offsets;  // in order
  std::vector<uint64_t> letters;
  double repeated = 0, opted_out = 0;
};

// Learns steps of `per_step` offsets; with `steps_a_life` the process dies after that many, and
// goes on after the last.
Learnt LearnAll(const std::vector<Line>& lines, uint64_t window, uint64_t per_step,
                uint64_t steps_a_life, bool forgets = false, uint32_t passes = 1,
                std::shared_ptr<const OptOut> opt_out = nullptr) {
  const event::FeatureTransform transform(
      {.dense = {{.name = "n", .transform = event::DenseTransform::kIdentity}}, .categorical = {}});
  const auto codec = event::MakeJsonCodec(transform, {});
  Learnt learnt;
  stream::Position position;
  for (bool ended = false; !ended;) {
    JsonSource source(lines, forgets);
    Letters letters;
    metrics::Registry registry;
    const auto repeated = registry.AddCounter("tacit_records_repeated_total");
    const auto opted_out = registry.AddCounter("tacit_records_opted_out_total");
    IntakeOptions::Learner learner{LearnerIndex(0),
                                   [per_step](stream::Position start) {
                                     return stream::MakeOnceParticipation(
                                         {.offsets_per_step = per_step, .start = std::move(start)});
                                   },
                                   position};
    Intake intake({.learners = {learner},
                   .filter = {.needs_user = true,
                              .dedupe_window = window,
                              .duplicates = repeated,
                              .opt_out = opt_out,
                              .opted_out = opted_out},
                   .passes = passes,
                   .queued_records_max = 1,
                   .queued_steps_max = 1},
                  source, *codec, transform, letters);
    EXPECT_TRUE(intake.Start());
    ended = true;
    for (uint64_t taken = 0; auto step = intake.steps().Pop();) {
      const auto& offsets = step->batch.examples.offset;
      learnt.offsets.insert(learnt.offsets.end(), offsets.begin(), offsets.end());
      position = step->batch.after;
      if (++taken < steps_a_life) continue;
      ended = false;
      break;
    }
    intake.Stop();
    learnt.letters.insert(learnt.letters.end(), letters.offsets.begin(), letters.offsets.end());
    learnt.repeated += repeated.value();
    learnt.opted_out += opted_out.value();
    if (!letters.offsets.empty()) {
      EXPECT_EQ(letters.reason, "user: is missing, and a learner's unit is the user");
    }
  }
  return learnt;
}

std::vector<Line> RandomLines(std::mt19937_64& random, uint64_t n) {
  std::vector<Line> lines;
  for (uint64_t i = 0; i < n; ++i)
    lines.push_back({random() % 15 == 0 ? "" : "u" + std::to_string(random() % 3),
                     random() % 9 == 0 ? "" : "e" + std::to_string(random() % 40)});
  return lines;
}

std::vector<uint64_t> NaiveOffsets(const std::vector<Line>& lines, uint64_t window) {
  std::vector<uint64_t> offsets;
  std::map<std::pair<std::string, std::string>, uint64_t> last;
  for (uint64_t i = 0; i < lines.size(); ++i) {
    if (lines[i].user.empty()) continue;
    bool repeated = false;
    if (!lines[i].id.empty() && window > 0) {
      const auto key = std::pair(lines[i].user, lines[i].id);
      repeated = last.contains(key) && i - last[key] <= window;
      last[key] = i;
    }
    if (!repeated) offsets.push_back(i);
  }
  return offsets;
}

TEST(RecordFilterTest, WhoOptedOutIsNeverLearntFrom) {
  const test::TempDir dir;
  test::WriteFile(dir / "opt-out", "# asked by letter\nu1\r\n\nu1\nu7\n#u2");
  const SipHash::Key key{1, 2, 3};
  auto read = OptOut::Read(dir / "opt-out", key);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->size(), 2u);
  EXPECT_GE(OptOut::BytesOf(dir / "opt-out"), 2 * 2 * sizeof(Hash128));
  EXPECT_TRUE(read->Has("u1") && read->Has("u7"));
  EXPECT_EQ(read->digest(), Sha256().Update("# asked by letter\nu1\r\n\nu1\nu7\n#u2").Finish());
  for (const char* user : {"u2", "", "u", "u11", "# asked by letter"})
    EXPECT_FALSE(read->Has(user)) << user;
  const auto opt_out = std::make_shared<const OptOut>(*std::move(read));

  std::mt19937_64 random(7);
  const auto lines = RandomLines(random, 300);
  const Learnt all = LearnAll(lines, 0, 8, 1000),
               fewer = LearnAll(lines, 0, 8, 5, false, 1, opt_out);
  std::vector<uint64_t> expected;
  double theirs = 0;
  for (uint64_t offset = 0; offset < lines.size(); ++offset) theirs += lines[offset].user == "u1";
  for (const uint64_t offset : all.offsets)
    if (lines[offset].user != "u1") expected.push_back(offset);
  EXPECT_EQ(fewer.offsets, expected);
  EXPECT_GE(fewer.opted_out, theirs);  // some are read again in a later life
  EXPECT_LT(expected.size(), all.offsets.size());

  const auto missing = OptOut::Read(dir / "nowhere", key);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find("nowhere: No such file"), std::string::npos);
  EXPECT_EQ(OptOut::BytesOf(dir / "nowhere"), 0u);
}

// A list that an editor or a spreadsheet saved names the same users.
TEST(OptOutTest, NobodyIsLeftInByTheWayTheListWasSaved) {
  const test::TempDir dir;
  const SipHash::Key key{1, 2, 3};
  const std::string path = dir / "opt-out";
  test::WriteFile(path, "\xef\xbb\xbfu33\r\nu34\r\n");
  const auto marked = OptOut::Read(path, key);
  ASSERT_TRUE(marked) << marked.error().message;
  EXPECT_TRUE(marked->Has("u33") && marked->Has("u34"));
  EXPECT_EQ(marked->odd_lines().count, 0u);

  // Ids may be so, and are found as they are; so are those that were meant.
  test::WriteFile(path, "u1\nu33 \n# a remark \n\tu34\nu\xff\nu35\nu36 # by mail\nu#37\n #u38\n");
  const auto odd = OptOut::Read(path, key);
  ASSERT_TRUE(odd) << odd.error().message;
  for (const char* id : {"u1", "u33 ", "u33", "\tu34", "u34", "u\xff", "u35", "u36 # by mail",
                         "u36", "u#37", " #u38"})
    EXPECT_TRUE(odd->Has(id)) << id;
  for (const char* id : {"", " ", "#u38", "u38", "u", "a remark"}) EXPECT_FALSE(odd->Has(id)) << id;
  EXPECT_EQ(odd->odd_lines().count, 5u);
  EXPECT_EQ(odd->odd_lines().first, 2u);

  test::WriteFile(path, std::string("# list\nu\0003\0", 11));
  const auto utf16 = OptOut::Read(path, key);
  ASSERT_FALSE(utf16);
  EXPECT_EQ(utf16.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(utf16.error().message.starts_with(path + ":2: has a zero byte"))
      << utf16.error().message;
}

TEST(OptOutTest, AFolderOrAPipeInItsPlaceIsToldAndNotWaitedFor) {
  const test::TempDir dir;
  const std::string pipe = dir / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {dir.path(), pipe}) {
    const auto read = OptOut::Read(path, {1, 2, 3});
    ASSERT_FALSE(read);
    EXPECT_TRUE(read.error().message.starts_with(path + ": is ")) << read.error().message;
    EXPECT_EQ(OptOut::BytesOf(path), 0u);
  }
}

TEST(RecordFilterTest, WhatIsRepeatedIsLearntOnceOverStartsAtAnyPosition) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 30; ++round) {
    const auto lines = RandomLines(random, 1 + random() % 200);
    const uint64_t window = random() % 60, per_step = 1 + random() % 12;
    const auto want = NaiveOffsets(lines, window);
    const Learnt whole = LearnAll(lines, window, per_step, ~uint64_t{0});
    ASSERT_EQ(whole.offsets, want) << "round " << round;
    const Learnt pieces = LearnAll(lines, window, per_step, 1 + random() % 3);
    ASSERT_EQ(pieces.offsets, want) << "round " << round;
    // A letter that was written before a start is not written again, except for what had been read
    // and not been learnt from.
    const std::set<uint64_t> told(pieces.letters.begin(), pieces.letters.end());
    ASSERT_TRUE(std::equal(told.begin(), told.end(), whole.letters.begin(), whole.letters.end()));
  }
}

// As a nulled record: of no user, and looked at by nothing.
const Line kNulled = {};

std::set<uint64_t> LearntOf(const std::vector<Line>& lines, uint64_t window) {
  const Learnt learnt = LearnAll(lines, window, 5, ~uint64_t{0});
  return {learnt.offsets.begin(), learnt.offsets.end()};
}

std::set<uint64_t> Difference(const std::set<uint64_t>& a, const std::set<uint64_t>& b) {
  std::set<uint64_t> difference;
  std::ranges::set_symmetric_difference(a, b, std::inserter(difference, difference.end()));
  return difference;
}

// The two worlds of unit user, of every user of many streams: all that changes is his.
TEST(RecordFilterTest, NullingAUsersRecordsChangesNobodyElsesPart) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    const auto there = RandomLines(random, 60);
    const uint64_t window = 1 + random() % 40;
    const std::set<uint64_t> learnt = LearntOf(there, window);
    for (const char* user : {"u0", "u1", "u2"}) {
      auto nulled = there;
      for (Line& line : nulled)
        if (line.user == user) line = kNulled;
      for (const uint64_t offset : Difference(learnt, LearntOf(nulled, window)))
        EXPECT_EQ(there[offset].user, user) << "offset " << offset << ", round " << round;
    }
  }
}

// The two worlds of unit event, of every record: its absence may let one copy in, and never more.
// Two parts that change are why a window is refused there (config).
TEST(RecordFilterTest, NullingOneRecordLetsAtMostOneCopyIn) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  size_t most = 0;
  for (int round = 0; round < 6; ++round) {
    std::vector<Line> there;
    for (int i = 0; i < 40; ++i) there.push_back({"all", "e" + std::to_string(random() % 8)});
    const uint64_t window = 1 + random() % 20;
    const std::set<uint64_t> learnt = LearntOf(there, window);
    for (size_t gone = 0; gone < there.size(); ++gone) {
      auto nulled = there;
      nulled[gone] = kNulled;
      const size_t changed = Difference(learnt, LearntOf(nulled, window)).size();
      EXPECT_LE(changed, 2u) << "offset " << gone << ", round " << round;
      most = std::max(most, changed);
    }
  }
  EXPECT_EQ(most, 2u);
}

// Ids of one pass do not count in the next.
TEST(RecordFilterTest, EveryPassIsLearnt) {
  const std::vector<Line> lines = {{"u", "a"}, {"u", "b"}, {"u", "a"}, {"v", "a"}};
  const Learnt learnt = LearnAll(lines, 10, 2, ~uint64_t{0}, false, 2);
  EXPECT_EQ(learnt.offsets, (std::vector<uint64_t>{0, 1, 3, 0, 1, 3}));
  EXPECT_EQ(learnt.repeated, 2);
}

// The mistake: the window is not read again at a start. What was learnt from is learnt from twice.
TEST(RecordFilterTest, AWindowThatIsForgottenAtAStartIsFound) {
  const std::vector<Line> lines = {{"u", "a"}, {"u", "b"}, {"u", "a"}, {"u", "b"}};
  const std::vector<uint64_t> once = {0, 1};
  EXPECT_EQ(LearnAll(lines, 10, 2, 1).offsets, once);
  EXPECT_NE(LearnAll(lines, 10, 2, 1, /*forgets=*/true).offsets, once);
}

// Once for each, and of no more than there is memory for.
TEST(RecordFilter, TellsOfPartitionsThatMemoryWasNotSetAsideFor) {
  RecordFilter filter({.dedupe_window = 4, .dedupe_partitions = 2});
  testing::internal::CaptureStdout();
  for (int round = 0; round < 2; ++round) {
    for (const int32_t partition : {0, 7, 3}) {
      event::RawRecords records;
      records.partition = partition;
      event::Batch batch;
      std::vector<event::DeadLetter> dead;
      filter.Apply(records, &batch, &dead);
    }
  }
  spdlog::default_logger()->flush();
  const std::string told = testing::internal::GetCapturedStdout();
  const size_t at = told.find("partition 3 is one more than source.dedupe.partitions, 2");
  EXPECT_NE(at, std::string::npos) << told;
  EXPECT_EQ(told.find("source.dedupe.partitions", told.find('\n', at)), std::string::npos) << told;
  EXPECT_EQ(told.find("partition 7"), std::string::npos) << told;
}

}  // namespace
}  // namespace tacit::train
