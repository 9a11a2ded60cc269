#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/tuned.h"
#include "mechanism/grid.h"
#include "mechanism/unit_vector.h"
#include "noise/noise.h"
#include "privacy/charge.h"

namespace tacit::mechanism {

// Rows [first, first + rows) of a public space.
struct SumTable {
  uint64_t first = 0, rows = 0;
  // Every row of the table is released. Else only rows whose noised count is at least the
  // threshold: work and memory are then those of the touched rows and of the few that noise alone
  // brings over it.
  bool every_row = true;
};

struct RowSumsOptions {
  double clip = 1;  // C: norm that a unit's whole contribution is cut to
  // sigma, in units of the clip. 0: an experiment without privacy, exact sums of the touched rows.
  double noise_multiplier = 0;
  double threshold_deviations =
      tuned::kSumsDeviations;  // of a count's noise; for tables not released whole
  size_t numbers = 0;          // further sums that belong to no row
};

// The numbers that leave: sums with their noise, in the units of the contributions.
struct ReleasedSums {
  std::vector<uint64_t> rows;        // ascending
  std::vector<double> sums, counts;  // per row
  std::vector<double> numbers;

  void Clear();  // and keeps the memory
};

// One release of a period: for each row of a public space a noised sum and a noised count, and a
// few further numbers. A unit adds ONE vector over all of them, cut to the norm C, so that the
// whole is one Gaussian of multiplier sigma that no sampling amplifies: taking a unit out moves the
// integers that are released by a norm of at most C.
//
// Rows that no unit touched have noise too. In a table that is not released whole, a touched row
// is released if its noised count reaches the threshold, and an untouched one by the same law: with
// the probability that noise reaches the threshold, found by geometric skips, its count drawn from
// the noise above the threshold, its sum noise. That is a function of the noised numbers of all
// rows, so it costs nothing beside them.
//
// Contributions are cut to whole steps of a period's histogram's grid, towards zero, and added as
// integers. The private sums of an open period are in memory alone; they go when the object goes.
class RowSums {
 public:
  // `touched`: the rows that units may contribute to, ascending and distinct, each in a table; a
  // place names one by its place in this list. `tables` ascend and do not overlap. The spans must
  // outlive the object.
  RowSums(const RowSumsOptions& options, std::span<const SumTable> tables,
          std::span<const uint64_t> touched);

  // The cells of a unit's vector.
  size_t cells() const { return sums_.size(); }
  static uint32_t SumOf(uint32_t place) { return 2 * place; }
  static uint32_t CountOf(uint32_t place) { return 2 * place + 1; }
  uint32_t Number(size_t i) const { return static_cast<uint32_t>(2 * touched_.size() + i); }

  // Adds a unit's whole vector; true if it was longer than C. May be called from any thread; the
  // order makes no difference. REQUIRES one call per unit, a vector of cells() cells, and finite
  // weights.
  bool Add(const UnitVector& unit);
  // The same for weights[i] on cells[i]. REQUIRES distinct cells.
  bool Add(std::span<const uint32_t> cells, std::span<const double> weights);
  // Returns sums plus noise, once. The noise has a key of its own. The memory of `last`, an earlier
  // release, is used again.
  ReleasedSums Release(noise::NoiseSource& noise, ReleasedSums last = {}) &&;

  privacy::Charge charge() const;
  // Standard deviation of the noise on every number.
  double deviation() const { return options_.noise_multiplier * options_.clip; }

  // The sums of the units added so far, in steps; as private as the data.
  std::span<const int64_t> sums() const { return sums_; }
  double step() const { return grid_.step; }

 private:
  // Touched rows of a table: places [begin, end).
  struct Range {
    size_t begin = 0, end = 0;
  };
  Range TouchedIn(const SumTable& table) const;
  void ReleaseEvery(const SumTable& table, noise::NoiseSource& noise, ReleasedSums* out) const;
  void ReleaseAbove(const SumTable& table, noise::NoiseSource& noise, ReleasedSums* out) const;
  void ReleaseExact(const SumTable& table, ReleasedSums* out) const;
  double ValueOf(int64_t steps) const { return static_cast<double>(steps) * grid_.step; }

  const RowSumsOptions options_;
  const std::span<const SumTable> tables_;
  const std::span<const uint64_t> touched_;
  const Grid grid_;
  std::vector<int64_t> sums_;
};

}  // namespace tacit::mechanism
