#include "workers/seal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/text.h"
#include "support/golden.h"

namespace tacit::workers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string BytesOf(std::string_view hex) {
  std::vector<uint8_t> bytes(hex.size() / 2);
  EXPECT_TRUE(FromHex(hex, bytes)) << hex;
  return {bytes.begin(), bytes.end()};
}

std::string HexOf(std::string_view bytes) {
  return ToHex({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

// first, first + 1, ...
std::string Ascending(int first, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<char>(first + i));
  return bytes;
}

// RFC 4231, test cases 1 and 2.
TEST(SealTest, HmacIsTheStandards) {
  EXPECT_EQ(ToHex(Hmac(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(ToHex(Hmac("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

// RFC 5869, appendices A.1 to A.3.
TEST(SealTest, HkdfIsTheStandards) {
  EXPECT_EQ(HexOf(Hkdf(std::string(22, '\x0b'), Ascending(0, 13), Ascending(0xf0, 10), 42)),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
  EXPECT_EQ(HexOf(Hkdf(Ascending(0, 80), Ascending(0x60, 80), Ascending(0xb0, 80), 82)),
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41"
            "c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87");
  EXPECT_EQ(HexOf(Hkdf(std::string(22, '\x0b'), "", "", 42)),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

// McGrew and Viega, "The Galois/Counter Mode of Operation", as submitted to NIST: test cases 13, 14
// and 16.
TEST(SealTest, GcmIsTheStandards) {
  struct Case {
    std::string key, nonce, associated, plain, sealed;
  };
  const std::string zeros(64, '0');
  const Case cases[] = {
      {zeros, zeros.substr(0, 24), "", "", "530f8afbc74536b9a963b4f1c4cb738b"},
      {zeros, zeros.substr(0, 24), "", zeros.substr(0, 32),
       "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"},
      {"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
       "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
       "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449"
       "a6b525b16aedf5aa0de657ba637b39",
       "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056"
       "828838c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b"}};
  for (const Case& c : cases) {
    const auto key = tacit::testing::Bytes<32>(c.key);
    const auto nonce = tacit::testing::Bytes<12>(c.nonce);
    EXPECT_EQ(HexOf(SealGcm(key, nonce, BytesOf(c.associated), BytesOf(c.plain))), c.sealed);
    EXPECT_EQ(OpenGcm(key, nonce, BytesOf(c.associated), BytesOf(c.sealed)), BytesOf(c.plain));
  }
}

// The derivation, step by step: sums, names and plans have keys of their own.
TEST(SealTest, APeriodsKeysAreMadeOfKeyAndHead) {
  SharedKey key;
  key.fill(3);
  Digest head;
  head.fill(4);
  const std::string made =
      Hkdf(std::string(32, 3), std::string(32, 4), "tacit.workers.period.v1", 96);
  const PeriodSeal seal(key, head);
  const std::string sealed = seal.Seal("sums", "place");
  ASSERT_EQ(sealed.size(), 12 + 4 + kTagBytes);
  Nonce nonce;
  std::copy_n(sealed.begin(), 12, nonce.begin());
  const auto sums = tacit::testing::Bytes<32>(HexOf(made.substr(0, 32)));
  EXPECT_EQ(OpenGcm(sums, nonce, "place", sealed.substr(12)), "sums");
  EXPECT_EQ(ToHex(seal.NameOf("body")), ToHex(Hmac(made.substr(32, 32), "body")).substr(0, 32));
  EXPECT_EQ(seal.MarkOf("plan"), Hmac(made.substr(64, 32), "plan"));
}

TEST(SealTest, AFlippedBitAnotherPlaceHeadOrKeyDoesNotOpen) {
  SharedKey key{}, other_key{};
  other_key[31] = 1;
  Digest head{}, other_head{};
  other_head[0] = 1;
  const PeriodSeal seal(key, head);
  const std::string sealed = seal.Seal("forty-two sums", "chunk 1");
  ASSERT_EQ(seal.Open(sealed, "chunk 1"), "forty-two sums");
  const auto expect_closed = [&](const PeriodSeal& with, std::string_view bytes,
                                 std::string_view place) {
    const auto opened = with.Open(bytes, place);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kCorruption);
    EXPECT_THAT(opened.error().message, HasSubstr("workers.key_file"));
  };
  for (size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    std::string flipped = sealed;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    expect_closed(seal, flipped, "chunk 1");
  }
  for (size_t left = 0; left < sealed.size(); ++left)
    expect_closed(seal, sealed.substr(0, left), "chunk 1");
  expect_closed(seal, sealed, "chunk 2");
  expect_closed(PeriodSeal(other_key, head), sealed, "chunk 1");
  expect_closed(PeriodSeal(key, other_head), sealed, "chunk 1");
  EXPECT_NE(seal.NameOf("body"), PeriodSeal(other_key, head).NameOf("body"));
  EXPECT_NE(seal.NameOf("body"), PeriodSeal(key, other_head).NameOf("body"));
  EXPECT_NE(seal.NameOf("body"), seal.NameOf("bodz"));
}

TEST(SealTest, NoNonceOfAMillionComesTwice) {
  const PeriodSeal seal({}, {});
  std::vector<std::string> nonces(1'000'000);
  for (std::string& nonce : nonces) nonce = seal.Seal("", "").substr(0, sizeof(Nonce));
  std::ranges::sort(nonces);
  EXPECT_EQ(std::ranges::adjacent_find(nonces), nonces.end());
}

TEST(SealTest, AKeysFileHasSixtyFourDigits) {
  const std::string text = NewKeyText();
  ASSERT_EQ(text.size(), 65u);
  const auto key = ParseKey(text);
  ASSERT_TRUE(key);
  EXPECT_EQ(ToHex(*key) + "\n", text);
  EXPECT_EQ(ParseKey(text.substr(0, 64)).value(), *key);
  EXPECT_NE(NewKeyText(), text);
  for (const std::string& wrong :
       {std::string(), text.substr(0, 63), text + "0", "g" + text.substr(1), text + "\n"}) {
    const auto refused = ParseKey(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    if (wrong.size() < 9) continue;
    EXPECT_THAT(refused.error().message, Not(HasSubstr(wrong.substr(1, 8))));
  }
}

TEST(SealTest, TopicsWithOneFileHaveKeysOfTheirOwn) {
  const SharedKey file{1}, other{2};
  EXPECT_EQ(KeyOfTopics(file, "clicks"), KeyOfTopics(file, "clicks"));
  EXPECT_NE(KeyOfTopics(file, "clicks"), KeyOfTopics(file, "views"));
  EXPECT_NE(KeyOfTopics(file, "clicks"), KeyOfTopics(other, "clicks"));
  EXPECT_NE(KeyOfTopics(file, ""), file);
}

TEST(SealTest, MarksAreComparedToTheLastByte) {
  Digest mark{}, other{};
  EXPECT_TRUE(SameMark(mark, other));
  for (uint8_t& byte : other) {
    byte = 1;
    EXPECT_FALSE(SameMark(mark, other));
    byte = 0;
  }
}

}  // namespace
}  // namespace tacit::workers
