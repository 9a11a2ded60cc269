#pragma once

#include <cstdint>
#include <memory>

#include "noise/forwarded_noise.h"
#include "noise/keystream.h"
#include "noise/stream_noise.h"

namespace tacit::noise {

// Real noise of keys that are the same in every run of a test.
class KnownNoise : public ForwardedNoise {
 protected:
  explicit KnownNoise(uint8_t key) : inner_(SourceOf({key})) {}
  void TakeKey(const Keystream::Key& key) { inner_ = SourceOf(key); }
  NoiseSource& to() override { return inner_; }

 private:
  static StreamNoise SourceOf(const Keystream::Key& key) {
    return StreamNoise(std::make_unique<Keystream>(key, Keystream::CounterBlock{}));
  }
  StreamNoise inner_;
};

// A learner asks for a new key with every release. It gets the next of a fixed series.
class FixedNoise final : public KnownNoise {
 public:
  explicit FixedNoise(uint8_t key) : KnownNoise(key), key_(key) {}
  void Rekey() override {
    ++round_;
    TakeKey({key_, static_cast<uint8_t>(round_), static_cast<uint8_t>(round_ >> 8),
             static_cast<uint8_t>(round_ >> 16)});
  }

 private:
  const uint8_t key_;
  uint32_t round_ = 0;
};

// One key, which no release changes: two runs of a test that must draw the same.
class LastingNoise final : public KnownNoise {
 public:
  explicit LastingNoise(uint8_t key) : KnownNoise(key) {}
  void Rekey() override {}
};

}  // namespace tacit::noise
