#pragma once

#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "unit/model/loop_carriers.h"

// An update that was made of a step's carriers, taken apart again: its noise, and whether public
// directions alone made it.
namespace tacit::train::carried {

using Matrices = std::span<const model::Carriers::Weights>;

inline model::testing::LoopMatrix PartOf(std::span<const float> dense,
                                         const model::Carriers::Weights& w) {
  return model::testing::LoopMatrix(ops::ConstMatrix(dense.data() + w.offset, w.in, w.out));
}

// Mean squares over what they should be.
struct NoiseSeen {
  double left = 0, right = 0, biases = 0;
  bool Right() const {
    return std::abs(left - 1) < 0.2 && std::abs(right - 1) < 0.2 && std::abs(biases - 1) < 0.5;
  }
  void Add(const NoiseSeen& other, double share) {
    left += other.left * share;
    right += other.right * share;
    biases += other.biases * share;
  }
};

// The noise in an update of noise alone: L^T U is dR; what U R^T has outside of L is dL's. Biases
// follow their matrices. REQUIRES matrices that all have carriers.
inline NoiseSeen NoiseOf(std::span<const float> update, const model::Carriers& carriers,
                         Matrices matrices, double variance) {
  double left = 0, left_numbers = 0, right = 0, right_numbers = 0, biases = 0, bias_numbers = 0;
  for (size_t m = 0; m < matrices.size(); ++m) {
    const model::Carriers::Weights& w = matrices[m];
    const model::testing::LoopPair pair(carriers.pair(m));
    const auto u = PartOf(update, w);
    const auto dr = pair.OfRight(u), ur = pair.OfLeft(u);
    right += std::pow(dr.Length(), 2);
    right_numbers += static_cast<double>(dr.at.size());
    left += std::pow(Added(ur, -1, pair.left * (Transposed(pair.left) * ur)).Length(), 2);
    const size_t rank = carriers.pair(m).rank();
    left_numbers += static_cast<double>((w.in - rank) * rank);
    for (size_t j = 0; j < w.out; ++j) biases += std::pow(update[w.offset + w.in * w.out + j], 2);
    bias_numbers += static_cast<double>(w.out);
  }
  return {left / left_numbers / variance, right / right_numbers / variance,
          biases / bias_numbers / variance};
}

// The share of an update's length that no public carriers would have made.
inline double BeyondPublic(std::span<const float> update, const model::Carriers& carriers,
                           Matrices matrices) {
  double beyond = 0, length = 0;
  for (size_t m = 0; m < matrices.size(); ++m) {
    const auto u = PartOf(update, matrices[m]);
    const model::testing::LoopPair pair(carriers.pair(m));
    beyond += std::pow(Added(u, -1, pair.Projected(u)).Length(), 2);
    length += std::pow(u.Length(), 2);
  }
  return std::sqrt(beyond / length);
}

}  // namespace tacit::train::carried
