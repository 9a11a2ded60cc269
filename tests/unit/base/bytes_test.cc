#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>

namespace tacit {
namespace {

TEST(Bytes, AreLittleEndianAndLengthPrefixed) {
  ByteWriter out;
  out.Put(uint32_t{0x01020304}).Put(uint8_t{5}).PutString("ab");
  EXPECT_EQ(out.bytes(), std::string("\x04\x03\x02\x01\x05\x02\0\0\0ab", 11));
  EXPECT_EQ(out.size(), 11u);
}

TEST(Bytes, RoundTrip) {
  const std::array<float, 3> floats = {1.5f, -2, 0};
  ByteWriter out;
  out.Put(int64_t{-7})
      .PutString("")
      .PutArray(std::span<const float>(floats))
      .Put(0.1)
      .PutString("end");
  const std::string bytes = std::move(out).Take();
  ByteReader in(bytes);
  EXPECT_EQ(in.Get<int64_t>(), -7);
  EXPECT_EQ(in.GetString(), "");
  std::array<float, 3> back{};
  in.GetArray(std::span<float>(back));
  EXPECT_EQ(back, floats);
  EXPECT_EQ(in.Get<double>(), 0.1);
  EXPECT_FALSE(in.at_end());
  EXPECT_EQ(in.GetString(), "end");
  EXPECT_TRUE(in.at_end());
}

// After any cut the reader says so and stays in its bounds.
TEST(ByteReader, NotesEveryTruncationForGood) {
  ByteWriter out;
  out.Put(uint16_t{1}).PutString("hello").Put(uint64_t{2});
  for (size_t n = 0; n < out.size(); ++n) {
    ByteReader in(std::string_view(out.bytes()).substr(0, n));
    in.Get<uint16_t>();
    in.GetString();
    in.Get<uint64_t>();
    EXPECT_FALSE(in.ok()) << n;
    EXPECT_FALSE(in.at_end()) << n;
    EXPECT_EQ(in.Get<uint8_t>(), 0) << n;
  }
}

TEST(ByteReader, RefusesALengthBeyondTheEnd) {
  const std::string bytes(
      "\xff\xff\xff\xff"
      "abc",
      7);
  ByteReader in(bytes);
  EXPECT_EQ(in.GetString(), "");
  EXPECT_FALSE(in.ok());
}

}  // namespace
}  // namespace tacit
