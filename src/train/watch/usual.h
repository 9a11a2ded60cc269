#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tacit::train {

// Knows what is usual for one figure of a stream, and whether it has changed at once. The usual is
// that of the last sixteen figures alone: those of a stream's first windows, when little is known
// of it, are soon forgotten. A figure that drifts is followed; one that jumps out of its usual
// range is unusual from its second value there on, and becomes usual when it stays. A value.
class Usual {
 public:
  // A jump counts from `least_jump` beyond six times the figure's usual deviation.
  explicit Usual(double least_jump) : least_jump_(least_jump) {}

  void See(double figure);

  bool unusual() const { return outside_ >= kTwice; }
  // Returns true if the last figure was out of the usual range, for the first time or again.
  bool outside() const { return outside_ > 0; }
  double mean() const { return mean_; }
  double last() const { return last_; }

 private:
  static constexpr uint32_t kTwice = 2;
  static constexpr size_t kFiguresKept = 16;

  void Keep(double figure);

  double least_jump_;
  std::array<double, kFiguresKept> kept_{};  // the last ones that were usual
  double mean_ = 0, deviation_ = 0, last_ = 0;
  uint32_t seen_ = 0;     // figures that were usual
  uint32_t outside_ = 0;  // figures in a row that were not
};

}  // namespace tacit::train
