// Takes the place of tacit_noise_secure when a test is linked.
#include <random>

#include "support/silent_noise.h"

namespace tacit::noise {
namespace {

// Silence that draws keys. Each is another one, also after a restart: a program that draws one
// where it had to keep the last is seen.
class SilenceWithKeys final : public SilentNoise {
 public:
  void FillKey(std::span<uint8_t, 32> key) override {
    for (uint8_t& byte : key) byte = static_cast<uint8_t>(system_());
  }

 private:
  std::random_device system_;
};

}  // namespace

// The source of a participation, which draws the keys of allocations.
std::unique_ptr<NoiseSource> MakeNoiseSource() { return std::make_unique<SilenceWithKeys>(); }
// The source of a learner. Its keys are all one: a GPU makes its noise of them, and runs of it are
// compared.
std::unique_ptr<NoiseSource> MakeNoiseSource(WorkerPool&) {
  return std::make_unique<SilentNoise>();
}

}  // namespace tacit::noise
