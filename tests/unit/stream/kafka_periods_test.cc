// Periods over all partitions, read from a broker on a script. They are the same however fast
// records come, how often the client breaks, and what one record holds.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "broker_double.h"
#include "stream/kafka/periods.h"
#include "stream/steps/participation.h"

namespace tacit::stream {
namespace {

constexpr int64_t kPeriodRoundMs = 100, kPeriodTickMs = 900, kPeriodLiveMs = 4000;
constexpr uint64_t kPart = 50;
constexpr StepSizes kSizes{.full = 400, .opening = 90, .growing_from = 150};

using Place = std::pair<int32_t, uint64_t>;  // partition and offset

// Answers from the script's timestamps.
class ScriptTimes final : public OffsetsByTime {
 public:
  explicit ScriptTimes(const TopicScript& script) : script_(script) {
    for (const auto& records : script.partitions) {
      std::vector<int64_t>& latest = latest_.emplace_back();
      for (const auto& record : records)
        latest.push_back(std::max(record.timestamp_ms, latest.empty() ? 0 : latest.back()));
    }
  }
  Result<std::vector<uint64_t>> FirstFrom(int64_t time_ms,
                                          std::span<const OffsetRange> ranges) override {
    // A leader that is away is asked again.
    if (++questions_ % 50 == 7) return Fail(ErrorCode::kUnavailable, "no leader");
    std::vector<uint64_t> offsets;
    for (const OffsetRange& range : ranges) {
      const auto p = static_cast<size_t>(range.partition);
      const auto first = std::ranges::lower_bound(latest_[p], time_ms);
      const auto at = static_cast<size_t>(first - latest_[p].begin());
      offsets.push_back(first == latest_[p].end() ? range.end : script_.partitions[p][at].offset);
    }
    return offsets;
  }

 private:
  const TopicScript& script_;
  std::vector<std::vector<int64_t>> latest_;  // the latest timestamp up to each record
  int questions_ = 0;
};

// The records of a script in these ranges.
std::set<Place> RecordsIn(const TopicScript& script, const std::vector<OffsetRange>& ranges) {
  std::set<Place> places;
  for (const OffsetRange& range : ranges)
    for (const auto& record : script.partitions[static_cast<size_t>(range.partition)])
      if (record.offset >= range.begin && record.offset < range.end)
        places.emplace(range.partition, record.offset);
  return places;
}

// Others sum up some ranges of each period, drawn by chance, and the rest is read here, in any
// order. Sums are the ranges that they are of.
class RandomShare final : public PeriodShare {
 public:
  RandomShare(const TopicScript& script, uint64_t seed) : script_(script), random_(seed) {}

  // The store commits a while after the period before has ended.
  std::optional<SharedPeriod> Begins(std::span<const OffsetRange> before) {
    EXPECT_TRUE(std::ranges::equal(before, before_)) << "a period that is not committed";
    if (random_() % 3 != 0) return std::nullopt;
    return SharedPeriod{.store = {.lineage = "a", .sequence = begun_, .head = ""}};
  }

  void Begin(SharedPeriod period) override {
    EXPECT_EQ(period.store.sequence, begun_++);
    EXPECT_EQ(period.step + 1, begun_);
    before_ = period.ranges;
    learners_.push_back(period.learners);
    for (OffsetRange rest : period.ranges)
      while (rest.size() > 0) {
        const uint64_t end = rest.begin + 1 + random_() % rest.size();
        slices_.push_back({rest.partition, rest.begin, end});
        rest.begin = end;
      }
    std::ranges::shuffle(slices_, random_);
  }
  Result<PeriodPiece> Next(milliseconds) override {
    if (random_() % 4 == 0) return PeriodPiece{};
    if (sent_) return *std::exchange(sent_, std::nullopt);
    if (slices_.empty() && own_.empty()) return PeriodPiece{.kind = PeriodPiece::Kind::kEnd};
    if (slices_.empty() || (random_() % 2 == 0 && !own_.empty())) return PeriodPiece{};
    std::vector<OffsetRange> some;
    for (size_t n = 1 + random_() % 3; n > 0 && !slices_.empty(); --n) {
      some.push_back(slices_.back());
      slices_.pop_back();
    }
    if (random_() % 2 == 0 && own_.empty()) {
      recount_ = random_() % 2 == 0;
      return PeriodPiece{
          .kind = PeriodPiece::Kind::kRanges, .ranges = own_ = some, .recount = recount_};
    }
    ++summed_;
    return SumsOf(some);
  }
  Status HaveRead(const std::vector<std::optional<LastRecord>>& last) override {
    EXPECT_EQ(last.size(), own_.size());
    for (size_t i = 0; i < own_.size(); ++i) {
      const std::set<Place> records = RecordsIn(script_, {own_[i]});
      EXPECT_EQ(last[i].has_value(), !records.empty());
      if (last[i]) {
        EXPECT_EQ(last[i]->offset, records.rbegin()->second);
      }
    }
    if (recount_) {
      sent_ = SumsOf(own_);
      sent_->recount = true;
    }
    own_.clear();
    return {};
  }
  std::map<int32_t, LastRecord> Last() const override { return {}; }

  size_t summed() const { return summed_; }
  // The learners of each period.
  const std::vector<std::vector<LearnerIndex>>& learners() const { return learners_; }

 private:
  static PeriodPiece SumsOf(const std::vector<OffsetRange>& ranges) {
    std::string sums;
    for (const OffsetRange& one : ranges)
      sums += std::to_string(one.partition) + " " + std::to_string(one.begin) + " " +
              std::to_string(one.end) + " ";
    return {.kind = PeriodPiece::Kind::kSums,
            .sums = {{LearnerIndex(0), sums}},
            .from = "w",
            .summed = {.records = 7, .dead = {}}};
  }

  const TopicScript& script_;
  std::mt19937_64 random_;
  std::vector<OffsetRange> before_, slices_, own_;
  bool recount_ = false;             // others have summed up `own_` too
  std::optional<PeriodPiece> sent_;  // by them
  uint64_t begun_ = 0;
  size_t summed_ = 0;
  std::vector<std::vector<LearnerIndex>> learners_;
};

struct Setting {
  bool until_end = false;         // all is there, and ends; else rounds and ticks
  size_t stop_after = 1'000'000;  // steps
  Victim victim = {};
  uint64_t seed = 0;
  std::vector<TopicPeriods::Member> learners = {};
  std::vector<OffsetRange> windows = {};
  std::function<bool(LearnerIndex)> learns = {};
  int64_t grows_ms = 0;  // when the last partition is made; 0: before the start
  bool shares = false;
};

// The result of a reading.
struct PeriodCourse {
  std::vector<std::vector<OffsetRange>> periods;
  std::vector<std::set<Place>> learnt;              // the examples of each, its previews among them
  std::vector<std::vector<LearnerIndex>> learners;  // of each, if they are shared out
  Position position;
  size_t breaks = 0, parts = 0, largest_part = 0, summed = 0, recounts = 0;
};

size_t PartitionsAt(const TopicScript& script, int64_t grows_ms, int64_t ms) {
  return script.partitions.size() - (ms < grows_ms ? 1 : 0);
}

class PeriodReading {
 public:
  PeriodReading(const TopicScript& script, const Setting& setting, Position start)
      : script_(script),
        setting_(setting),
        end_ms_(script.last_arrival_ms() + 2 * kPeriodTickMs),
        broker_(script, setting.victim, clock_, setting.seed),
        times_(script),
        share_(script, setting.seed),
        periods_(
            {.options = {.topic = "t"}, .clock = clock_, .envelope = nullptr, .rounds = rounds_},
            times_,
            {.periods = {.sizes = kSizes,
                         .next = start.step,
                         .learners = setting.learners,
                         .windows = setting.windows,
                         .learns = setting.learns},
             .until_end = setting.until_end,
             .share = setting.shares ? &share_ : nullptr,
             .begin = [this](auto before) { return share_.Begins(before); }}),
        participation_(MakeTopicPeriodParticipation(kPart, start)) {
    course_.position = start;
    if (setting.until_end) clock_.Advance(end_ms_);
    for (size_t p = 0; p < PartitionsAt(script, setting.grows_ms, 0); ++p) {
      const auto partition = static_cast<int32_t>(p);
      const auto next = std::ranges::find(start.next, partition, &OffsetRange::partition);
      const uint64_t offset = next == start.next.end() ? 0 : next->begin;
      EXPECT_TRUE(broker_.Seek(partition, offset));
      periods_.Start({.partition = partition, .offset = offset});
    }
  }

  PeriodCourse Go() {
    while (clock_.ms() < 100'000'000 && course_.periods.size() < setting_.stop_after) {
      CloseRounds();
      event::RawRecords frame;
      std::optional<LastRecord> last;
      const auto taken = periods_.Take(broker_, milliseconds(0), &frame, &last);
      if (!taken) {
        OpenAnew();
      } else if (*taken) {
        Learn(frame);
      } else if (periods_.idle() && next_round_ms_ > end_ms_) {
        course_.summed = share_.summed();
        course_.learners = share_.learners();
        return course_;
      } else {
        clock_.Advance(1);
      }
    }
    EXPECT_LT(clock_.ms(), 100'000'000) << "it does not come to an end";
    return course_;
  }

 private:
  void CloseRounds() {
    for (; next_round_ms_ <= std::min(clock_.ms(), end_ms_); next_round_ms_ += kPeriodRoundMs) {
      std::vector<PartitionEnd> ends;
      const int64_t at = setting_.until_end ? end_ms_ : next_round_ms_;
      for (size_t p = 0; p < PartitionsAt(script_, setting_.grows_ms, at); ++p)
        ends.push_back({static_cast<int32_t>(p), script_.EndAt(p, at)});
      const bool tick =
          !setting_.until_end && next_round_ms_ > 0 && next_round_ms_ % kPeriodTickMs == 0;
      ASSERT_TRUE(rounds_.Close(ends, tick));
    }
  }
  void OpenAnew() {
    ++course_.breaks;
    periods_.DropFetched();
    for (const auto& partition : periods_.partitions()) {
      EXPECT_TRUE(broker_.Seek(partition->id(), partition->next()));
      periods_.Start({.partition = partition->id(), .offset = partition->next()});
    }
  }
  void Learn(const event::RawRecords& frame) {
    event::Batch batch;
    batch.partition = frame.partition;
    for (uint32_t i = 0; i < frame.size(); ++i) {
      batch.offset.push_back(frame.first_offset + i);
      batch.timestamp_ms.push_back(frame.timestamp_ms[i]);
      batch.label.push_back(0);
    }
    ASSERT_TRUE(participation_->Cut(frame, batch, [&](StepBatch&& step) {
      for (const uint64_t offset : step.examples.offset) {
        EXPECT_TRUE(open_.emplace(step.examples.partition, offset).second) << "twice";
        if (step.recount) recounted_.emplace(step.examples.partition, offset);
      }
      EXPECT_EQ(step.unit_of.size(), step.examples.size());
      EXPECT_EQ(step.kind == StepBatch::Kind::kSums, !step.sums.empty());
      std::istringstream sums(step.sums);
      if (step.recount && !step.sums.empty()) return Compare(std::move(sums));
      for (OffsetRange one; sums >> one.partition >> one.begin >> one.end;)
        for (const Place& place : RecordsIn(script_, {one}))
          EXPECT_TRUE(open_.insert(place).second) << "twice";
      if (step.preview()) {
        ++course_.parts;
        course_.largest_part = std::max(course_.largest_part, step.examples.size());
        return true;
      }
      course_.periods.push_back(step.ranges);
      course_.learnt.push_back(std::exchange(open_, {}));
      course_.position = step.after;
      return true;
    }));
  }

  // The records that were read again are just those that others have summed up.
  bool Compare(std::istringstream sums) {
    std::set<Place> theirs;
    for (OffsetRange one; sums >> one.partition >> one.begin >> one.end;)
      theirs.merge(RecordsIn(script_, {one}));
    EXPECT_EQ(std::exchange(recounted_, {}), theirs);
    ++course_.recounts;
    return true;
  }

  const TopicScript& script_;
  const Setting setting_;
  const int64_t end_ms_;
  SetClock clock_;
  RoundQueue rounds_;
  BrokerDouble broker_;
  ScriptTimes times_;
  RandomShare share_;
  KafkaPeriods periods_;
  std::unique_ptr<Participation> participation_;
  int64_t next_round_ms_ = 0;
  std::set<Place> open_, recounted_;
  PeriodCourse course_;
};

// The periods of a topic by their definition: the ends of each round, and when it ticks.
std::vector<std::vector<OffsetRange>> Expected(const TopicScript& script, bool until_end,
                                               int64_t grows_ms = 0) {
  ScriptTimes times(script);
  std::vector<OffsetRange> there;
  std::vector<std::vector<OffsetRange>> periods;
  const int64_t end_ms = script.last_arrival_ms() + 2 * kPeriodTickMs;
  for (int64_t ms = until_end ? end_ms : 0; ms <= end_ms; ms += kPeriodRoundMs) {
    while (there.size() < PartitionsAt(script, grows_ms, ms))
      there.push_back({static_cast<int32_t>(there.size()), 0, 0});
    for (size_t p = 0; p < there.size(); ++p) there[p].end = script.EndAt(p, ms);
    while (true) {
      const bool tick = until_end || (ms > 0 && ms % kPeriodTickMs == 0);
      auto cut = CutPeriod(there, kSizes.Of(periods.size()), tick, times);
      while (!cut) cut = CutPeriod(there, kSizes.Of(periods.size()), tick, times);
      if (!*cut) break;
      for (size_t p = 0; p < there.size(); ++p) there[p].begin = (**cut)[p].end;
      std::erase_if(**cut, [](const OffsetRange& range) { return range.size() == 0; });
      if ((*cut)->empty()) break;
      periods.push_back(**cut);
    }
  }
  return periods;
}

Victim VictimOf(const TopicScript& script, Victim::Kind kind) {
  return {.partition = 0, .offset = script.partitions[0][100].offset, .kind = kind};
}

TEST(KafkaPeriodsTest, ArePublicFactsAloneAndHaveEachRecordOnce) {
  size_t breaks = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const TopicScript script = TopicScript::Draw(random, 1 + seed % 4, kPeriodLiveMs);
    const bool until_end = seed % 2 == 0;
    const auto expected = Expected(script, until_end);
    ASSERT_GT(expected.size(), 3u);
    uint64_t world = 0;
    for (const auto kind : {Victim::Kind::kSmall, Victim::Kind::kNull, Victim::Kind::kLarge}) {
      const PeriodCourse course = PeriodReading(script,
                                                {.until_end = until_end,
                                                 .victim = VictimOf(script, kind),
                                                 .seed = 100 * seed + ++world},
                                                {})
                                      .Go();
      ASSERT_EQ(course.periods, expected);
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_EQ(course.learnt[i], RecordsIn(script, expected[i])) << "period " << i;
      EXPECT_GT(course.parts, expected.size());
      // A frame has 4096 records at most, and a part takes whole frames.
      EXPECT_LT(course.largest_part, kPart + 4096);
      EXPECT_EQ(course.position.step, expected.size());
      breaks += course.breaks;
    }
  }
  EXPECT_GT(breaks, 0u);
}

// Shared out, periods are the same, and have the same records.
TEST(KafkaPeriodsTest, AreReadHereWhereNobodyElseHasSummedThem) {
  size_t breaks = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const TopicScript script = TopicScript::Draw(random, 1 + seed % 4, kPeriodLiveMs);
    const bool until_end = seed % 2 == 0;
    const auto expected = Expected(script, until_end);
    const PeriodCourse course =
        PeriodReading(script, {.until_end = until_end, .seed = seed, .shares = true}, {}).Go();
    ASSERT_EQ(course.periods, expected);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(course.learnt[i], RecordsIn(script, expected[i])) << "period " << i;
    EXPECT_GT(course.summed, expected.size());
    EXPECT_GT(course.recounts, 0u);
    breaks += course.breaks;
  }
  EXPECT_GT(breaks, 0u);
}

// A start between two periods changes nothing about the periods of a topic that is filled already.
TEST(KafkaPeriodsTest, GoOnAfterAStartAsIfThereWereNone) {
  std::mt19937_64 random(5);
  const TopicScript script = TopicScript::Draw(random, 3, kPeriodLiveMs);
  const auto expected = Expected(script, /*until_end=*/true);
  Position position;
  std::vector<std::vector<OffsetRange>> periods;
  for (uint64_t life = 0; life < 1000 && periods.size() < expected.size(); ++life) {
    const PeriodCourse course =
        PeriodReading(script, {.until_end = true, .stop_after = 1 + life % 2, .seed = life},
                      position)
            .Go();
    periods.insert(periods.end(), course.periods.begin(), course.periods.end());
    position = course.position;
  }
  EXPECT_EQ(periods, expected);
}

// A kill came between the steps that two learners take of one period. The other learner takes the
// very period, even if more records have come since.
TEST(KafkaPeriodsTest, ALearnerThatIsAPeriodBehindTakesThatPeriod) {
  std::mt19937_64 random(8);
  const TopicScript script = TopicScript::Draw(random, 3, kPeriodLiveMs);
  const auto expected = Expected(script, /*until_end=*/false);
  Position behind, ahead;
  for (size_t taken = 0; taken < expected.size(); ++taken) {
    SCOPED_TRACE(testing::Message() << "after " << taken << " periods");
    for (const OffsetRange& range : expected[taken]) {
      const OffsetRange end{range.partition, range.end, range.end};
      const auto next = std::ranges::find(ahead.next, range.partition, &OffsetRange::partition);
      if (next == ahead.next.end())
        ahead.next.push_back(end);
      else
        *next = end;
    }
    const PeriodCourse course =
        PeriodReading(script,
                      {.until_end = true,
                       .stop_after = 1,
                       .seed = taken,
                       .learners = {{LearnerIndex(0), behind.next}, {LearnerIndex(1), ahead.next}}},
                      behind)
            .Go();
    EXPECT_EQ(course.periods, (std::vector<std::vector<OffsetRange>>{expected[taken]}));
    // So does a period that the breaker has decided on.
    EXPECT_EQ(PeriodReading(script,
                            {.until_end = true,
                             .stop_after = 1,
                             .seed = taken,
                             .learners = {{LearnerIndex(0), behind.next}},
                             .windows = ahead.next},
                            behind)
                  .Go()
                  .periods,
              course.periods);
    ++ahead.step;
    behind = ahead;
  }
}

// Learners may stand anywhere, if they learnt from periods of partitions before. Nothing is summed
// for the last one, whose budget is used up by now.
TEST(KafkaPeriodsTest, NoPeriodGoesOverThePlaceOfALearner) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const TopicScript script = TopicScript::Draw(random, 3, kPeriodLiveMs);
    static constexpr LearnerIndex kStopped(2);
    std::vector<Position> learners(3);
    std::vector<TopicPeriods::Member> members;
    Position least;
    for (int32_t p = 0; p < 3; ++p) {
      const uint64_t end = script.EndAt(static_cast<size_t>(p), 1'000'000'000);
      uint64_t first = end;
      for (Position& learner : learners) {
        if (random() % 4 == 0) continue;  // it has not begun the partition
        const uint64_t at = random() % end;
        learner.next.push_back({p, at, at});
      }
      for (const Position& learner : learners) {
        const auto at = std::ranges::find(learner.next, p, &OffsetRange::partition);
        first = std::min(first, at == learner.next.end() ? 0 : at->begin);
      }
      least.next.push_back({p, first, first});
    }
    for (const Position& learner : learners)
      members.push_back({LearnerIndex(static_cast<uint16_t>(members.size())), learner.next});
    const PeriodCourse course =
        PeriodReading(script,
                      {.until_end = true,
                       .seed = seed,
                       .learners = members,
                       .learns = [](LearnerIndex learner) { return learner != kStopped; },
                       .shares = true},
                      least)
            .Go();
    ASSERT_EQ(course.learners.size(), course.periods.size());
    for (const Position& learner : learners) {
      // Each learner takes what it has not had, in its own steps.
      auto participation = MakeTopicPeriodParticipation(kPart, learner);
      std::map<int32_t, uint64_t> next;
      for (const OffsetRange& at : learner.next) next[at.partition] = at.begin;
      for (size_t i = 0; i < course.periods.size(); ++i) {
        const std::vector<OffsetRange>& period = course.periods[i];
        // A learner takes all of a period or nothing.
        const LearnerIndex index(static_cast<uint16_t>(&learner - learners.data()));
        const bool takes = std::ranges::count(course.learners[i], index) > 0;
        for (const OffsetRange& range : period) {
          const auto known = next.find(range.partition);
          const bool had = known != next.end() && known->second > range.begin;
          EXPECT_EQ(!had && index != kStopped, takes);
        }
        event::RawRecords end;
        end.partition = period[0].partition;
        end.first_offset = period[0].end;
        end.period = period;
        EXPECT_TRUE(participation->Cut(end, {}, [&](StepBatch&& step) {
          EXPECT_EQ(step.ranges, period);
          for (const OffsetRange& range : step.ranges) {
            const auto known = next.try_emplace(range.partition, range.begin).first;
            EXPECT_EQ(range.begin, known->second);
            known->second = range.end;
          }
          return true;
        }));
      }
      for (const OffsetRange& at : course.position.next)
        EXPECT_EQ(next[at.partition], at.begin) << "partition " << at.partition;
    }
  }
}

TEST(KafkaPeriodsTest, ANewPartitionIsReadFromItsBeginning) {
  std::mt19937_64 random(9);
  const TopicScript script = TopicScript::Draw(random, 3, kPeriodLiveMs);
  const auto expected = Expected(script, /*until_end=*/false, kPeriodLiveMs / 2);
  const PeriodCourse course =
      PeriodReading(script, {.seed = 9, .grows_ms = kPeriodLiveMs / 2}, {}).Go();
  ASSERT_EQ(course.periods, expected);
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(course.learnt[i], RecordsIn(script, expected[i])) << "period " << i;
  ASSERT_EQ(course.position.next.size(), 3u);
  EXPECT_EQ(course.position.next.back().begin, script.EndAt(2, script.last_arrival_ms()));
}

// Another process that would sum up all of a period, and notes it.
class NotingShare final : public PeriodShare {
 public:
  void Begin(SharedPeriod period) override { noted = std::move(period); }
  Result<PeriodPiece> Next(milliseconds) override {
    return PeriodPiece{.kind = PeriodPiece::Kind::kEnd};
  }
  Status HaveRead(const std::vector<std::optional<LastRecord>>&) override { return {}; }
  std::map<int32_t, LastRecord> Last() const override { return {}; }

  SharedPeriod noted;
};

// Retention took the first records: they are in the first period, and so on the ledger. Another
// process is told which, if the period is shared.
class LostOffsetsTest : public testing::TestWithParam<bool> {};

TEST_P(LostOffsetsTest, AreInThePeriodThatComesNext) {
  std::mt19937_64 random(6);
  const TopicScript script = TopicScript::Draw(random, 1, kPeriodLiveMs);
  NotingShare share;
  SetClock clock;
  clock.Advance(100'000);
  RoundQueue rounds;
  ScriptTimes times(script);
  BrokerDouble broker(script, {}, clock, 1);
  KafkaPeriods periods(
      {.options = {.topic = "t"}, .clock = clock, .envelope = nullptr, .rounds = rounds}, times,
      {.periods = {.sizes = {.full = 1000}, .next = 0, .learners = {}},
       .until_end = true,
       .share = GetParam() ? &share : nullptr,
       .begin = [](auto) { return SharedPeriod(); }});
  ASSERT_GT(script.EndAt(0, 0), 1000u);
  ASSERT_TRUE(broker.Seek(0, 400));
  periods.Start({.partition = 0, .offset = 400, .lost = 390});
  ASSERT_TRUE(rounds.Close(std::vector<PartitionEnd>{{0, 1500}}, /*tick=*/false));
  std::vector<OffsetRange> period;
  bool told = false;
  for (int call = 0; call < 100 && period.empty(); ++call) {
    event::RawRecords frame;
    std::optional<LastRecord> last;
    ASSERT_TRUE(periods.Take(broker, milliseconds(0), &frame, &last));
    for (const auto& cut : frame.cuts) told |= cut.kind == event::PublicCut::Kind::kLost;
    period = frame.period;
  }
  EXPECT_EQ(period, (std::vector<OffsetRange>{{0, 10, 1010}}));
  EXPECT_TRUE(told);
  if (!GetParam()) return;
  EXPECT_EQ(share.noted.ranges, period);
  EXPECT_EQ(share.noted.lost, (std::vector<OffsetRange>{{0, 10, 400}}));
}
INSTANTIATE_TEST_SUITE_P(Shared, LostOffsetsTest, testing::Bool());

}  // namespace
}  // namespace tacit::stream
