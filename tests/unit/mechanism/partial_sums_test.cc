// A period that is summed in parts releases what it would be as a whole, to the last bit, in any
// order of its parts; and bytes that no part has are refused.
#include "mechanism/partial_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>

#include "base/varint.h"
#include "support/fixed_noise.h"
#include "support/flat_sums.h"
#include "support/part_query.h"

namespace tacit::mechanism {
namespace {

using testing::Flat;
using testing::FlatSums;
using ::testing::HasSubstr;

constexpr SumTable kTables[] = {{.first = 0, .rows = 40},
                                {.first = 40, .rows = 1 << 20, .every_row = false},
                                {.first = (1 << 20) + 50, .rows = 7},
                                {.first = (1 << 20) + 60, .rows = 3000, .every_row = false},
                                {.first = (1 << 20) + 4000, .rows = 60}};
constexpr RowSumsOptions kQuery{
    .clip = 2, .noise_multiplier = 0.5, .threshold_deviations = 2, .numbers = 3};

// A unit of some rows; a row may be touched and count for nothing.
struct Event {
  std::vector<uint64_t> rows;
  std::vector<double> sums, counts;
  double number = 0;
};

Event RandomEvent(std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Event unit;
  for (size_t n = random() % 6; n > 0; --n) {
    const SumTable& table = kTables[random() % std::size(kTables)];
    const uint64_t row = table.first + (random() % table.rows >> random() % 20);
    if (std::ranges::count(unit.rows, row) > 0) continue;
    unit.rows.push_back(row);
    unit.sums.push_back(normal(random));
    unit.counts.push_back(random() % 3 == 0 ? 0 : 0.25 * normal(random));
    if (random() % 20 == 0) unit.sums.back() = unit.counts.back() = 0;
  }
  unit.number = normal(random);
  return unit;
}

// The sums of units by a map, and what the map says of a row.
class Oracle {
 public:
  void Add(const RowSums& one, const std::map<uint64_t, uint32_t>& places) {
    for (const auto& [row, place] : places)
      for (uint32_t k = 0; k < 2; ++k) cells_[row][k] += one.sums()[one.SumOf(place) + k];
    for (size_t i = 0; i < kQuery.numbers; ++i) numbers_[i] += one.sums()[RowSums::Number(i)];
  }
  const std::map<uint64_t, std::array<int64_t, 2>>& cells() const { return cells_; }
  const std::array<int64_t, 3>& numbers() const { return numbers_; }

 private:
  std::map<uint64_t, std::array<int64_t, 2>> cells_;
  std::array<int64_t, 3> numbers_{};
};

// Sums whose rows get places as units bring them.
struct Summed {
  RowSums sums{kQuery, kTables};
  std::map<uint64_t, uint32_t> places;

  void Add(const Event& unit) {
    for (const uint64_t row : unit.rows)
      if (!places.contains(row)) places.merge(testing::Touch(kTables, {&row, 1}, &sums));
    UnitVector vector(sums.cells());
    for (size_t i = 0; i < unit.rows.size(); ++i)
      vector.AddPair(sums.SumOf(places[unit.rows[i]]), unit.sums[i], unit.counts[i]);
    for (size_t i = 0; i < kQuery.numbers; ++i)
      vector.Add(RowSums::Number(i), unit.number * static_cast<double>(i));
    sums.Add(vector);
  }
};

PartialSums Sent(const PartialSums& part) {
  const std::string bytes = part.Encode();
  auto read = testing::ReadPart(bytes, kQuery, kTables);
  EXPECT_TRUE(read.has_value()) << read.error().message;
  if (!read) return part;
  EXPECT_EQ(read->Encode(), bytes) << "a part has one form";
  return std::move(*read);
}

PartialSums PartOf(std::span<const Event> units, std::span<const size_t> part_of, size_t part) {
  Summed summed;
  for (size_t i = 0; i < units.size(); ++i)
    if (part_of[i] == part) summed.Add(units[i]);
  return PartialSums(std::move(summed.sums));
}

// Merges random pairs until one part is left.
PartialSums MergedAtRandom(std::vector<PartialSums> parts, std::mt19937_64& random) {
  for (PartialSums& part : parts)
    if (random() % 2 == 0) part = Sent(part);
  while (parts.size() > 1) {
    std::swap(parts[random() % parts.size()], parts.back());
    PartialSums taken = std::move(parts.back());
    parts.pop_back();
    PartialSums& into = parts[random() % parts.size()];
    into.Add(taken);
    if (random() % 4 == 0) into = Sent(into);
  }
  return std::move(parts[0]);
}

void ExpectSame(const FlatSums& a, const FlatSums& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.sums, b.sums);
  EXPECT_EQ(a.counts, b.counts);
  EXPECT_EQ(a.numbers, b.numbers);
}

TEST(PartialSums, ReleaseWhatTheWholePeriodWould) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<Event> units(random() % 400);
    for (Event& unit : units) unit = RandomEvent(random);
    Summed whole;
    Oracle oracle;
    for (const Event& unit : units) {
      whole.Add(unit);
      Summed one;
      one.Add(unit);
      oracle.Add(one.sums, one.places);
    }
    const size_t parts = 1 + random() % 64;
    std::vector<size_t> part_of(units.size());
    for (size_t& part : part_of) part = random() % parts;
    std::vector<PartialSums> cut;
    for (size_t part = 0; part < parts; ++part) cut.push_back(PartOf(units, part_of, part));
    RowSums merged = MergedAtRandom(std::move(cut), random).Open();

    ASSERT_EQ(merged.cells(), whole.sums.cells());
    EXPECT_EQ(merged.CountTouched(), whole.sums.CountTouched());
    EXPECT_EQ(merged.deviation(), whole.sums.deviation());
    for (size_t i = 0; i < kQuery.numbers; ++i)
      EXPECT_EQ(merged.sums()[RowSums::Number(i)], oracle.numbers()[i]);
    uint32_t touched = static_cast<uint32_t>(merged.places());
    for (auto it = oracle.cells().rbegin(); it != oracle.cells().rend(); ++it) {
      const auto& [row, cells] = *it;
      const SumTable* table =
          std::ranges::find_if(kTables, [&](const SumTable& t) { return row < t.first + t.rows; });
      const uint32_t place = table->every_row
                                 ? merged.FirstPlace(static_cast<size_t>(table - kTables)) +
                                       static_cast<uint32_t>(row - table->first)
                                 : --touched;
      EXPECT_EQ(merged.sums()[merged.SumOf(place)], cells[0]) << row;
      EXPECT_EQ(merged.sums()[merged.CountOf(place)], cells[1]) << row;
    }
    auto noise = noise::FixedNoise(1), same = noise::FixedNoise(1);
    ExpectSame(Flat(std::move(merged).Release(noise)), Flat(std::move(whole.sums).Release(same)));
  }
}

TEST(PartialSums, TakeMoreUnitsOnceOpen) {
  std::mt19937_64 random(7);
  Summed whole, first;
  std::vector<Event> units(50);
  for (Event& unit : units) unit = RandomEvent(random);
  for (const Event& unit : units) whole.Add(unit);
  for (const Event& unit : std::span(units).first(20)) first.Add(unit);
  RowSums opened = PartialSums(std::move(first.sums)).Open();
  Summed rest{.sums = std::move(opened), .places = {}};
  // Places of whole tables are as before, touched rows ascend behind them.
  uint32_t place = rest.sums.FirstPlace(4) + static_cast<uint32_t>(kTables[4].rows);
  for (const auto& [row, old] : first.places) {
    const SumTable* table =
        std::ranges::find_if(kTables, [&](const SumTable& t) { return row < t.first + t.rows; });
    rest.places[row] = table->every_row ? old : place++;
  }
  for (const Event& unit : std::span(units).subspan(20)) rest.Add(unit);
  auto noise = noise::FixedNoise(2), same = noise::FixedNoise(2);
  ExpectSame(Flat(std::move(rest.sums).Release(noise)), Flat(std::move(whole.sums).Release(same)));
}

// The memory of sums serves others, and nothing of them stays.
TEST(PartialSums, AreRenewedWithoutUnits) {
  std::mt19937_64 random(8);
  Summed first, fresh;
  for (int i = 0; i < 50; ++i) first.Add(RandomEvent(random));
  PartialSums part(std::move(first.sums));
  Summed renewed{.sums = std::move(part).Renew(), .places = {}};
  ASSERT_EQ(renewed.sums.cells(), fresh.sums.cells());
  EXPECT_EQ(renewed.sums.CountTouched(), 0u);
  for (int i = 0; i < 50; ++i) {
    const Event unit = RandomEvent(random);
    renewed.Add(unit);
    fresh.Add(unit);
  }
  auto noise = noise::FixedNoise(2), same = noise::FixedNoise(2);
  ExpectSame(Flat(std::move(renewed.sums).Release(noise)),
             Flat(std::move(fresh.sums).Release(same)));
}

// The bytes of parts, added to open sums and to the part beside them; some bytes are wrong.
TEST(PartialSums, AddBytesToOpenSums) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Summed whole, open, first, second;
    for (int i = 0; i < 90; ++i) {
      const Event unit = RandomEvent(random);
      whole.Add(unit);
      (i < 30 ? open : i < 60 ? first : second).Add(unit);
    }
    PartialSums beside(kQuery, kTables);
    for (Summed* part : {&first, &second}) {
      const std::string bytes = PartialSums(std::move(part->sums)).Encode();
      for (int i = 0; i < 20; ++i)
        EXPECT_FALSE(beside.AddBytes(bytes.substr(0, random() % bytes.size()), &open.sums));
      EXPECT_FALSE(beside.AddBytes(bytes + "x", &open.sums));
      const Status added = beside.AddBytes(bytes, &open.sums);
      ASSERT_TRUE(added) << added.error().message;
    }
    PartialSums all(std::move(open.sums));
    all.Add(beside);
    EXPECT_EQ(all.Encode(), PartialSums(std::move(whole.sums)).Encode());
  }
}

// By hand from the grammar.
using testing::kPartOptions;
using testing::kPartStep;
using testing::kPartTables;

std::string SmallBytes(std::string_view behind_step, double step = kPartStep) {
  ByteWriter writer;
  writer.Put(step);
  return std::move(writer).Take() + std::string(behind_step);
}
std::string Bytes(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text.push_back(static_cast<char>(byte));
  return text;
}
const std::string kSmallBytes =
    SmallBytes(Bytes({1, 6, 3, 2,    2, 1, 2, 1, 0x80, 1, 3, 2,  // the number, table 0
                      2, 5, 0, 0xc6, 1, 0, 3, 0, 1,    0, 0}));

TEST(PartialSumsBytes, AreOfTheGrammar) {
  ASSERT_EQ(RowSums(kPartOptions, kPartTables).step(), kPartStep);
  EXPECT_EQ(testing::SmallPart().Encode(), kSmallBytes);
  auto read = testing::ReadPart(kSmallBytes);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->Encode(), kSmallBytes);
}

// Events of columns as a linear model has them, whose rows follow Zipf's law.
TEST(PartialSumsBytes, AreFewARow) {
  constexpr size_t kColumns = 10, kEvents = 100'000, kValues = 20'000;
  std::vector<SumTable> tables;
  for (size_t j = 0; j < kColumns; ++j) tables.push_back({.first = j * kValues, .rows = kValues});
  const RowSumsOptions options{.clip = 1, .noise_multiplier = 1};
  const std::vector<double> of_sums(kColumns, 0.25), of_counts(kColumns, 0.06);
  const ColumnWeights weights(options, of_sums, of_counts);
  RowSums sums(options, tables);
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform;
  for (size_t i = 0; i < kEvents; ++i) {
    std::vector<uint32_t> places;
    for (size_t j = 0; j < kColumns; ++j)
      places.push_back(static_cast<uint32_t>(
          j * kValues + static_cast<size_t>(std::pow(kValues, uniform(random))) - 1));
    sums.Add(weights, places, uniform(random) < 0.2 ? 0.8 : -0.2, {});
  }
  const size_t rows = sums.CountTouched();
  const size_t bytes = PartialSums(std::move(sums)).Encode().size();
  EXPECT_GT(rows, kColumns * 5'000);
  EXPECT_LE(static_cast<double>(bytes), 6.0 * static_cast<double>(rows));
}

struct Refusal {
  std::string bytes, words;
};

TEST(PartialSumsBytes, ThatNoPartHasAreRefused) {
  const std::string top = Bytes({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2});   // 2^50
  const std::string past = Bytes({0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 4});  // of 2^50 + 1
  const std::string most = Bytes({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 4});  // of 2^50
  const std::string lost = Bytes({0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2});  // 2^50 + 1
  const std::string least = Bytes({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1});
  const Refusal refusals[] = {
      {SmallBytes(Bytes({1, 6, 3, 0, 0, 0, 0, 0, 0}), 2 * kPartStep), "byte 8: a step of 1.9"},
      {SmallBytes(Bytes({1, 6, 3, 0, 0, 0, 0, 0, 0}), std::nan("")), "byte 8: a step of nan"},
      {SmallBytes(Bytes({2, 6, 6, 3, 0, 0, 0, 0, 0, 0})), "byte 9: 2 further numbers"},
      {SmallBytes(Bytes({1, 6, 2, 0, 0, 0, 0})), "byte 11: 2 tables; this query has 3"},
      {SmallBytes(Bytes({1}) + past + Bytes({3, 0, 0, 0, 0, 0, 0})),
       "byte 17: a sum of 1125899906842625"},
      {SmallBytes(Bytes({1, 6, 3, 1, 1, 5, 2, 1, 0, 0, 0, 0})), "table 0: 5 rows past row 0"},
      {SmallBytes(Bytes({1, 6, 3, 2, 1, 3, 1, 2, 2, 1, 1, 0, 0, 0, 0})),
       "byte 15: table 0: 1 rows past row 4; the table has 5"},
      {SmallBytes(Bytes({1, 6, 3, 2, 1, 3}) + least + Bytes({2, 2, 1, 1, 0, 0, 0, 0})),
       "18446744073709551615 rows past row 4"},
      {SmallBytes(Bytes({1, 6, 3, 1, 1, 0, 0, 0, 0, 0, 0, 0})), "of no sum and no count"},
      {SmallBytes(Bytes({1, 6, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0})), "of no sum and no count"},
      {SmallBytes(Bytes({1, 6, 3, 1, 2, 0, 2, 2, 0, 0, 0, 0})), "2 is not the unit"},
      {SmallBytes(Bytes({1, 6, 3, 1, 0, 0, 2, 2, 0, 0, 0, 0})), "0 is not the unit"},
      {SmallBytes(Bytes({1, 6, 3, 1, 3, 0, 2, 0, 0, 0, 0, 0})), "3 is not the unit"},
      {SmallBytes(Bytes({1, 6, 3, 1}) + lost + Bytes({0, 2, 1, 0, 0, 0, 0})), "in units of"},
      {SmallBytes(Bytes({1, 6, 3, 1}) + top + Bytes({0, 2, 2, 0, 0, 0, 0})), "a count of 2 times"},
      {SmallBytes(Bytes({1, 6, 3, 1, 16, 0, 2}) + least.substr(0, 8) + Bytes({1, 0, 0, 0, 0})),
       "a count of "},
      {SmallBytes(Bytes({1, 6, 3, 0x80, 0x80, 0x80, 4, 1, 0, 2, 1, 0, 0, 0, 0})), "the bytes end"},
      {SmallBytes(Bytes({1, 0x86, 0, 3, 0, 0, 0, 0, 0, 0})), "byte 11: a number is not in its"},
      {kSmallBytes + "x", "bytes follow"}};
  for (const Refusal& refusal : refusals) {
    const auto read = testing::ReadPart(refusal.bytes);
    ASSERT_FALSE(read.has_value()) << refusal.words;
    EXPECT_THAT(read.error().message, HasSubstr(refusal.words));
  }
  // The largest numbers are read.
  const std::string large = SmallBytes(Bytes({1}) + most + Bytes({3, 1}) + top + Bytes({0}) + most +
                                       Bytes({1, 0, 0, 0, 0}));
  const auto read = testing::ReadPart(large);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->Encode(), large);
}

TEST(PartialSumsBytes, EveryPrefixIsRefused) {
  for (size_t n = 0; n < kSmallBytes.size(); ++n) {
    const auto read = testing::ReadPart(kSmallBytes.substr(0, n));
    ASSERT_FALSE(read.has_value()) << n;
    EXPECT_THAT(read.error().message, HasSubstr("the bytes end"));
  }
}

// Sums of hostile parts may be wrong, but they are sums.
TEST(PartialSumsBytes, HostileSumsWrap) {
  const std::string most = Bytes({0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 3});  // of 2^50 - 1
  auto part = testing::ReadPart(SmallBytes(Bytes({1}) + most + Bytes({3, 0, 0, 0, 0, 0, 0})));
  ASSERT_TRUE(part.has_value()) << part.error().message;
  for (int i = 0; i < 20; ++i) part->Add(PartialSums(*part));
  const RowSums sums = std::move(*part).Open();
  EXPECT_EQ(sums.sums()[0], -(int64_t{1} << 20));
}

TEST(PartialSumsDeath, AnotherQueryIsNotAdded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  PartialSums part{RowSums(kPartOptions, kPartTables)};
  EXPECT_DEATH(part.Add(PartialSums(RowSums(kPartOptions, kTables))), "another query");
  RowSumsOptions wider = kPartOptions;
  wider.clip = 2;
  EXPECT_DEATH(part.Add(PartialSums(RowSums(wider, kPartTables))), "another query");
  RowSums others(kPartOptions, kTables);
  EXPECT_DEATH(static_cast<void>(part.AddBytes("", &others)), "another query");
}

}  // namespace
}  // namespace tacit::mechanism
