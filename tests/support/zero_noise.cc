// Takes the place of tacit_noise_secure when a test is linked.
#include "support/silent_noise.h"

namespace tacit::noise {

std::unique_ptr<NoiseSource> MakeNoiseSource() { return std::make_unique<SilentNoise>(); }
std::unique_ptr<NoiseSource> MakeNoiseSource(WorkerPool&) { return MakeNoiseSource(); }

}  // namespace tacit::noise
