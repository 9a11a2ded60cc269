#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "base/cpu.h"
#include "event/codec.h"
#include "event/tab_scan.h"
#include "event/wide_fields.h"
#include "support/criteo_schema.h"
#include "support/real_data.h"
#include "support/scoped_variable.h"

namespace tacit::event {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kBuckets[] = {100, 200};

FeatureSchema SmallSchema() { return CriteoSchema(4, kBuckets); }

// The result of some records: the examples and the dead letters.
struct Decoded {
  Batch batch;
  std::vector<DeadLetter> dead;
};

RawRecords Records(const std::vector<std::string>& lines) {
  RawRecords records;
  records.first_offset = 1000;
  records.origin = "a.tsv";
  records.origin_line = 11;
  for (const std::string& line : lines) {
    records.bytes += line;
    records.end.push_back(static_cast<uint32_t>(records.bytes.size()));
  }
  return records;
}

Decoded Decode(const FeatureSchema& schema, const RawRecords& records) {
  const FeatureTransform transform(schema);
  const auto codec = MakeCriteoTsvCodec(transform);
  Decoded decoded;
  transform.StartBatch(&decoded.batch);
  codec->Decode(records, &decoded.batch, &decoded.dead);
  return decoded;
}

Decoded Decode(const std::vector<std::string>& lines) {
  return Decode(SmallSchema(), Records(lines));
}

std::string ReasonOf(const std::string& line) {
  const Decoded decoded = Decode({line});
  EXPECT_EQ(decoded.batch.size() + decoded.dead.size(), 1u);
  EXPECT_EQ(decoded.batch.dense.size(), decoded.batch.size() * 4);
  EXPECT_EQ(decoded.batch.slot_end.size(), decoded.batch.size() * 2);
  return decoded.dead.empty() ? "" : decoded.dead[0].reason;
}

TEST(CriteoTsvTest, DecodesLabelsNumbersAndCategories) {
  const Decoded decoded = Decode({"1\t3\t-2\t\t0\tab\t", "0\t\t\t\t70000\t\tcd"});
  ASSERT_TRUE(decoded.dead.empty());
  const FeatureTransform transform(SmallSchema());
  const Batch& batch = decoded.batch;
  EXPECT_THAT(batch.label, ElementsAre(1.0f, 0.0f));
  EXPECT_THAT(batch.offset, ElementsAre(1000u, 1001u));
  EXPECT_THAT(batch.dense,
              ElementsAre(static_cast<float>(std::log1p(3.0)), static_cast<float>(-std::log1p(2.0)),
                          0.0f, 0.0f, 0.0f, 0.0f, 0.0f, static_cast<float>(std::log1p(70000.0))));
  EXPECT_THAT(batch.slot_end, ElementsAre(1u, 2u, 3u, 4u));
  EXPECT_THAT(batch.row, ElementsAre(transform.Row(0, "ab"), 100u, 0u, transform.Row(1, "cd")));
}

TEST(CriteoTsvTest, AMissingNumberIsNotAZero) {
  const Decoded decoded = Decode({"1\t3\t-2\t\t0\tab\t"});
  ASSERT_TRUE(decoded.dead.empty());
  EXPECT_TRUE(std::signbit(decoded.batch.dense[2]));
  EXPECT_FALSE(std::signbit(decoded.batch.dense[3]));
}

TEST(CriteoTsvTest, ACarriageReturnAtTheEndIsIgnored) {
  const Decoded with = Decode({"1\t3\t-2\t\t0\tab\tcd\r", "0\t1\t1\t1\t1\t\t\r"});
  const Decoded without = Decode({"1\t3\t-2\t\t0\tab\tcd", "0\t1\t1\t1\t1\t\t"});
  EXPECT_TRUE(with.dead.empty());
  EXPECT_EQ(with.batch.row, without.batch.row);
}

TEST(CriteoTsvTest, ReasonsNameTheColumn) {
  EXPECT_EQ(ReasonOf("1\t3\t4\t5\tabc\tx\ty"), "column 5 (I4): is not an integer");
  EXPECT_EQ(ReasonOf("2\t3\t4\t5\t6\tx\ty"), "column 1 (label): is neither 0 nor 1");
  EXPECT_EQ(ReasonOf("\t3\t4\t5\t6\tx\ty"), "column 1 (label): is neither 0 nor 1");
  EXPECT_EQ(ReasonOf("1\t3\t4\t5\t6\tx"), "6 columns, 7 expected");
  EXPECT_EQ(ReasonOf("1\t3\t4\t5\t6\tx\ty\tz"), "8 columns, 7 expected");
  EXPECT_EQ(ReasonOf(""), "1 column, 7 expected");
}

TEST(CriteoTsvTest, IntegersAreStrict) {
  for (const std::string bad :
       {"1.5", "+1", "-", "--1", " 1", "1 ", "0x1", "1e3", "9223372036854775808",
        "-9223372036854775808", "00000000000000000001"})
    EXPECT_THAT(ReasonOf("1\t" + bad + "\t\t\t\tx\ty"), HasSubstr("column 2 (I1)")) << bad;
  for (const std::string good : {"0", "-0", "007", "9223372036854775807", "-9223372036854775807"})
    EXPECT_EQ(ReasonOf("1\t" + good + "\t\t\t\tx\ty"), "") << good;
}

TEST(CriteoTsvTest, OddBytesAreHarmless) {
  const std::string nul(1, '\0');
  EXPECT_EQ(ReasonOf("1\t" + nul + "\t\t\t\tx\ty"), "column 2 (I1): is not an integer");
  EXPECT_EQ(ReasonOf("1\t\t\t\t\tx" + nul + "\t\xff\xfe"), "");
  EXPECT_NE(Decode({"1\t\t\t\t\tx" + nul + "\ty"}).batch.row[0],
            Decode({"1\t\t\t\t\tx\ty"}).batch.row[0]);
  // A long value is a value in a category, and shown in short where it is wrong.
  const std::string endless(1 << 20, '7');
  EXPECT_EQ(ReasonOf("1\t\t\t\t\t" + endless + "\ty"), "");
  EXPECT_LT(ReasonOf("1\t" + endless + "\t\t\t\tx\ty").size(), 100u);
}

TEST(CriteoTsvTest, BadRecordsLeaveNoTraceBetweenGoodOnes) {
  const std::string a = "1\t1\t2\t3\t4\tx\ty", b = "0\t5\t\t\t\tz\t";
  const Decoded good = Decode({a, b});
  const Decoded mixed = Decode({"1\t1\t2\tq\t4\tx\ty", a, "1\t2", b, "5" + a});
  EXPECT_EQ(mixed.batch.dense, good.batch.dense);
  EXPECT_EQ(mixed.batch.row, good.batch.row);
  EXPECT_EQ(mixed.batch.slot_end, good.batch.slot_end);
  EXPECT_THAT(mixed.batch.offset, ElementsAre(1001u, 1003u));
  ASSERT_EQ(mixed.dead.size(), 3u);
  EXPECT_EQ(mixed.dead[1].origin, "a.tsv");
  EXPECT_EQ(mixed.dead[1].line, 13u);
  EXPECT_EQ(mixed.dead[1].offset, 1002u);
}

TEST(CriteoTsvTest, FaultsOfTheSourceBecomeDeadLetters) {
  RawRecords records = Records({"1\t1\t2\t3\t4\tx\ty", "", "0\t5\t\t\t\tz\t"});
  records.faults = {{1, "the record is longer than 5 bytes"}};
  const Decoded decoded = Decode(SmallSchema(), records);
  EXPECT_THAT(decoded.batch.offset, ElementsAre(1000u, 1002u));
  ASSERT_EQ(decoded.dead.size(), 1u);
  EXPECT_EQ(decoded.dead[0].reason, "the record is longer than 5 bytes");
}

TEST(CriteoTsvTest, SetsHaveCommasBetweenTheirValues) {
  FeatureSchema schema = SmallSchema();
  schema.categorical[0].multi_hot = true;
  schema.categorical[0].max_values = 2;
  const Decoded decoded =
      Decode(schema, Records({"1\t\t\t\t\ta,b,c\ty", "1\t\t\t\t\t,a,\ty", "1\t\t\t\t\t\ta,b"}));
  const FeatureTransform transform(schema);
  const uint64_t a = transform.Row(0, "a"), b = transform.Row(0, "b"), y = transform.Row(1, "y");
  EXPECT_THAT(decoded.batch.row, ElementsAre(a, b, y, a, y, 0u, transform.Row(1, "a,b")));
  EXPECT_THAT(decoded.batch.slot_end, ElementsAre(2u, 3u, 4u, 5u, 6u, 7u));
}

// The decoder against a naive one on random records made of what may confuse it.
TEST(CriteoTsvTest, AgreesWithANaiveDecoder) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const FeatureTransform transform(SmallSchema());
  const std::vector<std::string> fields = {"", "0", "1", "-5", "1023", "1024", "99999999999", "x"};
  size_t good = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> columns{random() % 8 == 0 ? "x" : std::to_string(random() % 2)};
    const size_t count = random() % 16 == 0 ? random() % 12 : 6;
    for (size_t i = 0; i < count; ++i) {
      const bool text = i >= 4;
      columns.push_back(fields[random() % (text || random() % 8 == 0 ? fields.size() : 7)]);
    }
    std::string line = columns[0];
    for (size_t i = 1; i < columns.size(); ++i) line += "\t" + columns[i];
    bool expect_good = columns.size() == 7 && columns[0] != "x";
    for (size_t i = 1; expect_good && i < 5; ++i) expect_good = columns[i] != "x";
    const Decoded decoded = Decode({line});
    ASSERT_EQ(decoded.dead.empty(), expect_good) << line;
    if (!expect_good) continue;
    ++good;
    for (size_t i = 0; i < 4; ++i) {
      const std::string& field = columns[1 + i];
      const auto value = field.empty() ? std::nullopt : std::optional<double>(std::stod(field));
      ASSERT_EQ(decoded.batch.dense[i], transform.Dense(i, value)) << line;
    }
    ASSERT_EQ(decoded.batch.row[0], transform.Row(0, columns[5]));
    ASSERT_EQ(decoded.batch.row[1], transform.Row(1, columns[6]));
  }
  EXPECT_GT(good, 1000u);
}

// An integer of any length, with the record's end near or far, against the standard library.
TEST(CriteoTsvTest, IntegersAreReadAsTheStandardLibraryReadsThem) {
  std::mt19937 random(11);
  const FeatureTransform transform(SmallSchema());
  size_t good = 0, bad = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string field(random() % 22, '0');
    for (char& c : field) c = static_cast<char>('0' + random() % 10);
    if (!field.empty() && random() % 4 == 0) field[0] = '-';
    if (!field.empty() && random() % 4 == 0)
      field[random() % field.size()] =
          static_cast<char>("-+ ./:;az\0\x7f\x80\xb5\xff"[random() % 14]);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    const bool minimum = value == INT64_MIN;  // its digits alone are beyond 64 bits
    const bool expect_good = error == std::errc() && end == field.data() + field.size() &&
                             !minimum && field.size() <= 19 + (field[0] == '-' ? 1u : 0u);
    const std::string line = "1\t\t\t\t" + field + "\t\t" + std::string(random() % 12, 'v');
    const Decoded decoded = Decode({line});
    ASSERT_EQ(decoded.dead.empty(), expect_good || field.empty()) << '"' << field << '"';
    ++(expect_good ? good : bad);
    if (!expect_good) continue;
    ASSERT_EQ(decoded.batch.dense[3], transform.Dense(3, static_cast<double>(value))) << field;
  }
  EXPECT_GT(good, 10'000u);
  EXPECT_GT(bad, 3000u);
}

// A field of a log, good or bad, of any length near 8.
std::string RandomField(bool number, std::mt19937& random) {
  if (random() % 4 == 0) return "";
  if (random() % 400 == 0) return random() % 2 == 0 ? "-" : "--1";
  std::string field = number && random() % 3 == 0 ? "-" : "";
  const size_t length = random() % 3 == 0 ? 8 : 1 + random() % 11;
  while (field.size() < length)
    field += static_cast<char>(number ? '0' + random() % 10 : 33 + random() % 200);
  if (number && random() % 200 == 0) field[random() % length] = "/:x \x80\xff"[random() % 6];
  return field;
}

// Eight fields at once and one by one: the same examples and the same dead letters.
TEST(CriteoTsvTest, AnOlderProcessorReadsTheSame) {
  std::mt19937 random(11);
  size_t good = 0, bad = 0;
  for (const size_t slots : {0, 1, 7, 8, 9, 26}) {
    for (const size_t numbers : {0, 1, 8, 13}) {
      if (numbers + slots == 0) continue;
      std::vector<uint64_t> buckets;
      for (size_t i = 0; i < slots; ++i)
        buckets.push_back(2 + (random() >> random() % 31) % UINT32_MAX);
      const FeatureSchema schema = CriteoSchema(numbers, buckets);
      std::vector<std::string> lines;
      for (size_t line = 0; line < 400; ++line) {
        lines.emplace_back(random() % 50 == 0 ? "" : random() % 2 == 0 ? "0" : "1");
        for (size_t i = 0; i < numbers; ++i) lines.back() += '\t' + RandomField(true, random);
        for (size_t i = 0; i < slots; ++i) lines.back() += '\t' + RandomField(false, random);
        if (random() % 60 == 0) lines.back() += '\t';
        if (random() % 5 == 0) lines.back() += '\r';
      }
      const Decoded here = Decode(schema, Records(lines));
      const test::ScopedVariable older("TACIT_TEST_NO_AVX512", "1");
      const Decoded there = Decode(schema, Records(lines));
      ASSERT_EQ(here.batch.offset, there.batch.offset);
      ASSERT_EQ(here.batch.label, there.batch.label);
      ASSERT_EQ(here.batch.slot_end, there.batch.slot_end);
      ASSERT_EQ(here.batch.row, there.batch.row);
      const auto bits = [](float x) { return std::bit_cast<uint32_t>(x); };
      ASSERT_TRUE(std::ranges::equal(here.batch.dense, there.batch.dense, {}, bits, bits));
      ASSERT_TRUE(
          std::ranges::equal(here.dead, there.dead, {}, &DeadLetter::reason, &DeadLetter::reason));
      good += here.batch.size(), bad += here.dead.size();
    }
  }
  EXPECT_GT(good, 4000u);
  EXPECT_GT(bad, 500u);
}

TEST(TabScanTest, BothVersionsFindTheSameTabs) {
  std::mt19937 random(7);
  for (size_t size = 0; size < 400; ++size) {
    std::string text(size, 'x');
    const bool dense = random() % 4 == 0;  // up to 64 tabs in 64 bytes
    for (char& c : text) c = dense && random() % 8 != 0 ? '\t' : "\tab\0\x89"[random() % 5];
    for (const size_t room : {0, 20, 64, 84, 500}) {
      std::vector<uint32_t> fast(room), portable(room);
      const size_t found = FindTabs(text, fast);
      ASSERT_EQ(found, std::count(text.begin(), text.end(), '\t'));
      ASSERT_EQ(found, FindTabsPortable(text, portable));
      const size_t written = std::min(found, room);
      ASSERT_TRUE(
          std::ranges::equal(std::span(fast).first(written), std::span(portable).first(written)))
          << size << " bytes, room for " << room;
      if (!ThisCpu().avx512) continue;
      std::vector<uint32_t> wide(room);
      ASSERT_EQ(found, FindTabsWide(text, wide));
      ASSERT_TRUE(
          std::ranges::equal(std::span(wide).first(written), std::span(portable).first(written)))
          << size << " bytes, room for " << room;
    }
  }
}

TEST(CriteoTsvTest, RealCriteoRowsDecodeWithoutDeadLetters) {
  const std::string data = test::RealData("criteo_first8000_raw.tsv");
  if (data.empty()) GTEST_SKIP() << "needs ../shared/data/criteo_first8000_raw.tsv";
  std::ifstream file(data);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  const std::vector<uint64_t> buckets(26, 10000);
  const Decoded decoded = Decode(CriteoSchema(13, buckets), Records(lines));
  EXPECT_EQ(decoded.batch.size(), 8000u);
  EXPECT_TRUE(decoded.dead.empty());
  double clicks = 0;
  for (const float label : decoded.batch.label) clicks += label;
  EXPECT_EQ(clicks, std::count_if(lines.begin(), lines.end(), [](auto& l) { return l[0] == '1'; }));
}

}  // namespace
}  // namespace tacit::event
