#pragma once

#include <cstdint>
#include <memory>

#include "noise/keystream.h"
#include "noise/stream_noise.h"

namespace tacit::noise {

// Real noise from a fixed key: the same numbers in every run of a test.
inline StreamNoise FixedNoise(uint8_t key) {
  return StreamNoise(std::make_unique<Keystream>(Keystream::Key{key}, Keystream::CounterBlock{}));
}

}  // namespace tacit::noise
