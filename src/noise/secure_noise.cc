// The product's definition of MakeNoiseSource, in a library of its own: a test-only build links
// another one, so that no switch in a shipped binary can turn the noise off.
#include "noise/noise.h"
#include "noise/pooled_noise.h"
#include "noise/stream_noise.h"

namespace tacit::noise {

std::unique_ptr<NoiseSource> MakeNoiseSource() { return std::make_unique<StreamNoise>(); }

std::unique_ptr<NoiseSource> MakeNoiseSource(WorkerPool& workers) {
  return std::make_unique<PooledNoise>(workers);
}

}  // namespace tacit::noise
