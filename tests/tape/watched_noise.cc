// Takes the place of tacit_noise_secure: real noise of known keys, for the coins of participations,
// which have no tape. A draw that declares no query is a failure.
#include "tape/watched_noise.h"

#include <gtest/gtest.h>

#include "noise/declared.h"
#include "support/fixed_noise.h"

namespace tacit::noise {
namespace {

class WatchedNoise final : public ForwardedNoise {
 public:
  explicit WatchedNoise(uint8_t key) : inner_(key) {}
  void Declare(const Declared& declared) override { declared_ = !declared.query.empty(); }

 private:
  NoiseSource& to() override {
    EXPECT_TRUE(declared_) << "a draw declares no query";
    return inner_;
  }
  void Rekey() override { inner_.Rekey(); }

  FixedNoise inner_;
  bool declared_ = false;
};

uint8_t made = 0;  // each source has coins of its own

}  // namespace

void StartCoins(uint8_t key) { made = key; }

std::unique_ptr<NoiseSource> MakeNoiseSource() { return std::make_unique<WatchedNoise>(++made); }
std::unique_ptr<NoiseSource> MakeNoiseSource(WorkerPool&) { return MakeNoiseSource(); }

}  // namespace tacit::noise
