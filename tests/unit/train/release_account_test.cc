#include "train/quality/release_account.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "support/fixed_noise.h"

namespace tacit::train {
namespace {

// The noise of a machine that was cloned: original and copy begin with one key, and each takes keys
// of its own from then on.
class ClonedNoise final : public noise::KnownNoise {
 public:
  explicit ClonedNoise(uint8_t machine) : KnownNoise(0), machine_(machine) {}
  void Rekey() override { TakeKey({machine_, ++round_}); }

 private:
  const uint8_t machine_;
  uint8_t round_ = 0;
};

ReleaseAccount Account() {
  return ReleaseAccount("quality.click", LearnerIndex(1), "clicks",
                        privacy::MechanismKind::kQuality, 30);
}

// With one noise the difference of what both release would be that of their counts.
TEST(ReleaseAccount, ACloneDrawsNoiseOfItsOwn) {
  ReleaseAccount original = Account(), copy = Account();
  ClonedNoise of_original(1), of_copy(2);
  const std::array<OffsetRange, 1> window = {OffsetRange{.partition = 0, .begin = 0, .end = 100}};
  const std::vector<uint64_t> counts(64, 10);
  const auto one = original.Release(window, counts, of_original);
  const auto other = copy.Release(window, counts, of_copy);
  size_t alike = 0;
  for (size_t i = 0; i < counts.size(); ++i) alike += one[i] == other[i] ? 1 : 0;
  EXPECT_LE(alike, 1u);
}

// A key that opens one window opens no other: what is drawn next begins a key.
TEST(ReleaseAccount, TheKeyIsGoneAfterAWindow) {
  ReleaseAccount account = Account();
  noise::FixedNoise noise(1), unused(1);
  const std::array<OffsetRange, 1> window = {OffsetRange{.partition = 0, .begin = 0, .end = 100}};
  account.Release(window, std::vector<uint64_t>(64, 10), noise);
  unused.Rekey();
  unused.Rekey();
  EXPECT_EQ(noise.Uniform(), unused.Uniform());
}

}  // namespace
}  // namespace tacit::train
