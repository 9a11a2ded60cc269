#include "workers/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <random>

#include "base/bytes.h"

namespace tacit::workers {
namespace {

using ::testing::HasSubstr;

constexpr SharedKey kKey{1, 2, 3};

Digest DigestOf(uint8_t first) {
  Digest digest{};
  for (uint8_t& byte : digest) byte = first++;
  return digest;
}

Plan SomePlan() {
  return {.head = DigestOf(1),
          .build = DigestOf(100),
          .version = 812,
          .time_ms = 1795000000000,
          .learners = {{.key = 3, .step = 77}},
          .slices = {{"w1-0a0b", {{0, 10, 20}, {7, 1, 2}}}, {"", {{7, 2, 9}}}}};
}

Body SomeBody() {
  const stream::LastRecord before{.offset = 9, .timestamp_ms = -5, .hash = 0x0102030405060708},
      last{.offset = 18, .timestamp_ms = 6, .hash = 7};
  return {.ranges = {{.range = {0, 10, 20},
                      .before = before,
                      .last = last,
                      .dead = {0, 0, 0, 1},
                      .opted_out = 2,
                      .empty = 3},
                     {.range = {7, 1, 2}, .before = {}, .last = {}, .empty = 1}},
          .sums = "sums of learners"};
}

Origin SomeOrigin() { return {"w1-0a0b", DigestOf(1), DigestOf(100)}; }

Hello SomeHello() {
  return {.origin = SomeOrigin(),
          .version = 812,
          .plan_ms = 1795000000000,
          .number = 77,
          .threads = 8,
          .events_per_second = 430000,
          .offsets = 1000,
          .done = 400,
          .leaves = true,
          .trouble = "the topic's leader is away"};
}

void PutDigest(uint8_t first, ByteWriter* out) {
  for (const uint8_t byte : DigestOf(first)) out->Put(byte);
}

template <class Outcome>
void ExpectRefused(const Outcome& outcome, const std::string& why) {
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(outcome.error().message, HasSubstr(why));
}

// The grammar, field by field.
TEST(WorkersRecordsTest, APlanHasTheBytesOfItsGrammar) {
  ByteWriter out;
  out.Put('T').Put('W').Put('P').Put(uint8_t{1});
  PutDigest(1, &out);
  PutDigest(100, &out);
  out.Put(uint64_t{812}).Put(int64_t{1795000000000});
  out.Put(uint16_t{1}).Put(uint16_t{3}).Put(uint64_t{77});
  out.Put(uint16_t{2}).PutString("w1-0a0b").Put(uint32_t{2});
  out.Put(int32_t{0}).Put(uint64_t{10}).Put(uint64_t{20});
  out.Put(int32_t{7}).Put(uint64_t{1}).Put(uint64_t{2});
  out.PutString("").Put(uint32_t{1}).Put(int32_t{7}).Put(uint64_t{2}).Put(uint64_t{9});
  const Digest mark = PeriodSeal(kKey, DigestOf(1)).MarkOf(out.bytes());
  out.PutArray(std::span<const uint8_t>(mark));
  EXPECT_EQ(EncodePlan(kKey, SomePlan()), out.bytes());
  EXPECT_EQ(DecodePlan(kKey, out.bytes()), SomePlan());
}

TEST(WorkersRecordsTest, ABodyHasTheBytesOfItsGrammar) {
  ByteWriter out;
  out.Put(uint32_t{2}).Put(int32_t{0}).Put(uint64_t{10}).Put(uint64_t{20});
  out.Put(uint8_t{1}).Put(uint64_t{9}).Put(int64_t{-5}).Put(uint64_t{0x0102030405060708});
  out.Put(uint8_t{1}).Put(uint64_t{18}).Put(int64_t{6}).Put(uint64_t{7});
  for (const uint64_t dead : {0, 0, 0, 1, 0, 0, 0}) out.Put(dead);
  out.Put(uint64_t{2}).Put(uint64_t{3});
  out.Put(int32_t{7}).Put(uint64_t{1}).Put(uint64_t{2});
  out.Put(uint8_t{0}).Put(uint8_t{0});
  for (const uint64_t dead : {0, 0, 0, 0, 0, 0, 0}) out.Put(dead);
  out.Put(uint64_t{0}).Put(uint64_t{1});
  const std::string bytes = out.bytes() + "sums of learners";
  EXPECT_EQ(EncodeBody(SomeBody()), bytes);
  EXPECT_EQ(DecodeBody(bytes), SomeBody());
}

TEST(WorkersRecordsTest, ARecordOfSumsHasTheBytesOfItsGrammar) {
  const std::string body = EncodeBody(SomeBody());
  const PeriodSeal seal(kKey, DigestOf(1));
  const BodyName name = seal.NameOf(body);
  ByteWriter key, clear;
  key.Put('c');
  for (uint8_t i = 1; i <= 8; ++i) key.Put(i);
  key.PutArray(std::span<const uint8_t>(name).first(8)).Put(uint32_t{0});
  clear.Put('T').Put('W').Put('S').Put(uint8_t{1}).Put(uint8_t{0}).PutString("w1-0a0b");
  PutDigest(1, &clear);
  PutDigest(100, &clear);
  clear.PutArray(std::span<const uint8_t>(name)).Put(uint64_t{body.size()}).Put(uint32_t{0});
  const auto records = SealBody(kKey, SomeOrigin(), body);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].key, key.bytes());
  ASSERT_TRUE(records[0].value.starts_with(clear.bytes()));
  ByteWriter associated;
  associated.PutString(key.bytes());
  EXPECT_EQ(seal.Open(records[0].value.substr(clear.size()), associated.bytes() + clear.bytes()),
            body);
  const auto read = ReadSums(records[0].key, records[0].value);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->origin, SomeOrigin());
  EXPECT_EQ(read->place, (ChunkPlace{.body = name, .bytes = body.size(), .chunk = 0}));
  EXPECT_EQ(OpenChunk(seal, *read), body);
}

TEST(WorkersRecordsTest, AHelloComesThrough) {
  const KafkaRecord record = SealHello(kKey, SomeHello());
  EXPECT_EQ(record.key, "hw1-0a0b");
  const auto read = ReadSums(record.key, record.value);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_FALSE(read->place);
  EXPECT_EQ(OpenHello(kKey, *read), SomeHello());
}

TEST(WorkersRecordsTest, ALongBodyIsCutIntoChunks) {
  for (const uint64_t size : {kChunkBytes - 1, kChunkBytes, kChunkBytes + 1, 3 * kChunkBytes}) {
    SCOPED_TRACE(size);
    std::string body(size, 'x');
    body[size / 2] = 'y';
    const PeriodSeal seal(kKey, DigestOf(1));
    const auto records = SealBody(kKey, SomeOrigin(), body);
    EXPECT_EQ(records.size(), (size + kChunkBytes - 1) / kChunkBytes);
    std::string whole;
    for (const KafkaRecord& record : records) {
      EXPECT_LT(record.value.size(), 1'000'000u);
      const auto read = ReadSums(record.key, record.value);
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(read->place->chunk * kChunkBytes, whole.size());
      whole += OpenChunk(seal, *read).value();
    }
    EXPECT_EQ(whole, body);
  }
}

TEST(WorkersRecordsTest, EveryFlippedBitAndEveryCutOfAPlanIsRefused) {
  const std::string good = EncodePlan(kKey, SomePlan());
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(DecodePlan(kKey, flipped)) << bit;
  }
  for (size_t left = 0; left < good.size(); ++left)
    ExpectRefused(DecodePlan(kKey, good.substr(0, left)), "is no plan of workers");
  ExpectRefused(DecodePlan(kKey, good + '\0'), "there are more bytes");
  ExpectRefused(DecodePlan({}, good),
                "mark at byte 181: it was made with another workers.key_file");
}

// A broker may change all that it sees, and move a record to another place.
TEST(WorkersRecordsTest, EveryFlippedBitAndEveryCutOfSumsIsRefused) {
  const PeriodSeal seal(kKey, DigestOf(1));
  const auto opens = [&](const KafkaRecord& record) {
    const auto read = ReadSums(record.key, record.value);
    if (!read) return false;
    return read->place ? OpenChunk(seal, *read).has_value() : OpenHello(kKey, *read).has_value();
  };
  const KafkaRecord chunk = SealBody(kKey, SomeOrigin(), EncodeBody(SomeBody()))[0];
  for (const KafkaRecord& good : {chunk, SealHello(kKey, SomeHello())}) {
    ASSERT_TRUE(opens(good));
    for (std::string KafkaRecord::*part : {&KafkaRecord::key, &KafkaRecord::value}) {
      const size_t size = (good.*part).size();
      for (size_t bit = 0; bit < 8 * size; ++bit) {
        KafkaRecord flipped = good;
        (flipped.*part)[bit / 8] = static_cast<char>((flipped.*part)[bit / 8] ^ 1 << bit % 8);
        EXPECT_FALSE(opens(flipped)) << bit;
      }
      for (size_t left = 0; left < size; ++left) {
        KafkaRecord cut = good;
        (cut.*part).resize(left);
        EXPECT_FALSE(opens(cut)) << left;
      }
      KafkaRecord longer = good;
      (longer.*part) += '\0';
      EXPECT_FALSE(opens(longer));
    }
  }
  const auto two = SealBody(kKey, SomeOrigin(), std::string(2 * kChunkBytes, 'x'));
  EXPECT_FALSE(opens({two[0].key, two[1].value}));
}

TEST(WorkersRecordsTest, PlantedSumsAreInNoByte) {
  const std::string planted = "a sum that nobody may read";
  std::string body(3 * kChunkBytes / 2, '\0');
  for (size_t at = 0; at + 64 < body.size(); at += 4096) body.replace(at, planted.size(), planted);
  Hello hello = SomeHello();
  hello.trouble = planted;
  std::vector<KafkaRecord> topic = SealBody(kKey, SomeOrigin(), body);
  topic.push_back(SealHello(kKey, hello));
  for (const KafkaRecord& record : topic)
    for (size_t at = 0; at + 8 <= planted.size(); ++at)
      for (const std::string& bytes : {record.key, record.value})
        EXPECT_EQ(bytes.find(planted.substr(at, 8)), std::string::npos) << at;
  // The search finds what lies open.
  hello.origin.worker = planted;
  EXPECT_NE(SealHello(kKey, hello).value.find(planted), std::string::npos);
}

TEST(WorkersRecordsTest, EqualSumsAreSealedAnewEachTime) {
  const std::string body = EncodeBody(SomeBody());
  const auto one = SealBody(kKey, SomeOrigin(), body), other = SealBody(kKey, SomeOrigin(), body);
  EXPECT_EQ(one[0].key, other[0].key);
  EXPECT_NE(one[0].value, other[0].value);
}

TEST(WorkersRecordsTest, AnotherFormatNeedsANewerProgram) {
  KafkaRecord sums = SealHello(kKey, SomeHello());
  sums.value[3] = 2;
  std::string plan = EncodePlan(kKey, SomePlan());
  plan[3] = 9;
  for (const Error& error :
       {ReadSums(sums.key, sums.value).error(), DecodePlan(kKey, plan).error()}) {
    EXPECT_EQ(error.code, ErrorCode::kRefused);
    EXPECT_THAT(error.message, HasSubstr("this program reads 1: it needs a newer program"));
  }
}

// A place is in the clear: it is checked before a chunk is opened.
TEST(WorkersRecordsTest, APlaceOutsideItsBodyIsRefused) {
  const KafkaRecord good = SealBody(kKey, SomeOrigin(), std::string(kChunkBytes, 'x'))[0];
  const auto read = [&](uint64_t bytes, uint32_t chunk) {
    KafkaRecord record = good;
    std::memcpy(record.value.data() + 96, &bytes, sizeof(bytes));
    std::memcpy(record.value.data() + 104, &chunk, sizeof(chunk));
    std::memcpy(record.key.data() + 17, &chunk, sizeof(chunk));
    return ReadSums(record.key, record.value);
  };
  EXPECT_TRUE(read(kChunkBytes, 0));
  EXPECT_TRUE(read(kBodyBytesMost, 2047));
  ExpectRefused(read(kBodyBytesMost + 1, 0), "bytes at byte 96: the body is too long");
  ExpectRefused(read(kBodyBytesMost, 2048), "chunk at byte 104: the chunk lies behind the body");
  ExpectRefused(read(kChunkBytes, 1), "chunk at byte 104: the chunk lies behind the body");
  ExpectRefused(read(0, 0), "chunk at byte 104: the chunk lies behind the body");
  ExpectRefused(ReadSums(good.key + "x", good.value), "the record's key is another");
}

// A worker with a fault may seal all of these: each is refused by field and offset.
TEST(WorkersRecordsTest, ABodyThatDoesNotAddUpIsRefused) {
  const auto refused = [](auto change, const std::string& why) {
    Body body = SomeBody();
    change(&body);
    ExpectRefused(DecodeBody(EncodeBody(body)), "is no body of sums: " + why);
  };
  refused([](Body* b) { b->ranges.clear(); }, "ranges at byte 0: there are too few");
  refused([](Body* b) { b->ranges[0].range.partition = -1; }, "partition at byte 4: it is below 0");
  refused([](Body* b) { b->ranges[0].range.end = 10; }, "end at byte 16: the range is empty");
  refused([](Body* b) { b->ranges[0].range.partition = 7; },
          "end at byte 158: the ranges are out of order");
  refused([](Body* b) { b->ranges[0].before->offset = 10; },
          "before at byte 25: the record does not lie before the end");
  refused([](Body* b) { b->ranges[0].last->offset = 20; },
          "last at byte 50: the record does not lie before the end");
  refused([](Body* b) { b->ranges[0].last->offset = 9; },
          "last at byte 66: it is not the record before the range");
  refused([](Body* b) { b->ranges[0].last.reset(); },
          "last at byte 49: it is not the record before the range");
  refused([](Body* b) { b->ranges[0].dead[0] = 11; },
          "dead at byte 74: it counts more offsets than the range has");
  refused([](Body* b) { b->ranges[0].dead[6] = 10; },
          "dead at byte 122: it counts more offsets than the range has");
  refused([](Body* b) { b->ranges[0].opted_out = 10; },
          "opted_out at byte 130: it counts more offsets than the range has");
  refused([](Body* b) { b->ranges[0].opted_out = ~uint64_t{0}; },
          "opted_out at byte 130: it counts more offsets than the range has");
  refused([](Body* b) { b->ranges[0].empty = 8; },
          "empty at byte 138: it counts more offsets than the range has");
  refused([](Body* b) { b->ranges[1].empty = 0; },
          "empty at byte 232: it does not go with the last record");
  const std::string good = EncodeBody(SomeBody());
  for (size_t left = 0; left < good.size() - SomeBody().sums.size(); ++left)
    ExpectRefused(DecodeBody(good.substr(0, left)), "the bytes end there");
  std::string flag = good;
  flag[24] = 2;
  ExpectRefused(DecodeBody(flag), "before at byte 24: a flag is 0 or 1");
}

TEST(WorkersRecordsTest, PartsOfLearnersAreReadBack) {
  const std::vector<LearnerPart> parts = {{3, "abc"}, {4, ""}, {900, std::string(1000, 'x')}};
  const std::string good = EncodeParts(parts);
  EXPECT_EQ(good.substr(0, 11), std::string("\3\0"
                                            "\3\0"
                                            "\3\0\0\0"
                                            "abc",
                                            11));
  EXPECT_EQ(DecodeParts(good).value(), parts);
  EXPECT_TRUE(DecodeParts(EncodeParts({})).value().empty());
  for (size_t left = 0; left < good.size(); ++left)
    ExpectRefused(DecodeParts(good.substr(0, left)), "the bytes end there");
  ExpectRefused(DecodeParts(good + "x"), "the end at byte 1023: there are more bytes");
  ExpectRefused(DecodeParts(EncodeParts({{3, ""}, {3, ""}})),
                "key at byte 8: the keys are out of order");
}

TEST(WorkersRecordsTest, AHelloOrAPlanThatDoesNotAddUpIsRefused) {
  const auto hello = [](auto change) {
    Hello told = SomeHello();
    change(&told);
    const KafkaRecord record = SealHello(kKey, told);
    const auto read = ReadSums(record.key, record.value);
    return read ? OpenHello(kKey, *read) : Fail(read.error());
  };
  for (const int64_t ms : {int64_t{-1}, kPlanTimeMost + 1})
    ExpectRefused(hello([&](Hello* h) { h->plan_ms = ms; }),
                  "plan at byte 8: it is no time of a plan");
  EXPECT_TRUE(hello([](Hello* h) { h->plan_ms = kPlanTimeMost; }));
  ExpectRefused(hello([](Hello* h) { h->done = 1001; }),
                "done at byte 42: more is done than was in hand");
  ExpectRefused(hello([](Hello* h) { h->trouble.resize(1025); }),
                "trouble at byte 51: it is too long");
  ExpectRefused(hello([](Hello* h) { h->origin.worker = ""; }), "worker at byte 5: it is empty");
  ExpectRefused(hello([](Hello* h) { h->origin.worker.assign(101, 'w'); }),
                "worker at byte 5: it is too long");
  const KafkaRecord form = SealHello(kKey, SomeHello());
  SealedRecord longer = ReadSums(form.key, form.value).value();
  const PeriodSeal seal(kKey, DigestOf(1));
  const std::string sealed =
      seal.Seal(seal.Open(longer.sealed, longer.associated).value() + '\0', longer.associated);
  longer.sealed = sealed;
  ExpectRefused(OpenHello(kKey, longer), "the end at byte 81: there are more bytes");
  const auto plan = [](auto change) {
    Plan made = SomePlan();
    change(&made);
    return DecodePlan(kKey, EncodePlan(kKey, made));
  };
  ExpectRefused(plan([](Plan* p) { p->slices[0].worker.assign(101, 'w'); }),
                "worker at byte 98: it is too long");
  ExpectRefused(plan([](Plan* p) { p->slices[0].worker = "w 1"; }),
                "worker at byte 98: it has other letters than a name");
  ExpectRefused(plan([](Plan* p) {
                  p->slices[0].ranges[1] = {0, 19, 30};
                }),
                "end at byte 145: the ranges are out of order");
  ExpectRefused(plan([](Plan* p) { p->slices[1].ranges.assign(kRangesMost - 1, {}); }),
                "ranges at byte 157: there are too few or too many");
  ExpectRefused(plan([](Plan* p) { p->slices[1].ranges.clear(); }),
                "ranges at byte 157: there are too few or too many");
}

// A stranger writes names too, and people read them in a log and on a terminal.
TEST(WorkersRecordsTest, ANameHasLettersDigitsAndFewMore) {
  const auto read = [](const std::string& worker, bool is_hello) {
    Hello hello = SomeHello();
    hello.origin.worker = worker;
    const KafkaRecord record =
        is_hello ? SealHello(kKey, hello) : SealBody(kKey, hello.origin, "a body")[0];
    return ReadSums(record.key, record.value);
  };
  for (const bool hello : {true, false}) {
    for (int letter = 0; letter < 256; ++letter) {
      const bool good = std::strchr("._-", letter) != nullptr || (std::isalnum(letter) != 0);
      const auto record = read(std::string("w1-") + static_cast<char>(letter), hello);
      if (good && letter != 0)
        EXPECT_TRUE(record) << letter;
      else
        ExpectRefused(record, "worker at byte 5: it has other letters than a name");
    }
    EXPECT_TRUE(read(std::string(100, 'w'), hello));
    ExpectRefused(read(std::string(101, 'w'), hello), "worker at byte 5: it is too long");
  }
}

Body RandomBody(std::mt19937_64& random) {
  Body body;
  uint64_t at = random() % 1000;
  for (uint64_t i = 0; i <= random() % 5; ++i) {
    SummedRange summed{.range = {static_cast<int32_t>(random() % 2 + 2 * i), at, 0}};
    summed.range.end = at + 1 + random() % 9;
    if (at > 0 && random() % 2 == 0)
      summed.before = {random() % at, static_cast<int64_t>(random()), random()};
    summed.empty = random() % (summed.range.size() + 1);
    uint64_t& dead = summed.dead[random() % summed.dead.size()];
    dead = summed.range.size() - summed.empty;
    summed.last = summed.before;
    if (dead > 0)
      summed.last = {at + random() % summed.range.size(), static_cast<int64_t>(random()), random()};
    body.ranges.push_back(summed);
    at = summed.range.end + random() % 2;
  }
  for (uint64_t left = random() % 40; left > 0; --left)
    body.sums.push_back(static_cast<char>(random()));
  return body;
}

TEST(WorkersRecordsTest, RandomBodiesComeThrough) {
  std::mt19937_64 random(20261129);
  for (int round = 0; round < 5000; ++round) {
    const Body body = RandomBody(random);
    const auto read = DecodeBody(EncodeBody(body));
    ASSERT_TRUE(read) << round << ": " << read.error().message;
    EXPECT_EQ(*read, body) << round;
  }
}

}  // namespace
}  // namespace tacit::workers
