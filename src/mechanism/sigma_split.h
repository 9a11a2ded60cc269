#pragma once

#include <initializer_list>

namespace tacit::mechanism {

// A step's noise, divided between its two queries.
struct SigmaSplit {
  double selection = 0;  // sigma1
  double gradient = 0;   // sigma2
};

// Returns the two multipliers with selection / gradient = ratio that together cost what one
// Gaussian of `sigma` does: (selection^-2 + gradient^-2)^(-1/2) = sigma. REQUIRES sigma > 0 and
// ratio > 0.
SigmaSplit SplitSigma(double sigma, double ratio);

// Combines the sigmas of any number of queries: all see the same batch, so they are one Gaussian of
// (sum of sigma^-2)^(-1/2). A sigma of 0 stands for a query that is not asked.
double CombineSigma(std::initializer_list<double> sigmas);

}  // namespace tacit::mechanism
