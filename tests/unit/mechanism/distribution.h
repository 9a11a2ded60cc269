#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "step.h"

// Tests whether two ways of making updates draw from the same distribution.
namespace tacit::mechanism {

// The properties of updates that are compared by their mean: which rows are written, which pairs of
// them, how many; values, their squares and the products of neighbours, where they are written;
// sums over all rows.
class Moments {
 public:
  explicit Moments(const RowSpace& space) : offset_(space.rows() + 1) {
    for (uint64_t row = 0; row < space.rows(); ++row)
      offset_[row + 1] = offset_[row] + DimOf(space, row);
    // All pairs where there are few, pairs of near neighbours where there are many.
    reach_ = space.rows() <= 20 ? space.rows() : 3;
    written_.resize(space.rows());
    values_.resize(kDenseSize + offset_.back());
    sum_.resize(ValuesAt() + 3 * values_.size() + kCounts + 4);
    square_.resize(sum_.size());
  }

  void Add(const Update& update) {
    ++draws_;
    std::copy(update.dense.begin(), update.dense.end(), values_.begin());
    double total = 0;
    size_t from = 0;
    for (uint64_t row : update.rows) {
      written_[row] = 1;
      for (size_t i = offset_[row]; i < offset_[row + 1]; ++i)
        values_[kDenseSize + i] = update.values[from++];
    }
    for (size_t i = 0; i < kDenseSize; ++i) AddValue(i);
    for (uint64_t row : update.rows) {
      Note(row * reach_, 1);
      for (uint64_t other = row + 1; other < std::min<uint64_t>(row + reach_, written_.size());
           ++other)
        if (written_[other]) Note(row * reach_ + other - row, 1);
      for (size_t i = offset_[row]; i < offset_[row + 1]; ++i) {
        AddValue(kDenseSize + i);
        total += values_[kDenseSize + i] * values_[kDenseSize + i];
      }
    }
    const auto count = static_cast<double>(update.rows.size());
    const size_t counts_at = ValuesAt() + 3 * values_.size();
    if (update.rows.size() < kCounts) Note(counts_at + update.rows.size(), 1);
    Note(counts_at + kCounts, count);
    Note(counts_at + kCounts + 1, count * count);
    Note(counts_at + kCounts + 2, total);
    Note(counts_at + kCounts + 3, total * total);
    for (uint64_t row : update.rows) {
      written_[row] = 0;
      std::fill(values_.begin() + static_cast<ptrdiff_t>(kDenseSize + offset_[row]),
                values_.begin() + static_cast<ptrdiff_t>(kDenseSize + offset_[row + 1]), 0.0);
    }
  }

  // The largest difference of two means in its standard deviations.
  static double Distance(const Moments& a, const Moments& b) {
    double distance = 0;
    for (size_t k = 0; k < a.sum_.size(); ++k) {
      const double variance = a.Variance(k) / a.draws_ + b.Variance(k) / b.draws_;
      const double difference = a.sum_[k] / a.draws_ - b.sum_[k] / b.draws_;
      distance = std::max(distance, std::abs(difference) / (std::sqrt(variance) + 1e-9));
    }
    return distance;
  }

 private:
  static constexpr size_t kCounts = 400;

  size_t ValuesAt() const { return written_.size() * reach_; }
  void Note(size_t feature, double value) {
    sum_[feature] += value;
    square_[feature] += value * value;
  }
  void AddValue(size_t i) {
    const double value = values_[i];
    Note(ValuesAt() + 3 * i, value);
    Note(ValuesAt() + 3 * i + 1, value * value);
    if (i > 0) Note(ValuesAt() + 3 * i + 2, value * values_[i - 1]);
  }
  double Variance(size_t k) const {
    const double mean = sum_[k] / draws_;
    return std::max(0.0, square_[k] / draws_ - mean * mean);
  }

  std::vector<size_t> offset_;
  uint64_t reach_;
  std::vector<uint8_t> written_;
  std::vector<double> values_;  // dense, then the rows of the whole space
  std::vector<double> sum_, square_;
  double draws_ = 0;
};

// By chance one of 30,000 features is beyond 7 with probability 8e-8.
inline constexpr double kLimit = 7;

inline Moments Measure(const RowSpace& space, size_t draws,
                       const std::function<const Update&()>& draw) {
  Moments moments(space);
  for (size_t i = 0; i < draws; ++i) moments.Add(draw());
  return moments;
}

inline RowSpace TwoTables(uint64_t rows) {
  RowSpace space;
  space.AddTable("narrow", rows / 2, 1);
  space.AddTable("wide", rows - rows / 2, 2);
  return space;
}

// Units with few and many rows, gradients below and above the clip; on 20 rows spread over the
// space, popular ones first, so that units share some.
inline StepUnits SomeUnits(const RowSpace& space) {
  std::mt19937_64 random(3);
  StepUnits units;
  for (size_t active : {1u, 1u, 2u, 3u, 5u, 5u, 0u}) {
    UnitGradient unit;
    const double size = units.size() % 3 == 0 ? 0.1 : 1.0;
    const auto value = [&] { return size * (static_cast<double>(random() % 1000) / 500 - 0.8); };
    for (size_t i = 0; i < kDenseSize; ++i) unit.dense.push_back(value() / 4);
    while (unit.rows.size() < active) {
      const uint64_t row = random() % (random() % 20 + 1) * (space.rows() / 20);
      auto& values = unit.rows[row];
      values.resize(DimOf(space, row));
      for (double& v : values) v = value();
    }
    units.push_back(unit);
  }
  return units;
}

}  // namespace tacit::mechanism
