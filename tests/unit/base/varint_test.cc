// Varints against LEB128's worked examples, and against every form that is not theirs.
#include "base/varint.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace tacit {
namespace {

std::string Written(uint64_t value) {
  ByteWriter writer;
  PutVarint(value, &writer);
  return std::move(writer).Take();
}

// The examples of DWARF 5, figure 22, and the ends of the range.
TEST(Varint, AreLeb128) {
  EXPECT_EQ(Written(0), std::string("\0", 1));
  EXPECT_EQ(Written(2), "\x02");
  EXPECT_EQ(Written(127), "\x7f");
  EXPECT_EQ(Written(128), std::string("\x80\x01"));
  EXPECT_EQ(Written(129), std::string("\x81\x01"));
  EXPECT_EQ(Written(12857), std::string("\xb9\x64"));
  EXPECT_EQ(Written(UINT64_MAX), std::string(9, '\xff') + "\x01");
}

TEST(Varint, AreReadBack) {
  std::mt19937_64 random(1);
  ByteWriter writer;
  std::vector<uint64_t> values = {0, UINT64_MAX, uint64_t{1} << 63};
  for (int i = 0; i < 10'000; ++i) values.push_back(random() >> random() % 64);
  for (const uint64_t value : values) PutVarint(value, &writer);
  ByteReader reader(writer.bytes());
  for (const uint64_t value : values) {
    uint64_t read = ~value;
    ASSERT_TRUE(GetVarint(&reader, &read));
    ASSERT_EQ(read, value);
  }
  EXPECT_TRUE(reader.at_end());
}

TEST(Varint, HaveOneForm) {
  const std::string ten(9, '\xff');
  for (const std::string& bytes :
       {std::string(), std::string("\x80"), std::string("\x80\x00", 2), ten, ten + "\x02",
        ten + "\x80\x01", std::string("\xff\x80\x00", 3)}) {
    ByteReader reader(bytes);
    uint64_t value = 0;
    EXPECT_FALSE(GetVarint(&reader, &value)) << bytes.size();
  }
}

TEST(Zigzag, TellsSmallNumbersOfBothSignsInFewBits) {
  const int64_t numbers[] = {0, -1, 1, -2, 2, INT64_MAX, INT64_MIN};
  const uint64_t written[] = {0, 1, 2, 3, 4, UINT64_MAX - 1, UINT64_MAX};
  for (size_t i = 0; i < std::size(numbers); ++i) {
    EXPECT_EQ(ToZigzag(numbers[i]), written[i]);
    EXPECT_EQ(FromZigzag(written[i]), numbers[i]);
  }
}

}  // namespace
}  // namespace tacit
