#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "noise/stream_noise.h"
#include "support/fixed_noise.h"
#include "support/silent_noise.h"
#include "support/statistics.h"

// The queries of a release, written down.
namespace tacit::train {

inline constexpr double kStep = 0x1p-20;  // of the grid of a norm of 1

// The noise asked for, query by query: the sums as they came, the deviation, what went out.
struct Asked {
  std::vector<std::vector<int64_t>> sums, released;
  std::vector<double> stddev;
};

// Writes down every query, and answers with what `answers` says, for any sums: so that two
// runs on different data go the same way, and each query can be compared given all answers before
// it. Without answers, it adds noise.
class Scribe final : public noise::SilentNoise {
 public:
  explicit Scribe(noise::NoiseSource& noise, const Asked* answers = nullptr)
      : noise_(noise), answers_(answers) {}

  void ForParts(size_t n, const Part& part) override {
    asked_.sums.emplace_back();
    asked_.released.emplace_back();
    asked_.stddev.push_back(0);
    if (n > 0) part(0, n, *this);
  }
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    auto& sums = asked_.sums.back();
    auto& released = asked_.released.back();
    const size_t at = sums.size();
    sums.insert(sums.end(), values.begin(), values.end());
    if (answers_ != nullptr)
      std::copy_n(
          answers_->released.at(asked_.sums.size() - 1).begin() + static_cast<ptrdiff_t>(at),
          values.size(), values.begin());
    else
      noise_.AddGridGaussian(stddev, values);
    released.insert(released.end(), values.begin(), values.end());
    asked_.stddev.back() = stddev * kStep;
  }
  const Asked& asked() const { return asked_; }

 private:
  noise::NoiseSource& noise_;
  const Asked* answers_;
  Asked asked_;
};

// Norm of the difference of each query's sums, in units of the clip, given the same answers before.
inline std::vector<double> Moves(const Asked& one, const Asked& other) {
  std::vector<double> moves;
  EXPECT_EQ(one.sums.size(), other.sums.size());
  for (size_t q = 0; q < one.sums.size(); ++q) {
    EXPECT_EQ(one.sums[q].size(), other.sums[q].size()) << "the cells depend on answers alone";
    double square = 0;
    for (size_t i = 0; i < one.sums[q].size(); ++i) {
      const double d = static_cast<double>(one.sums[q][i] - other.sums[q][i]);
      square += d * d;
    }
    moves.push_back(std::sqrt(square) * kStep);
  }
  return moves;
}

// Checks that every cell of every query has noise of the deviation it is charged for.
inline std::string CheckEveryCell(const Asked& asked) {
  std::string wrong;
  for (size_t q = 0; q < asked.sums.size(); ++q) {
    std::vector<double> z;
    size_t still = 0;
    for (size_t i = 0; i < asked.sums[q].size(); ++i) {
      const int64_t added = asked.released[q][i] - asked.sums[q][i];
      still += added == 0 ? 1 : 0;
      z.push_back(static_cast<double>(added) * kStep / asked.stddev[q]);
    }
    // By chance one in a hundred thousand stays where it was.
    if (still > 1 + z.size() / 1000)
      wrong += "query " + std::to_string(q) + ": no noise on " + std::to_string(still) + " cells; ";
    if (z.size() >= 100) wrong += testing::CheckMoments(z);
  }
  return wrong;
}

}  // namespace tacit::train
