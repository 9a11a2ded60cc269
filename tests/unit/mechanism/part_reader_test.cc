// Bytes are read as a loop reads them that takes one number after the other.
#include "mechanism/part_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>

#include "base/bytes.h"
#include "base/varint.h"

namespace tacit::mechanism {
namespace {

constexpr SumTable kReadTables[] = {{.first = 5, .rows = 2000},
                                    {.first = 3000, .rows = uint64_t{1} << 40, .every_row = false},
                                    {.first = uint64_t{1} << 41, .rows = 9}};
constexpr RowSumsOptions kReadQuery{.clip = 1, .noise_multiplier = 1, .numbers = 2};
constexpr double kReadStep = 0x1p-20;

// All that a part has, or the place behind the number that is wrong.
struct SlowRead {
  bool good = false;
  size_t at = 0;
  std::vector<int64_t> numbers;
  PartRows rows;
};

// Reads by the grammar: a number at a time, with nothing in advance.
SlowRead ReadSlowly(std::string_view bytes) {
  SlowRead read;
  ByteReader reader(bytes);
  const auto number = [&](uint64_t* value) {
    const bool good = GetVarint(&reader, value);
    read.at = bytes.size() - reader.remaining();
    return good;
  };
  const auto is_sum = [](int64_t steps) {
    return steps <= (int64_t{1} << 50) && steps >= -(int64_t{1} << 50);
  };
  uint64_t value = 0;
  if (reader.Get<double>() != kReadStep) {
    read.at = reader.ok() ? sizeof(double) : 0;
    return read;
  }
  if (!number(&value) || value != 2) return read;
  for (int i = 0; i < 2; ++i) {
    if (!number(&value) || !is_sum(FromZigzag(value))) return read;
    read.numbers.push_back(FromZigzag(value));
  }
  if (!number(&value) || value != std::size(kReadTables)) return read;
  for (const SumTable& table : kReadTables) {
    uint64_t rows = 0, unit = 0;
    if (!number(&rows) || !number(&unit)) return read;
    if (rows > reader.remaining() / 3 || unit > uint64_t{1} << 50) return read;
    const uint64_t end = table.first + table.rows;
    uint64_t next = table.first;
    const size_t begin = read.rows.size();
    for (uint64_t i = 0; i < rows; ++i) {
      if (!number(&value) || value >= end - next) return read;
      next += value;
      read.rows.rows.push_back(next++);
    }
    read.rows.cells.resize(2 * read.rows.size());
    for (uint64_t i = 0; i < rows; ++i) {
      if (!number(&value) || !is_sum(FromZigzag(value))) return read;
      read.rows.cells[2 * (begin + i)] = FromZigzag(value);
    }
    int64_t divisor = 0;
    for (uint64_t i = 0; i < rows; ++i) {
      if (!number(&value)) return read;
      const auto count = static_cast<int64_t>(value);
      const double about = static_cast<double>(count) * static_cast<double>(unit);
      int64_t* const cells = &read.rows.cells[2 * (begin + i)];
      if (std::abs(about) > 0x1p51) return read;
      cells[1] = count * static_cast<int64_t>(std::max<uint64_t>(unit, 1));
      if (!is_sum(cells[1]) || (table.every_row && cells[0] == 0 && cells[1] == 0)) return read;
      divisor = std::gcd(divisor, count);
    }
    if (divisor != (unit == 0 ? 0 : 1)) return read;
  }
  read.good = reader.at_end();
  return read;
}

void ExpectReadAsSlowly(std::string_view bytes) {
  const SlowRead slow = ReadSlowly(bytes);
  PartReader reader(bytes, kReadQuery, kReadTables);
  std::vector<int64_t> numbers(2);
  PartRows rows;
  Status status = reader.ReadHead(numbers);
  for (size_t t = 0; t < std::size(kReadTables) && status; ++t) status = reader.ReadTable(&rows);
  if (status) status = reader.ReadEnd();
  ASSERT_EQ(status.has_value(), slow.good) << (status ? "" : status.error().message);
  if (!status) {
    const std::string at = fmt::format("sums of a part, byte {}: ", slow.at);
    EXPECT_TRUE(status.error().message.starts_with(at)) << status.error().message;
    return;
  }
  EXPECT_EQ(numbers, slow.numbers);
  EXPECT_EQ(rows.rows, slow.rows.rows);
  EXPECT_EQ(rows.cells, slow.rows.cells);
}

// A number of any length in bytes; most are short.
uint64_t AnyNumber(std::mt19937_64& random, uint64_t most) {
  const uint64_t number = random() >> (random() % 8 == 0 ? random() % 64 : 57 + random() % 7);
  return number % (most + 1);
}

std::string SomePart(std::mt19937_64& random) {
  ByteWriter out;
  out.Put(kReadStep);
  const auto sum = [&] {
    const auto size = static_cast<int64_t>(AnyNumber(random, uint64_t{1} << 50));
    PutVarint(ToZigzag(random() % 2 == 0 ? size : -size), &out);
  };
  PutVarint(2, &out);
  sum();
  sum();
  PutVarint(std::size(kReadTables), &out);
  for (const SumTable& table : kReadTables) {
    const uint64_t rows = random() % std::min<uint64_t>(table.rows / 2, 60);
    PutVarint(rows, &out);
    PutVarint(rows == 0 ? 0 : 3, &out);
    const uint64_t gap_most = table.rows / std::max<uint64_t>(rows, 1) - 1;
    for (uint64_t i = 0; i < rows; ++i) PutVarint(AnyNumber(random, gap_most), &out);
    for (uint64_t i = 0; i < rows; ++i) sum();
    for (uint64_t i = 0; i < rows; ++i) {
      const auto count = static_cast<int64_t>(AnyNumber(random, uint64_t{1} << 48));
      PutVarint(static_cast<uint64_t>(i == 0 ? 1 : count), &out);
    }
  }
  return std::move(out).Take();
}

TEST(PartReader, ReadsWhatALoopReads) {
  size_t good = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const std::string bytes = SomePart(random);
    good += ReadSlowly(bytes).good;
    ExpectReadAsSlowly(bytes);
    for (int change = 0; change < 30 && !::testing::Test::HasFailure(); ++change) {
      std::string other = bytes;
      for (uint64_t k = random() % 3; k > 0; --k) {
        const size_t at = random() % other.size();
        const auto put = static_cast<char>(random() % 4 == 0 ? 0x80 : random());
        if (random() % 3 > 0)
          other[at] = put;
        else
          other.insert(at, 1, put);
      }
      if (random() % 4 == 0) other.resize(random() % other.size());
      ExpectReadAsSlowly(other);
    }
  }
  EXPECT_GT(good, 100u);
}

}  // namespace
}  // namespace tacit::mechanism
