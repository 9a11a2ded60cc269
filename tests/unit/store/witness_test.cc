#include "store/witness/witness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "base/bytes.h"
#include "script.h"
#include "store/disk/seal.h"
#include "store/witness/price_tally.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kLineage(32, 'a');

WitnessedLearner Learner(const std::string& name, uint64_t seq, size_t position_bytes = 20) {
  WitnessedLearner learner{.name = name, .steps = 10 * seq};
  learner.charged.emplace();
  learner.charged->charge.mechanism = privacy::MechanismKind::kDpSgd;
  learner.charged->charge.noise_multiplier = 1.5;
  learner.charged->charge.clip_gradient = 0.25;
  learner.charged->charge.sampling_rate = 0.01;
  learner.charged->unit = privacy::Unit::kUser;
  learner.charged->participation = privacy::ParticipationMode::kPoisson;
  learner.charged->bounds = {
      .allowance = 30, .per_period = 2, .period_steps = 7, .dedupe_window = 9};
  learner.charged->delta = 1e-6;
  learner.position = std::string(position_bytes, static_cast<char>('A' + seq % 26));
  return learner;
}

WitnessRecord Record(uint64_t seq, size_t position_bytes = 20) {
  WitnessRecord record{.lineage = kLineage, .seq = CommitSeq(seq)};
  record.head.fill(static_cast<uint8_t>(seq));
  record.term.fill(static_cast<uint8_t>(seq / 10 + 1));
  record.learners = {Learner("ctr", seq, position_bytes), Learner("next", seq, 0)};
  record.learners[1].charged.reset();
  return record;
}

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::unique_ptr<WitnessFile> MustOpenAt(const std::string& path, const WitnessRecord& now) {
  auto file = WitnessFile::OpenAt(path, now);
  if (!file) ADD_FAILURE() << file.error().message;
  TACIT_CHECK(file.has_value());
  return *std::move(file);
}

WitnessSight MustRead(const std::string& path) {
  auto read = WitnessFile::Read(path);
  if (!read) ADD_FAILURE() << read.error().message;
  TACIT_CHECK(read && *read);
  return **std::move(read);
}

void ExpectHolds(const std::string& path, const WitnessRecord& expected) {
  const WitnessSight sight = MustRead(path);
  EXPECT_TRUE(sight.whole);
  EXPECT_FALSE(sight.in_doubt);
  EXPECT_EQ(sight.record.lineage, expected.lineage);
  EXPECT_EQ(sight.record.seq, expected.seq);
  EXPECT_EQ(sight.record.head, expected.head);
  EXPECT_EQ(sight.record.term, expected.term);
  EXPECT_EQ(sight.record.learners, expected.learners);
}

TEST(WitnessTest, TellsTheNewestRecordAcrossReopens) {
  const TestFolder folder;
  for (uint64_t seq = 0; seq < 6; ++seq) {
    const auto file = MustOpenAt(folder.witness(), Record(seq));
    ExpectHolds(folder.witness(), Record(seq));
    ASSERT_TRUE(file->Write(Record(seq + 1)));
    ExpectHolds(folder.witness(), Record(seq + 1));
    EXPECT_EQ(file->times_lost(), 0u);
  }
}

TEST(WitnessTest, AMissingFileIsNoRecordAndItsFolderIsMade) {
  const TestFolder folder;
  const std::string path = folder.root() + "/apart/from/it/witness";
  const auto read = WitnessFile::Read(path);
  ASSERT_TRUE(read);
  EXPECT_FALSE(*read);
  MustOpenAt(path, Record(3));
  ExpectHolds(path, Record(3));
}

TEST(WitnessTest, ASmallRecordCostsTwoPagesAndALongOneMakesTheFileGrow) {
  const TestFolder folder;
  const auto file = MustOpenAt(folder.witness(), Record(0));
  EXPECT_LE(fs::file_size(folder.witness()), 8192u);
  uint64_t seq = 0;
  for (size_t bytes : {size_t{100}, size_t{5000}, size_t{4000}, size_t{300000}, size_t{10}}) {
    ASSERT_TRUE(file->Write(Record(++seq, bytes)));
    ExpectHolds(folder.witness(), Record(seq, bytes));
    ASSERT_TRUE(file->Write(Record(++seq, bytes)));
    ExpectHolds(folder.witness(), Record(seq, bytes));
  }
  EXPECT_EQ(file->times_lost(), 0u);
  EXPECT_FALSE(fs::exists(folder.witness() + ".new"));
}

// A witness is written under another name first: a link that lies there leads nowhere.
TEST(WitnessTest, ALinkInThePlaceOfTheNewFileIsNotFollowed) {
  const TestFolder folder;
  const std::string other = folder.root() + "/other", fresh = folder.witness() + ".new";
  WriteBytes(other, "mine");
  for (uint64_t seq = 1; seq < 3; ++seq) {  // a first witness, and one that is replaced
    fs::create_symlink(other, fresh);
    MustOpenAt(folder.witness(), Record(seq));
    ExpectHolds(folder.witness(), Record(seq));
    EXPECT_EQ(Bytes(other), "mine");
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder.witness())));
  }
  fs::create_directory(fresh);
  const auto refused = WitnessFile::OpenAt(folder.witness(), Record(4));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("creating witness " + fresh + ": File exists"));
}

TEST(WitnessTest, PositionsThatAreTooLongAreLeftOut) {
  std::vector<LearnerRecord> learners(2);
  learners[0].name = "a";
  learners[1].name = "b";
  const std::vector<std::string> positions{std::string(600 << 10, 'x'), "short"};
  const auto witnessed = WitnessLearners(learners, positions, privacy::Ledger(), PriceTally());
  ASSERT_EQ(witnessed.size(), 2u);
  EXPECT_FALSE(witnessed[0].position);
  EXPECT_EQ(witnessed[1].position, "short");
}

// Every byte that the newest record may have lost when its write was cut short.
TEST(WitnessTest, AWriteCutShortLeavesTheRecordBefore) {
  const TestFolder folder;
  const auto file = MustOpenAt(folder.witness(), Record(1));
  ASSERT_TRUE(file->Write(Record(2)));
  const std::string before = Bytes(folder.witness());
  ASSERT_TRUE(file->Write(Record(3)));
  const std::string after = Bytes(folder.witness());
  ASSERT_EQ(before.size(), after.size());
  int torn = 0;
  for (size_t reached = 0; reached <= after.size(); reached += 7) {
    WriteBytes(folder.witness(), after.substr(0, reached) + before.substr(reached));
    const WitnessSight sight = MustRead(folder.witness());
    ASSERT_TRUE(sight.record.seq.value == 2 || sight.record.seq.value == 3);
    torn += sight.in_doubt;
    // The store was synced at commit 3 before: it opens, with any rest.
    EXPECT_TRUE(CheckDamage(sight, CommitSeq(3), {folder.witness()}, "s"));
  }
  EXPECT_EQ(torn, 0) << "the second copy of a slot outlives a write of the first";
}

// Random damage of every kind: what is read is never older than what was witnessed, unless it is
// marked as in doubt, and then a store that is older is refused.
TEST(WitnessTest, DamageNeverMakesAnOlderStoreLookNewest) {
  const TestFolder folder;
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  int survived = 0, refused = 0, in_doubt = 0;
  for (int round = 0; round < 1000; ++round) {
    fs::remove(folder.witness());
    const uint64_t newest = 1 + random() % 6;
    {
      const auto file = MustOpenAt(folder.witness(), Record(0));
      for (uint64_t seq = 1; seq <= newest; ++seq) ASSERT_TRUE(file->Write(Record(seq)));
    }
    std::string bytes = Bytes(folder.witness());
    const size_t from = random() % bytes.size();
    const size_t length = 1 + random() % (round % 2 == 0 ? 8 : bytes.size());
    if (round % 5 == 4) {
      bytes.resize(from);
    } else {
      for (size_t i = from; i < std::min(bytes.size(), from + length); ++i)
        bytes[i] = static_cast<char>(round % 3 == 0 ? 0 : random());
    }
    WriteBytes(folder.witness(), bytes);
    const auto read = WitnessFile::Read(folder.witness());
    if (!read) {
      ASSERT_EQ(read.error().code, ErrorCode::kCorruption);
      ++refused;
      continue;
    }
    ASSERT_TRUE(*read);
    const WitnessSight& sight = **read;
    StoreChain older{.lineage = kLineage, .seq = CommitSeq(newest - 1), .terms = {}, .heads = {}};
    older.heads[older.seq] = Record(newest - 1).head;
    const WitnessPlace place{folder.witness()};
    EXPECT_FALSE(CheckDamage(sight, older.seq, place, "s") &&
                 CheckWitness(sight.record, older, place, "s"))
        << "round " << round << ": commit " << sight.record.seq.value << " of " << newest;
    survived += sight.record.seq.value == newest;
    in_doubt += sight.record.seq.value < newest;
  }
  EXPECT_GT(survived, 100);
  EXPECT_GT(refused, 3);
  EXPECT_GT(in_doubt, 10);
}

TEST(WitnessTest, DamageToOnePlaceLosesNothing) {
  const TestFolder folder;
  {
    const auto file = MustOpenAt(folder.witness(), Record(1));
    for (uint64_t seq = 2; seq <= 5; ++seq) ASSERT_TRUE(file->Write(Record(seq)));
  }
  const std::string whole = Bytes(folder.witness());
  for (size_t place = 0; place < whole.size(); place += 3) {
    std::string bytes = whole;
    bytes[place] = static_cast<char>(bytes[place] ^ 0x40);
    WriteBytes(folder.witness(), bytes);
    const WitnessSight sight = MustRead(folder.witness());
    EXPECT_EQ(sight.record.seq.value, 5u) << place;
    EXPECT_FALSE(sight.in_doubt) << place;
  }
  MustOpenAt(folder.witness(), Record(5));  // heals
  ExpectHolds(folder.witness(), Record(5));
}

TEST(WitnessTest, NothingReadableIsCorruption) {
  const TestFolder folder;
  for (const std::string& bytes :
       {std::string(), std::string("no witness"), std::string(9000, 'x')}) {
    WriteBytes(folder.witness(), bytes);
    const auto read = WitnessFile::Read(folder.witness());
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kCorruption);
    EXPECT_FALSE(WitnessFile::OpenAt(folder.witness(), Record(1)));
    EXPECT_EQ(Bytes(folder.witness()), bytes) << "it is left as it is";
  }
}

// Bytes as programs before 0.1.0 wrote them: a sealed slot of their first format, and a copy of the
// formats after it.
TEST(WitnessTest, OneFromBeforeTheFirstFormatIsRefused) {
  const TestFolder folder;
  ByteWriter slot, copy;
  slot.Put(uint32_t{0x54495754}).Put(uint32_t{1});
  copy.PutString(Seal(std::string("TWIT\5\0\0\0", 8) + std::string(300, 'x')));
  for (const std::string& bytes :
       {Seal(slot.bytes() + std::string(72, 'a')), copy.bytes(),
        Bytes(TACIT_SOURCE_DIR "/tests/fixtures/before-0.1.0/witness")}) {
    WriteBytes(folder.witness(), bytes);
    const auto read = WitnessFile::Read(folder.witness());
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kRefused);
    EXPECT_THAT(read.error().message,
                HasSubstr("witness " + folder.witness() + " was written before 0.1.0"));
    EXPECT_FALSE(WitnessFile::OpenAt(folder.witness(), Record(1)));
    EXPECT_EQ(Bytes(folder.witness()), bytes) << "it is left as it is";
  }
}

TEST(WitnessTest, OneThatIsRemovedIsWrittenAnew) {
  const TestFolder folder;
  const auto file = MustOpenAt(folder.witness(), Record(1));
  ASSERT_TRUE(file->Write(Record(2)));
  fs::remove(folder.witness());
  ASSERT_TRUE(file->Write(Record(3)));
  EXPECT_EQ(file->times_lost(), 1u);
  ExpectHolds(folder.witness(), Record(3));
  ASSERT_TRUE(file->Write(Record(4)));
  EXPECT_EQ(file->times_lost(), 1u);
  ExpectHolds(folder.witness(), Record(4));
  fs::remove_all(folder.root());  // with its folder
  ASSERT_TRUE(file->Write(Record(5)));
  EXPECT_EQ(file->times_lost(), 2u);
  ExpectHolds(folder.witness(), Record(5));
}

TEST(WitnessTest, ACopyPutBackInItsPlaceIsTakenOver) {
  const TestFolder folder;
  const auto file = MustOpenAt(folder.witness(), Record(1));
  ASSERT_TRUE(file->Write(Record(2)));
  fs::copy_file(folder.witness(), folder.root() + "/copy");
  fs::rename(folder.root() + "/copy", folder.witness());
  ASSERT_TRUE(file->Write(Record(3)));
  EXPECT_EQ(file->times_lost(), 1u);
  ExpectHolds(folder.witness(), Record(3));
}

TEST(WitnessTest, AnythingElseInItsPlaceIsRefusedAndLeftAlone) {
  const TestFolder folder;
  const std::string other = folder.root() + "/other";
  WitnessRecord stranger = Record(2);
  stranger.lineage = std::string(32, 'b');
  WitnessRecord fork = Record(2);
  fork.head.fill(99);
  for (const WitnessRecord& there : {stranger, fork, Record(1), Record(3)}) {
    fs::remove(folder.witness());
    const auto file = MustOpenAt(folder.witness(), Record(1));
    ASSERT_TRUE(file->Write(Record(2)));
    MustOpenAt(other, there);
    fs::rename(other, folder.witness());
    const std::string before = Bytes(folder.witness());
    const Status wrote = file->Write(Record(3));
    ASSERT_FALSE(wrote);
    EXPECT_EQ(wrote.error().code, ErrorCode::kRefused);
    EXPECT_THAT(wrote.error().message, HasSubstr("was replaced while the store was open"));
    EXPECT_EQ(Bytes(folder.witness()), before);
  }
  fs::remove(folder.witness());
  const auto file = MustOpenAt(folder.witness(), Record(1));
  fs::remove(folder.witness());
  WriteBytes(folder.witness(), "garbage");
  EXPECT_FALSE(file->Write(Record(2)));
  EXPECT_EQ(Bytes(folder.witness()), "garbage");
}

TEST(WitnessTest, ALinkToAnotherDiskStaysALink) {
  const TestFolder folder;
  fs::create_directory(folder.root() + "/disk");
  fs::create_symlink(folder.root() + "/disk/witness", folder.witness());
  MustOpenAt(folder.root() + "/disk/witness", Record(3));
  const auto file = MustOpenAt(folder.witness(), Record(4));
  ASSERT_TRUE(file->Write(Record(5)));
  EXPECT_EQ(file->times_lost(), 0u);
  EXPECT_TRUE(fs::is_symlink(folder.witness()));
  ExpectHolds(folder.root() + "/disk/witness", Record(5));
}

TEST(WitnessTest, RefusesWhatItHasNotSeen) {
  const auto chain = [](const WitnessRecord& store) {
    StoreChain chain{.lineage = store.lineage, .seq = store.seq, .terms = {}, .heads = {}};
    chain.terms.Add({.first = CommitSeq(1), .id = Record(3).term});
    chain.heads[store.seq] = store.head;
    return chain;
  };
  const auto check = [&](const WitnessRecord& witness, const WitnessRecord& store) {
    return CheckWitness(witness, chain(store), {"w"}, "s").has_value();
  };
  EXPECT_TRUE(check(Record(3), Record(3)));
  EXPECT_TRUE(check(Record(3), Record(4)));   // crash between sync and witness
  EXPECT_TRUE(check(Record(3), Record(9)));   // run without it
  EXPECT_FALSE(check(Record(3), Record(2)));  // an older copy
  WitnessRecord fork = Record(3);
  fork.head.fill(99);
  EXPECT_FALSE(check(Record(3), fork));
  fork.term.fill(77);
  EXPECT_FALSE(check(fork, Record(4)));  // a fork that overtook
  WitnessRecord stranger = Record(4);
  stranger.lineage = std::string(32, 'b');
  EXPECT_FALSE(check(Record(3), stranger));
  EXPECT_TRUE(check(Record(0), stranger));
}

// Blocks and prices are what a restore charges by.
TEST(WitnessTest, RemembersInWhichBlocksStepsCameAndAtWhichPrices) {
  WitnessCopy copy{.write = 1, .distance = 4096, .record = Record(3)};
  WitnessedLearner& learner = copy.record.learners[0];
  WitnessedLearner::Charged earlier = *learner.charged;
  learner.charged->charge.block_steps = 12;
  learner.charged->participation = privacy::ParticipationMode::kAllocate;
  learner.prices = {{{earlier, 10}, {*learner.charged, 20}}};
  const auto decoded = DecodeCopy(EncodeCopy(copy));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->record.learners, copy.record.learners);
  const WitnessedLearner& read = decoded->record.learners[0];
  EXPECT_EQ(read.charged->charge.block_steps, 12u);
  ASSERT_EQ(read.prices.size(), 2u);
  EXPECT_EQ(read.prices.at(0).charged, earlier);
  EXPECT_EQ(read.prices.at(0).steps, 10u);
  EXPECT_EQ(read.prices.at(1).charged, *learner.charged);
  EXPECT_EQ(read.prices.at(1).steps, 20u);
  EXPECT_TRUE(decoded->record.learners[1].prices.empty());
}

TEST(WitnessTest, ACopyOfAnotherFormatIsNotRead) {
  const std::string copy =
      EncodeCopy({.write = 1, .distance = 4096, .record = Record(3)}).substr(sizeof(uint32_t));
  for (const char format : {0, 1, 2}) {
    std::string payload(*Unseal(copy, "a copy"));
    payload[sizeof(uint32_t)] = format;
    EXPECT_EQ(DecodeCopy(ByteWriter().PutString(Seal(payload)).bytes()).has_value(), format == 1);
  }
}

}  // namespace
}  // namespace tacit::store
