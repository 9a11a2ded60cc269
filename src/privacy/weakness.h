#pragma once

#include <string>

namespace tacit::privacy {

// Sentences about an epsilon and a delta so large that they protect little, each to stand behind
// "epsilon: " or "delta: " with the number; if empty, neither is. An infinite epsilon promises
// nothing, and is not meant here.
struct Weakness {
  std::string epsilon, delta;
};
Weakness WeaknessOf(double epsilon, double delta);

// The sentence about a delta under which one of this many units or more may be revealed whole;
// empty if delta is smaller.
std::string WeaknessAmong(double delta, double units);

}  // namespace tacit::privacy
