#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"

// Random draws for generated streams: public coins, the same for the same seed everywhere.
namespace tacit::stream {

// Blocks of four random words. A block is a function of the seed, of the stream's purpose and of
// three numbers. The purpose is a part of the counter, so that no word is used twice.
class Random {
 public:
  template <class Purpose>
  Random(uint64_t seed, Purpose purpose)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        purpose_(static_cast<uint32_t>(purpose)) {}
  std::array<uint32_t, 4> Block(uint32_t a, uint32_t b, uint32_t c) const {
    return Philox({a, b, c, purpose_}, key_);
  }

 private:
  const std::array<uint32_t, 2> key_;
  const uint32_t purpose_;
};

// Maps a word to a number in (0, 1).
inline double Uniform(uint32_t word) { return (word + 0.5) * 0x1p-32; }

// Draws two independent standard normals (Box and Muller).
inline std::pair<double, double> Normals(uint32_t u, uint32_t v) {
  const double radius = std::sqrt(-2 * std::log(Uniform(u)));
  const double angle = 2 * std::numbers::pi * Uniform(v);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// Draws an index with given weights from one 32-bit word (Walker's alias method).
class AliasTable {
 public:
  explicit AliasTable(std::span<const double> weight);
  uint32_t Draw(uint32_t word) const {
    const uint64_t product = uint64_t{word} * cell_.size();
    const auto index = static_cast<uint32_t>(product >> 32);
    const Cell& cell = cell_[index];
    return static_cast<uint32_t>(product) < cell.threshold ? index : cell.other;
  }

 private:
  struct Cell {
    uint32_t threshold, other;
  };
  std::vector<Cell> cell_;
};

}  // namespace tacit::stream
