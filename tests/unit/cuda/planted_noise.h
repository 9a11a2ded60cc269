#pragma once

// planted_noise.cu in the place of cuda/kernels/noise/noise.cu: the same functions with a fault.
namespace tacit::cuda::testing {

enum class NoiseFault {
  kNone,
  kNotLaunched,      // the host forgets the launch
  kDoesNothing,      // the kernel's body is empty, as when a compiler drops what it cannot compile
  kReplayedCounter,  // every place draws the same sixteen numbers
  kReplayedKey,      // every key is the same key
  kReplayedQuery,    // every query is the same query
  kOverlap,          // a place's blocks begin in the place before
  kNarrow,           // 1 % less noise
  kLastLeftOut,      // the numbers of a place that is not whole
};

// From here on.
void PlantNoiseFault(NoiseFault fault);

}  // namespace tacit::cuda::testing
