#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "privacy/gaussian.h"
#include "privacy/ledger.h"

namespace tacit::privacy {

// With the delta that PromiseOf promises.
inline double EpsilonOf(double mu_squared) {
  return GaussianEpsilon(std::sqrt(mu_squared), Delta(1e-6)).value;
}

inline Promise PromiseOf(const std::string& learner) {
  Promise promise;
  promise.learner = learner;
  promise.epsilon = 8;
  promise.delta = 1e-6;
  promise.model_fingerprint = {1, 2, 3};
  return promise;
}

// A charge with mu^2 = 1/4.
inline Charge UsualCharge() {
  return {.mechanism = MechanismKind::kAdaFest,
          .noise_multiplier = 2,
          .sigma_selection = 2 * std::sqrt(2.0),
          .sigma_gradient = 2 * std::sqrt(2.0),
          .clip_selection = 1,
          .clip_gradient = 1};
}

// One step on [begin, end) of partition 0.
inline CommitCharge StepOf(const std::string& learner, uint64_t begin, uint64_t end) {
  return {learner, UsualCharge(), 1, 1, "log", {{0, begin, end}}};
}

inline constexpr Digest kSalt{9};

inline std::vector<uint64_t> AppendOne(Ledger& ledger, uint64_t commit, const CommitCharge& step) {
  return ledger.Append(CommitSeq(commit), static_cast<int64_t>(commit) * 1000, {&step, 1}, kSalt,
                       "test");
}

inline double EpsilonAfterOne(const Ledger& ledger, const CommitCharge& step) {
  return ledger.EpsilonAfter({&step, 1});
}

}  // namespace tacit::privacy
