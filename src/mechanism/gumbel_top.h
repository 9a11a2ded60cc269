#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "noise/noise.h"

namespace tacit::mechanism {

// One-shot Gumbel top-k: the k rows of the largest score + scale * Gumbel over a whole id space in
// which all but the listed rows score 0. Where one unit moves no score by more than D, all in one
// direction (add-or-remove of a unit whose contributions are not negative), that is k exponential
// mechanisms of epsilon = D / scale and costs k epsilon^2 / 8 zCDP: one exponential mechanism has
// privacy losses in a range of epsilon (Durfee and Rogers 2019; Cesar and Rogers 2021). Their order
// is not told.
//
// Takes O(listed + k) steps, whatever the size of the space. The m rows that score 0 are alike: the
// descending order statistics of m Gumbels are -ln of the ascending ones of m exponentials, whose
// gaps are independent exponentials of the rates m, m - 1, ... (Renyi 1953), and the rows they
// belong to are a uniform choice without replacement.
class GumbelTop {
 public:
  // What keeping k rows costs where one unit moves a score by at most epsilon times the scale, in
  // zCDP; and the epsilon that costs `rho`.
  static double Rho(uint64_t k, double epsilon) {
    return static_cast<double>(k) * epsilon * epsilon / 8;
  }
  static double Epsilon(uint64_t k, double rho) {
    return std::sqrt(8 * rho / static_cast<double>(k));
  }

  // kept[i] = whether rows[i] is among them; others = the rest of them, ascending. REQUIRES
  // ascending rows, all below `space`, one score each, 0 < k and scale > 0. Where k exceeds the
  // space, every row is taken.
  void Choose(std::span<const uint64_t> rows, std::span<const double> scores, uint64_t space,
              uint64_t k, double scale, noise::NoiseSource& noise, std::vector<uint8_t>* kept,
              std::vector<uint64_t>* others);

 private:
  struct Candidate {
    double score;
    uint32_t place;
  };

  std::vector<Candidate> candidates_;
  std::unordered_set<uint64_t> ranks_;
};

}  // namespace tacit::mechanism
