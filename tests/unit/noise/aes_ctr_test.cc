#include "noise/aes_ctr.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/cpu.h"
#include "support/golden.h"

namespace tacit::noise {
namespace {

struct alignas(64) Aligned {
  std::array<uint8_t, 2048> bytes;
};

std::vector<uint8_t> Stream(AesCtr& cipher, size_t bytes) {
  std::vector<uint8_t> stream;
  Aligned block;
  while (stream.size() < bytes) {
    // The lengths differ, to see that nothing is lost between two.
    const size_t n = 256 * (1 + stream.size() / 256 % 8);
    cipher.Fill(std::span(block.bytes).first(n));
    stream.insert(stream.end(), block.bytes.begin(), block.bytes.begin() + n);
  }
  stream.resize(bytes);
  return stream;
}

// The key and counter block of SP 800-38A, F.5.5; its counter carries out of the last byte.
TEST(AesCtr, IsAes256CtrOfNist) {
  for (auto* make : {MakeOpenSslCtr, MakeVaesCtr, MakeAesCtr}) {
    const auto cipher = make();
    if (cipher == nullptr) continue;  // a processor without VAES has only the other
    cipher->Start(
        testing::Bytes<32>("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"),
        testing::Bytes<16>("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"));
    const auto stream = Stream(*cipher, 64);
    size_t at = 0;
    for (const auto& row : testing::ReadGolden("aes256_ctr")) {
      const auto plain = testing::Bytes<16>(row[0]), secret = testing::Bytes<16>(row[1]);
      for (size_t i = 0; i < 16; ++i) EXPECT_EQ(stream[at++], plain[i] ^ secret[i]);
    }
    EXPECT_EQ(at, 64u);
  }
}

// Random keys, and counters that carry out of every byte within the first blocks.
TEST(AesCtr, VaesIsOpenSsl) {
  const auto fast = MakeVaesCtr();
  const auto plain = MakeOpenSslCtr();
  if (fast == nullptr) {
    EXPECT_FALSE(ThisCpu().vaes);
    return;
  }
  std::mt19937 random(3);
  for (int ones = 0; ones <= 16; ++ones) {
    AesCtr::Key key;
    for (uint8_t& byte : key) byte = static_cast<uint8_t>(random());
    AesCtr::CounterBlock counter;
    for (size_t i = 0; i < 16; ++i)
      counter[i] = static_cast<int>(i) >= 16 - ones ? 0xff : static_cast<uint8_t>(random());
    if (ones > 0) counter[15] = static_cast<uint8_t>(0xff - random() % 40);
    fast->Start(key, counter);
    plain->Start(key, counter);
    EXPECT_EQ(Stream(*fast, 20000), Stream(*plain, 20000)) << ones;
  }
}

}  // namespace
}  // namespace tacit::noise
