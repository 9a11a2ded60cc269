#include "feed/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/text.h"
#include "feed/crc32c.h"
#include "support/golden.h"

namespace tacit::feed {
namespace {

using ::testing::HasSubstr;

std::string BytesOfHex(const std::string& hex) {
  std::vector<uint8_t> bytes(hex.size() / 2);
  EXPECT_TRUE(FromHex(hex, bytes)) << hex;
  return {bytes.begin(), bytes.end()};
}

// RFC 3720, appendix B.4.
TEST(Crc32cTest, IsThatOfTheStandard) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c("6789", Crc32c("12345")), Crc32c("123456789"));
}

// Bit by bit, as the standard has it; words and what is left over must give the same.
TEST(Crc32cTest, IsTheSameForEveryLengthAndPlace) {
  std::string bytes;
  for (int i = 0; i < 80; ++i) bytes.push_back(static_cast<char>(i * 37 + 11));
  for (size_t begin = 0; begin < 9; ++begin)
    for (size_t size = 0; begin + size <= bytes.size(); ++size) {
      uint32_t crc = ~0u;
      for (size_t i = begin; i < begin + size; ++i) {
        crc ^= static_cast<uint8_t>(bytes[i]);
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
      }
      EXPECT_EQ(Crc32c(std::string_view(bytes).substr(begin, size)), ~crc) << begin << ' ' << size;
    }
}

RecordPlace PlaceOf(const std::string& kind) {
  if (kind == "row")
    return {.kind = RecordKind::kRow, .learner = 1, .table = 2, .number = 0x0102030405060708};
  if (kind == "block") return {.kind = RecordKind::kBlock, .learner = 2, .table = 1, .number = 3};
  if (kind == "dense") return {.kind = RecordKind::kDense, .learner = 3, .number = 5};
  if (kind == "released") return {.kind = RecordKind::kReleased, .learner = 0xffff};
  if (kind == "ledger") return {.kind = RecordKind::kLedger, .number = 300};
  return {.kind = RecordKind::kVersionEnd};
}

// Written by a transcript of the grammar in another language.
TEST(RecordTest, HasTheBytesOfItsGrammar) {
  for (const auto& cells : tacit::testing::ReadGolden("feed_records")) {
    SCOPED_TRACE(cells[0]);
    const RecordPlace place = PlaceOf(cells[0]);
    RecordOrigin origin{.version = CommitSeq(std::stoull(cells[2])),
                        .model = std::stoull(cells[3])};
    for (size_t i = 0; i < origin.lineage.size(); ++i) origin.lineage[i] = static_cast<uint8_t>(i);
    const std::string payload = BytesOfHex(cells[4]), value = BytesOfHex(cells[5]);
    const std::string key = EncodeKey(place);
    EXPECT_EQ(key, BytesOfHex(cells[1]));
    std::string made;
    const uint32_t checksum = AppendValue(place, origin, payload, &made);
    EXPECT_EQ(made, value);
    const auto read = DecodeRecord(key, value);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->place, place);
    EXPECT_EQ(read->origin, origin);
    EXPECT_EQ(read->payload, payload);
    EXPECT_EQ(read->checksum, checksum);
  }
}

struct Bytes {
  std::string key, value;
};
Bytes RandomRecord(std::mt19937_64& random) {
  RecordPlace place{.kind = static_cast<RecordKind>(random() % 6)};
  const bool of_rows = place.kind == RecordKind::kRow || place.kind == RecordKind::kBlock;
  if (of_rows) place.table = static_cast<uint16_t>(random());
  if (place.kind != RecordKind::kLedger && place.kind != RecordKind::kVersionEnd)
    place.learner = static_cast<uint16_t>(random());
  if (of_rows || place.kind == RecordKind::kLedger) place.number = random();
  if (place.kind == RecordKind::kDense || place.kind == RecordKind::kReleased)
    place.number = static_cast<uint32_t>(random());
  RecordOrigin origin{.version = CommitSeq(random()), .model = random()};
  for (uint8_t& byte : origin.lineage) byte = static_cast<uint8_t>(random());
  std::string payload(random() % 90, '\0');
  for (char& c : payload) c = static_cast<char>(random());
  Bytes bytes{EncodeKey(place), ""};
  AppendValue(place, origin, payload, &bytes.value);
  const auto read = DecodeRecord(bytes.key, bytes.value);
  EXPECT_TRUE(read) << read.error().message;
  if (read) {
    EXPECT_EQ(read->place, place);
    EXPECT_EQ(read->origin, origin);
    EXPECT_EQ(read->payload, payload);
  }
  return bytes;
}

void ExpectRefused(const Bytes& bytes) {
  const auto read = DecodeRecord(bytes.key, bytes.value);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(read.error().message, HasSubstr("is no record of a feed"));
}

TEST(RecordTest, EveryFlippedBitAndEveryCutIsAnError) {
  std::mt19937_64 random(20261126);
  for (int round = 0; round < 60; ++round) {
    const Bytes good = RandomRecord(random);
    for (std::string Bytes::*part : {&Bytes::key, &Bytes::value}) {
      const size_t size = (good.*part).size();
      for (size_t bit = 0; bit < 8 * size; ++bit) {
        Bytes flipped = good;
        (flipped.*part)[bit / 8] = static_cast<char>((flipped.*part)[bit / 8] ^ 1 << bit % 8);
        ExpectRefused(flipped);
      }
      for (size_t left = 0; left < size; ++left) {
        Bytes cut = good;
        (cut.*part).resize(left);
        ExpectRefused(cut);
        Bytes behind = good;
        (behind.*part).erase(0, size - left);
        ExpectRefused(behind);
      }
      Bytes longer = good;
      (longer.*part) += '\0';
      ExpectRefused(longer);
    }
  }
}

TEST(RecordTest, BytesOfOthersAreNamedAsSuch) {
  const Bytes foreign[] = {
      {"", ""},     {"user-17", R"({"item": 4})"},    {"m", ""},
      {"m", "TFR"}, {std::string("r\0", 2), "TFR\1"}, {"m", std::string(1 << 20, 'T')}};
  for (const Bytes& bytes : foreign) ExpectRefused(bytes);
}

// The checksum is right, so it is another program's record and no damage.
TEST(RecordTest, AnotherFormatIsRefusedByItsNumber) {
  std::string value;
  const RecordPlace place{.kind = RecordKind::kVersionEnd};
  AppendValue(place, {}, "payload", &value);
  value[3] = 9;
  value.resize(value.size() - 4);
  const uint32_t checksum = Crc32c(value, Crc32c("m"));
  value.append(reinterpret_cast<const char*>(&checksum), 4);
  const auto read = DecodeRecord("m", value);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kRefused);
  EXPECT_THAT(read.error().message, HasSubstr("format 9, this program reads 1 and 2"));
}

// A version whose rows tell how they moved has records of format 2; all else has the bytes it had.
TEST(FeedRecordTest, RowsThatTellHowTheyMovedAreOfFormat2) {
  const RecordPlace place{.kind = RecordKind::kRow, .learner = 1, .table = 2, .number = 3};
  RecordOrigin origin{.version = CommitSeq(4), .lineage = {}, .model = 5};
  std::string plain, moved;
  AppendValue(place, origin, "floats", &plain);
  origin.moves = true;
  AppendValue(place, origin, "floats", &moved);
  EXPECT_EQ(plain[3], 1);
  EXPECT_EQ(moved[3], 2);
  EXPECT_EQ(plain.substr(4, plain.size() - 8), moved.substr(4, moved.size() - 8));
  EXPECT_FALSE(DecodeRecord(EncodeKey(place), plain).value().origin.moves);
  EXPECT_EQ(DecodeRecord(EncodeKey(place), moved).value().origin, origin);
}

// A chunk of dense parameters as programs before 0.1.0 wrote it: of format 2, under another magic.
TEST(RecordTest, OneFromBeforeTheFirstFormatIsRefused) {
  const std::string key = BytesOfHex("64000300000005"),
                    value = BytesOfHex(
                        "544644020800000000000000000102030405060708090a0b0c0d0e0f0900000000000000"
                        "10000000060000000000803e00000040000040c0b6c259d8");
  const auto read = DecodeRecord(key, value);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kRefused);
  EXPECT_THAT(read.error().message, HasSubstr("was written before 0.1.0"));
  EXPECT_THAT(read.error().message, HasSubstr("make a new topic"));
}

// A length with a right checksum that says more or less than there is.
TEST(RecordTest, ALengthThatDoesNotFitIsAnError) {
  const RecordPlace place{.kind = RecordKind::kVersionEnd};
  std::string good;
  AppendValue(place, {}, "payload", &good);
  constexpr size_t kLengthAt = 36;
  for (const uint32_t length : {0u, 6u, 8u, 11u, 12u, 0x7fffffffu, 0xffffffffu}) {
    std::string value = good.substr(0, good.size() - 4);
    std::memcpy(value.data() + kLengthAt, &length, sizeof(length));
    const uint32_t checksum = Crc32c(value, Crc32c("m"));
    value.append(reinterpret_cast<const char*>(&checksum), 4);
    ExpectRefused({"m", value});
  }
}

TEST(RecordTest, LineagesAreThirtyTwoDigits) {
  const auto id = LineageIdOf("000102030405060708090a0b0c0d0e0f");
  ASSERT_TRUE(id);
  EXPECT_EQ((*id)[15], 15);
  for (const char* wrong : {"", "00", "g00102030405060708090a0b0c0d0e0f"})
    EXPECT_EQ(LineageIdOf(wrong).error().code, ErrorCode::kInvalidArgument) << wrong;
}

}  // namespace
}  // namespace tacit::feed
