#pragma once

#include <cstdint>
#include <functional>

// Lower bounds on what one run costs, from many canaries at once. A coin of its own decides whether
// each canary is in the run; the auditor guesses the coins of some of them and abstains from the
// rest. Which canaries are guessed follows from the scores by a number of guesses that was fixed
// before, never from the coins. A bound is false, for a mechanism that keeps what is tested, with
// probability alpha at most.
namespace tacit::audit {

struct Guesses {
  uint64_t canaries = 0;
  uint64_t guesses = 0;  // of canaries
  uint64_t right = 0;    // of guesses
};

// Steinke, Nasr and Jagielski (2023), Theorem 5.2: the greatest probability with which an
// (epsilon, delta)-DP mechanism lets anybody be right so often. REQUIRES right <= guesses <=
// canaries, for this and all below.
double SteinkePValue(const Guesses& guesses, double epsilon, double delta);
// The epsilon below which all are refuted; 0: none is.
double SteinkeEpsilon(const Guesses& guesses, double delta, double alpha);

// The least probability of an event in the other world, of an event of this probability: f(1 - p)
// for the trade-off function f.
using LeastElsewhere = std::function<double(double probability)>;
// Mahloujifar, Melis and Chaudhuri (2025), Algorithms 2 and 3 for two choices: true if this many
// right guesses refute that the mechanism keeps the curve.
bool RefutesCurve(const Guesses& guesses, const LeastElsewhere& least, double alpha);
// The mu below which all Gaussian curves are refuted; 0: none is.
double CurveMu(const Guesses& guesses, double alpha);

// Xiang et al. (2025), Theorems 2 and 3, for all canaries guessed by the sign of their scores: the
// errors of the ranks are taken for independent coins, whose biases are the means of order
// statistics, and Chernoff's bound for their sum. It ASSUMES such a mechanism and proves nothing
// about others. For guesses without an error it is below the truth, too: means of order statistics
// have a smaller product than independent guesses do (docs/internals/audit.md). It is told, and
// judges nothing.
double XiangPValue(const Guesses& guesses, double mu);
double XiangMu(const Guesses& guesses, double alpha);

}  // namespace tacit::audit
