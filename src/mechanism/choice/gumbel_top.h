#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "noise/noise.h"

namespace tacit::mechanism {

// Draws -ln(-ln U): P(g <= x) = exp(-exp(-x)).
double DrawGumbel(noise::NoiseSource& noise);

// One-shot Gumbel top-k: the k rows of the largest score + scale * Gumbel over a whole id space in
// which all but the listed rows score 0. If one unit moves no score by more than D, all in one
// direction (add-or-remove of a unit whose contributions are not negative), that is k exponential
// mechanisms of epsilon = D / scale and costs k epsilon^2 / 8 zCDP: one exponential mechanism has
// privacy losses in a range of epsilon (Durfee and Rogers 2019; Cesar and Rogers 2021). The order
// of the k rows is not released.
//
// Takes O(listed + k) steps, for any size of the space. The m rows that score 0 are alike: the
// descending order statistics of m Gumbels are -ln of the ascending ones of m exponentials, whose
// gaps are independent exponentials of the rates m, m - 1, ... (Renyi 1953), and the rows they
// belong to are a uniform choice without replacement.
class GumbelTop {
 public:
  // Rho is the zCDP cost of keeping k rows if one unit moves a score by at most epsilon times the
  // scale; Epsilon is the epsilon that costs `rho`.
  static double Rho(uint64_t k, double epsilon) {
    return static_cast<double>(k) * epsilon * epsilon / 8;
  }
  static double Epsilon(uint64_t k, double rho) {
    return std::sqrt(8 * rho / static_cast<double>(k));
  }

  // Chooses the k rows: kept[i] = whether rows[i] is one of them; others = the chosen rows that are
  // not listed, ascending. REQUIRES ascending rows, all below `space`, one score each, 0 < k and
  // scale > 0. Where k exceeds the space, chooses every row.
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
