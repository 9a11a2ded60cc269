#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tacit::sim {

// The noise that a trainer and its successors have drawn: each sum once the noise is in it. It lies
// in memory that processes share, so it outlives them.
struct Draws {
  static constexpr size_t kMost = 20'000, kNumbersMost = 24;
  struct Draw {
    double bound = 0;   // that was declared: the length by which one unit moves the sum
    uint32_t size = 0;  // in numbers
    std::array<int64_t, kNumbersMost> noised{};
  };

  uint64_t count = 0;
  std::array<Draw, kMost> list{};
};

// From here on noise sources of this process and its children write their draws here, or nowhere
// after a null.
void RecordDraws(Draws* to);

}  // namespace tacit::sim
