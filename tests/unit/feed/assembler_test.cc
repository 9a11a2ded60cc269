// Tests how versions are put together, over a topic in memory: partitions that are appended to,
// compacted and read in random turns. The oracle is the last value of each key in all that was ever
// appended, up to the version.
#include "feed/assembler.h"

#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <random>
#include <set>

#include "feed/row_blocks.h"
#include "stream/kafka/producer.h"

namespace tacit::feed {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kParts = 3;
constexpr uint64_t kRows = 60;
constexpr uint32_t kDim = 5;
constexpr uint64_t kSmallRows = 600;  // of the learner whose rows go in blocks

store::LearnerRecord TestLearner() {
  store::LearnerRecord learner;
  learner.name = "ctr";
  learner.model_fingerprint.fill(9);
  learner.layout.space.AddTable("site", kRows, kDim);
  learner.layout.state_floats = {1};
  learner.layout.initial_scale = {0.5f};
  return learner;
}

// Its rows are one float each, and go in blocks.
store::LearnerRecord SmallLearner() {
  store::LearnerRecord learner;
  learner.key = 1;
  learner.name = "sums";
  learner.model_fingerprint.fill(8);
  learner.layout.space.AddTable("value", kSmallRows, 1);
  learner.layout.state_floats = {5};
  learner.layout.initial_scale = {0};
  return learner;
}

// A record of the log.
struct Logged {
  RecordPlace place;
  RecordOrigin origin;
  uint64_t offset = 0;
  std::string key, value, payload;
  uint32_t checksum = 0;
};

// All that a model has, by place: the payloads.
using Places = std::map<RecordPlace, std::string>;

class Topic {
 public:
  Topic() {
    origin_.lineage.fill(3);
    learner_ = ModelId(TestLearner().model_fingerprint);
    small_ = ModelId(SmallLearner().model_fingerprint);
  }

  // The rows of the learner of small rows that change with these rows of the other one.
  static std::set<uint64_t> SmallRowsOf(const std::set<uint64_t>& rows) {
    std::set<uint64_t> small;
    for (const uint64_t row : rows) small.insert(row * row % kSmallRows);
    return small;
  }

  // Appends a version of these rows; `whole`: it was sent whole.
  void Append(uint64_t version, const std::set<uint64_t>& rows, bool whole = false) {
    origin_.version = CommitSeq(version);
    std::vector<std::vector<Logged>> made(kParts);
    uint64_t records = 0, bytes = 0;
    const auto add = [&](const RecordPlace& place, uint64_t model, std::string payload) {
      Logged record{.place = place,
                    .origin = origin_,
                    .key = EncodeKey(place),
                    .value = {},
                    .payload = std::move(payload)};
      record.origin.model = model;
      record.checksum = AppendValue(place, record.origin, record.payload, &record.value);
      const auto partition =
          static_cast<size_t>(stream::KafkaProducer::PartitionOfKey(record.key, kParts));
      records += 1;
      bytes += record.key.size() + record.value.size();
      if (place.kind != RecordKind::kBlock) places_[version][place] = record.payload;
      made[partition].push_back(std::move(record));
    };
    for (const uint64_t row : rows) {
      const std::array<float, kDim> floats = {static_cast<float>(version), static_cast<float>(row)};
      add({.kind = RecordKind::kRow, .number = row}, learner_,
          std::string(reinterpret_cast<const char*>(floats.data()), sizeof(floats)));
    }
    blocks_.ForgetChanges();
    for (const uint64_t row : SmallRowsOf(rows)) {
      const auto value = static_cast<float>(version * 1000 + row);
      blocks_.Put(0, row, {&value, 1}, true);
      places_[version][{.kind = RecordKind::kRow, .learner = 1, .number = row}] =
          std::string(reinterpret_cast<const char*>(&value), sizeof(value));
    }
    EXPECT_TRUE(blocks_.ForChanged([&](uint16_t, uint64_t block, std::string_view payload) {
      add({.kind = RecordKind::kBlock, .learner = 1, .number = block}, small_,
          std::string(payload));
      return Status();
    }));
    std::string dense(8, '\0');
    const uint32_t chunks = 1;
    std::memcpy(dense.data(), &chunks, sizeof(chunks));
    dense[4] = static_cast<char>(version);
    add({.kind = RecordKind::kDense}, learner_, dense);
    add({.kind = RecordKind::kLedger, .number = version / 4}, kModels,
        "entry as of " + std::to_string(version));
    if (whole) whole_since_ = version;
    VersionEnd version_end;
    version_end.previous = CommitSeq(last_);
    version_end.whole_since = CommitSeq(whole_since_);
    version_end.feed = feed;
    version_end.partitions = kParts;
    version_end.all_records = records;
    version_end.all_bytes = bytes;
    version_end.tip.seq = CommitSeq(version);
    version_end.tip.ledger_entries = version / 4 + 1;
    version_end.learners.push_back({.key = 0,
                                    .record = store::EncodeLearner(TestLearner()),
                                    .dense_floats = 1,
                                    .dense_chunks = 1});
    version_end.learners.push_back({.key = 1, .record = store::EncodeLearner(SmallLearner())});
    last_ = version;
    for (uint32_t p = 0; p < kParts; ++p) {
      version_end.partition = p;
      version_end.records = made[p].size();
      for (const Logged& record : made[p]) version_end.checksum += record.checksum;
      Logged record{.place = {.kind = RecordKind::kVersionEnd},
                    .origin = origin_,
                    .key = "m",
                    .value = {},
                    .payload = EncodeVersionEnd(version_end)};
      record.origin.model = kModels;
      AppendValue(record.place, record.origin, record.payload, &record.value);
      made[p].push_back(std::move(record));
      version_end.checksum = 0;
      for (Logged& one : made[p]) {
        one.offset = end[p]++;
        logs[p].push_back(std::move(one));
      }
      end[p] += 1;  // the transaction's own marker
    }
  }

  // Keeps the last record of each key among those before `before`; those behind keep what they are.
  void Compact(int32_t partition, uint64_t before) {
    std::map<std::string, uint64_t> last;
    for (const Logged& record : logs[partition])
      if (record.offset < before) last[record.key] = record.offset;
    std::erase_if(logs[partition], [&](const Logged& record) {
      return record.offset < before && last[record.key] != record.offset;
    });
  }

  // The model as of a version.
  Places At(uint64_t version) const {
    Places model;
    for (const auto& [at, places] : places_)
      if (at <= version)
        for (const auto& [place, payload] : places) model[place] = payload;
    return model;
  }

  static constexpr uint64_t kModels = 77;
  FeedId feed{};
  std::map<int32_t, std::vector<Logged>> logs;
  std::map<int32_t, uint64_t> end;

 private:
  RecordOrigin origin_;
  uint64_t learner_ = 0, small_ = 0, last_ = 0, whole_since_ = 0;
  RowBlocks blocks_{SmallLearner().layout};
  std::map<uint64_t, Places> places_;
};

FeedIdentity TestIdentity() {
  FeedIdentity identity;
  identity.models = Topic::kModels;
  identity.partitions = kParts;
  identity.whole_since = CommitSeq(1);
  identity.lineage.fill(3);
  identity.learners = {TestLearner(), SmallLearner()};
  return identity;
}

class Reader {
 public:
  explicit Reader(Assembler assembler) : assembler(std::move(assembler)) {}

  // Reads up to `count` records of a partition, and its end if that is reached.
  Status Read(const Topic& topic, int32_t partition, size_t count) {
    uint64_t& next = position[partition];
    for (const Logged& record : topic.logs.at(partition)) {
      if (record.offset < next) continue;
      if (count-- == 0) return {};
      next = record.offset + 1;
      TACIT_RETURN_IF_ERROR(assembler.Take({.partition = partition,
                                            .offset = record.offset,
                                            .key = record.key,
                                            .value = record.value}));
    }
    next = topic.end.at(partition);
    return {};
  }
  // `believes`: how the ends are noted; else as they are.
  void NoteEnds(const Topic& topic) {
    std::map<int32_t, PartitionSight> sights;
    for (int32_t p = 0; p < kParts; ++p)
      sights[p] = {.next = position[p], .end = lies ? position[p] : topic.end.at(p)};
    assembler.NoteEnds(sights);
  }
  // Takes what is whole into `model`. Returns its version, 0 for none.
  Result<uint64_t> Take() {
    TACIT_ASSIGN(const auto whole, assembler.TakeWhole(position));
    if (!whole) return uint64_t{0};
    for (const VersionLearner& learner : whole->learners) {
      PutRows(learner);
      if (!learner.dense) continue;
      std::string payload("\1\0\0\0", 4);
      payload.append(reinterpret_cast<const char*>(learner.dense->data()), 4);
      model[{.kind = RecordKind::kDense}] = payload;
    }
    for (const auto& [number, entry] : whole->entries)
      model[{.kind = RecordKind::kLedger, .number = number}] = entry;
    return whole->end.tip.seq.value;
  }

  // Takes the rows that are held, as who begins does. Returns their number.
  size_t TakeAhead() {
    if (assembler.base()) return 0;
    size_t rows = 0;
    for (const VersionLearner& learner : assembler.TakeRows()) {
      PutRows(learner);
      rows += learner.rows->size();
    }
    return rows;
  }

  Assembler assembler;
  std::map<int32_t, uint64_t> position;
  Places model;
  bool lies = false;  // says that nothing is behind what was read

 private:
  void PutRows(const VersionLearner& learner) {
    for (size_t i = 0; learner.rows && i < learner.rows->size(); ++i) {
      const auto row = learner.rows->Row(i);
      const uint64_t number = learner.rows->rows[i];
      model[{.kind = RecordKind::kRow, .learner = learner.key, .number = number}] =
          std::string(reinterpret_cast<const char*>(row.data()), row.size_bytes());
    }
  }
};

std::set<uint64_t> SomeRows(std::mt19937& random) {
  std::set<uint64_t> rows;
  for (int i = 0; i < 12; ++i) rows.insert(random() % kRows);
  return rows;
}

struct RandomRun {
  int shown = 0, mixed = 0;
  size_t ahead = 0;  // rows that were taken before the first version
  bool refused = false;
};

// Appends, compacts and reads in random turns; counts versions that differ from the oracle's.
// `ahead`: rows are taken before there is a version, now and then.
RandomRun RunSome(uint32_t seed, bool lies, bool ahead = false) {
  std::mt19937 random(seed);
  Topic topic;
  uint64_t version = 0;
  const auto append = [&] {
    version += version == 0 ? 1 : 1 + random() % 3;
    topic.Append(version, SomeRows(random), version == 1);
  };
  for (int i = 0; i < 8; ++i) append();
  const auto compact = [&] {
    const auto p = static_cast<int32_t>(random() % kParts);
    topic.Compact(p, topic.end[p] - std::min<uint64_t>(topic.end[p], random() % 20));
  };
  if (random() % 2 == 0) compact();
  Reader reader(Assembler("t", TestIdentity(), std::nullopt, Assembler::Beginning::kOfTopic));
  reader.lies = lies;
  RandomRun run;
  const auto look = [&] {
    if (reader.assembler.needs_ends()) reader.NoteEnds(topic);
    const auto took = reader.Take();
    if (ahead && random() % 3 == 0) run.ahead += reader.TakeAhead();
    run.refused = run.refused || !took;
    if (!took && lies) return;
    ASSERT_TRUE(took) << "seed " << seed << ": " << took.error().message;
    if (*took == 0) return;
    run.shown += 1;
    if (reader.model != topic.At(*took)) run.mixed += 1;
  };
  for (int turn = 0; turn < 300; ++turn) {
    const uint32_t what = random() % 10;
    if (what == 0 && turn < 250) append();
    if (what == 1) compact();
    if (what > 2) {
      const Status read = reader.Read(topic, static_cast<int32_t>(random() % kParts), random() % 9);
      EXPECT_TRUE(read) << "seed " << seed << ": " << read.error().message;
    }
    look();
    if (testing::Test::HasFatalFailure() || run.refused) return run;
  }
  for (int p = 0; p < kParts; ++p) EXPECT_TRUE(reader.Read(topic, p, ~size_t{0}));
  for (int i = 0; i < 4; ++i) look();
  EXPECT_EQ(reader.assembler.base(), std::optional(reader.assembler.newest())) << "seed " << seed;
  return run;
}

TEST(AssemblerTest, EachVersionIsWholeWhateverCompactionTakesMeanwhile) {
  RandomRun all;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    const RandomRun run = RunSome(seed, false);
    if (HasFatalFailure()) return;
    EXPECT_GE(run.shown, 1) << "seed " << seed;
    EXPECT_EQ(run.mixed, 0) << "seed " << seed;
    all.shown += run.shown;
  }
  EXPECT_GT(all.shown, 2000);
}

TEST(AssemblerTest, RowsThatAreTakenAheadBelongToTheFirstVersion) {
  RandomRun all;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    const RandomRun run = RunSome(seed, false, true);
    if (HasFatalFailure()) return;
    EXPECT_GE(run.shown, 1) << "seed " << seed;
    EXPECT_EQ(run.mixed, 0) << "seed " << seed;
    all.shown += run.shown;
    all.ahead += run.ahead;
  }
  EXPECT_GT(all.shown, 2000);
  EXPECT_GT(all.ahead, 2000u);
}

// The planted fault: a reader that believes that nothing is behind what was read shows mixed
// versions.
TEST(AssemblerTest, WithoutTheEndsVersionsAreMixed) {
  int mixed = 0;
  for (uint32_t seed = 1; seed <= 100; ++seed) mixed += RunSome(seed, true).mixed;
  EXPECT_GT(mixed, 5);
}

class OneTopicTest : public ::testing::Test {
 protected:
  OneTopicTest() {
    topic_.Append(1, {1, 2, 3, 4, 5, 6, 7, 8}, true);
    topic_.Append(4, {2, 3, 9});
    topic_.Append(6, {3, 9, 11});
  }
  // Reads all, and returns the error, or the version that comes out.
  Result<uint64_t> ReadAll(std::optional<CommitSeq> base = {}) {
    reader_.emplace(Assembler("t", TestIdentity(), base, Assembler::Beginning::kOfTopic));
    for (int32_t p = 0; p < kParts; ++p) TACIT_RETURN_IF_ERROR(reader_->Read(topic_, p, 1000));
    uint64_t shown = 0;
    for (int i = 0; i < 3; ++i) {
      if (reader_->assembler.needs_ends()) reader_->NoteEnds(topic_);
      TACIT_ASSIGN(const uint64_t version, reader_->Take());
      shown = std::max(shown, version);
    }
    return shown;
  }
  Logged* Find(const std::function<bool(const Logged&)>& is_it) {
    for (auto& [partition, log] : topic_.logs)
      for (Logged& record : log)
        if (is_it(record)) return &record;
    ADD_FAILURE() << "there is no such record";
    return nullptr;
  }
  static void Rewrite(Logged* record) {
    record->value.clear();
    AppendValue(record->place, record->origin, record->payload, &record->value);
  }
  Topic topic_;
  std::optional<Reader> reader_;
};

TEST_F(OneTopicTest, AllOfItIsTheNewestVersion) {
  const auto shown = ReadAll();
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(*shown, 6u);
  EXPECT_EQ(reader_->model, topic_.At(6));
}

TEST_F(OneTopicTest, BehindACheckpointOnlyWhatIsLaterComes) {
  const auto shown = ReadAll(CommitSeq(5));
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(*shown, 6u);
  std::set<uint64_t> rows;
  for (const auto& [place, payload] : reader_->model)
    if (place.kind == RecordKind::kRow && place.learner == 0) rows.insert(place.number);
  EXPECT_EQ(rows, (std::set<uint64_t>{3, 9, 11}));
}

// A follower that has the version before takes the changed rows of a block, and one that may have
// missed a version all of them.
TEST_F(OneTopicTest, AFollowerTakesOfABlockWhatHasChanged) {
  const auto small_rows = [](const Places& model) {
    std::set<uint64_t> rows;
    for (const auto& [place, payload] : model)
      if (place.kind == RecordKind::kRow && place.learner == 1) rows.insert(place.number);
    return rows;
  };
  Reader follower(Assembler("t", TestIdentity(), CommitSeq(6), Assembler::Beginning::kBehindBase));
  follower.position = {topic_.end.begin(), topic_.end.end()};
  const std::set<uint64_t> rows = {7, 20};
  topic_.Append(7, rows);
  for (int32_t p = 0; p < kParts; ++p) ASSERT_TRUE(follower.Read(topic_, p, 1000));
  const auto shown = follower.Take();
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(*shown, 7u);
  EXPECT_EQ(small_rows(follower.model), Topic::SmallRowsOf(rows));
  // Version 7 is lost to this one, and what it changed in the block of version 9 is not.
  Reader late(Assembler("t", TestIdentity(), CommitSeq(6), Assembler::Beginning::kBehindBase));
  late.position = {topic_.end.begin(), topic_.end.end()};
  topic_.Append(9, {3});
  for (int32_t p = 0; p < kParts; ++p) ASSERT_TRUE(late.Read(topic_, p, 1000));
  ASSERT_TRUE(late.assembler.needs_ends());
  late.NoteEnds(topic_);
  const auto second = late.Take();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(*second, 9u);
  const std::set<uint64_t> all = small_rows(topic_.At(9)), got = small_rows(late.model);
  EXPECT_GT(got.size(), 1u);
  for (const uint64_t row : got) {
    const RecordPlace place{.kind = RecordKind::kRow, .learner = 1, .number = row};
    EXPECT_EQ(late.model.at(place), topic_.At(9).at(place)) << row;
  }
  for (const uint64_t row : all) {
    if (row >= kBlockRows) continue;
    EXPECT_TRUE(got.contains(row)) << row;
  }
}

TEST_F(OneTopicTest, AVersionWhoseEndAPartitionLacksIsNotShown) {
  std::erase_if(topic_.logs[1], [](const Logged& record) {
    return record.place.kind == RecordKind::kVersionEnd && record.origin.version.value == 6;
  });
  const auto shown = ReadAll();
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(*shown, 0u);  // a partition may be ahead: the rest is waited for
}

TEST_F(OneTopicTest, ALostOrMixedRowOfTheNewestVersionIsSeen) {
  const auto row_of_6 = [](const Logged& record) {
    return record.place.kind == RecordKind::kRow && record.origin.version.value == 6;
  };
  // Two versions are mixed: a row of version 6 has the value of version 4.
  Logged* const row = Find(row_of_6);
  row->payload = topic_.At(4).at({.kind = RecordKind::kRow, .number = 3});
  Rewrite(row);
  const auto mixed = ReadAll();
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(mixed.error().message, HasSubstr("version 6: a partition has other records of it"));
  for (auto& [partition, log] : topic_.logs) std::erase_if(log, row_of_6);
  const auto lost = ReadAll();
  ASSERT_FALSE(lost);
  EXPECT_THAT(lost.error().message, HasSubstr("version 6: a partition has other records of it"));
}

TEST_F(OneTopicTest, RecordsOfOthersAreRefusedByName) {
  const auto error_with = [&](const std::function<void(Logged*)>& change, RecordKind kind) {
    const Topic before = topic_;
    Logged* const record = Find(
        [&](const Logged& one) { return one.place.kind == kind && one.origin.version.value == 6; });
    change(record);
    const auto shown = ReadAll();
    topic_ = before;
    EXPECT_FALSE(shown);
    return shown ? "" : shown.error().message;
  };
  EXPECT_THAT(error_with([](Logged* record) { record->value = "hello"; }, RecordKind::kRow),
              HasSubstr("is no record of a feed"));
  EXPECT_THAT(error_with([](Logged* record) { record->value.back() ^= 1; }, RecordKind::kRow),
              HasSubstr("its checksum is another"));
  EXPECT_THAT(error_with(
                  [](Logged* record) {
                    record->origin.lineage.fill(4);
                    Rewrite(record);
                  },
                  RecordKind::kVersionEnd),
              HasSubstr("another store publishes there now"));
  EXPECT_THAT(error_with(
                  [](Logged* record) {
                    record->origin.model += 1;
                    Rewrite(record);
                  },
                  RecordKind::kVersionEnd),
              HasSubstr("is of another model"));
  EXPECT_THAT(error_with(
                  [](Logged* record) {
                    record->origin.model += 1;
                    Rewrite(record);
                  },
                  RecordKind::kRow),
              HasSubstr("is of another model than those before of learner 'ctr'"));
  EXPECT_THAT(error_with(
                  [](Logged* record) {
                    record->payload.resize(4);
                    Rewrite(record);
                  },
                  RecordKind::kRow),
              HasSubstr("the mark's layout has no such row"));
  EXPECT_THAT(error_with(
                  [](Logged* record) {
                    record->payload.resize(70);
                    Rewrite(record);
                  },
                  RecordKind::kBlock),
              HasSubstr("is a block of another length"));
  EXPECT_THAT(error_with(
                  [](Logged* record) {
                    record->place.number = 2;  // of 88 rows
                    record->key = EncodeKey(record->place);
                    record->payload.assign(64 + 4, '\0');
                    record->payload[31] = 1;
                    Rewrite(record);
                  },
                  RecordKind::kBlock),
              HasSubstr("the mark's layout has no such block"));
  EXPECT_THAT(error_with(
                  [](Logged* record) {
                    record->place.number = uint64_t{1} << 60;
                    record->key = EncodeKey(record->place);
                    Rewrite(record);
                  },
                  RecordKind::kBlock),
              HasSubstr("the mark's layout has no such block"));
  // A row whose learner sends blocks, and a block of one that sends rows.
  EXPECT_THAT(error_with(
                  [](Logged* record) {
                    record->place.kind = RecordKind::kRow;
                    record->key = EncodeKey(record->place);
                    record->payload.resize(4);
                    Rewrite(record);
                  },
                  RecordKind::kBlock),
              HasSubstr("the mark's layout has no such row"));
  EXPECT_THAT(error_with(
                  [](Logged* record) {
                    record->place.kind = RecordKind::kBlock;
                    record->key = EncodeKey(record->place);
                    Rewrite(record);
                  },
                  RecordKind::kRow),
              HasSubstr("the mark's layout has no such block"));
}

TEST_F(OneTopicTest, ATopicMadeAnewOrAnOlderCopyIsRefused) {
  Topic anew = topic_;
  anew.feed.fill(5);
  anew.Append(8, {1});
  topic_ = anew;
  auto shown = ReadAll();
  ASSERT_FALSE(shown);
  EXPECT_THAT(shown.error().message, HasSubstr("the topic was made anew"));
  topic_ = Topic();
  topic_.Append(1, {1}, true);
  topic_.Append(9, {1});
  topic_.Append(5, {1}, true);
  shown = ReadAll();
  ASSERT_FALSE(shown);
  EXPECT_THAT(shown.error().message, HasSubstr("an older copy of the trainer's store"));
}

}  // namespace
}  // namespace tacit::feed
