#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/tuned.h"
#include "mechanism/grid.h"
#include "mechanism/unit_vector.h"
#include "noise/noise.h"
#include "privacy/charge.h"

namespace tacit::mechanism {

// A period's release has fewer rows: they are numbered with 32 bits, two numbers each.
inline constexpr size_t kReleaseRowsMost = size_t{1} << 30;

// Rows [first, first + rows) of a public space.
struct SumTable {
  uint64_t first = 0, rows = 0;
  // Every row of the table is released. Else only rows whose noised count is at least the
  // threshold: work and memory are then those of the touched rows and of the few that noise alone
  // brings over it.
  bool every_row = true;

  friend bool operator==(const SumTable&, const SumTable&) = default;
};

struct RowSumsOptions {
  double clip = 1;  // C: norm that a unit's whole contribution is cut to
  // sigma, in units of the clip. 0: an experiment without privacy, exact sums of the touched rows.
  double noise_multiplier = 0;
  double threshold_deviations =
      tuned::kSumsDeviations;  // of a count's noise; for tables not released whole
  size_t numbers = 0;          // further sums that belong to no row

  friend bool operator==(const RowSumsOptions&, const RowSumsOptions&) = default;
};

// The numbers that leave: sums with their noise, and nothing else of the units. They stay whole
// steps of the grid where they were added up; a table is read off as numbers in the units of the
// contributions. A value; its memory serves the next period's sums.
class ReleasedSums {
 public:
  // A table's released rows, ascending. A view.
  class Table {
   public:
    size_t size() const { return cells_.size() / 2; }
    uint64_t row(size_t i) const { return rows_.empty() ? first_ + i : rows_[i]; }
    double sum(size_t i) const { return static_cast<double>(cells_[2 * i]) * step_; }
    double count(size_t i) const { return static_cast<double>(cells_[2 * i + 1]) * step_; }
    // Calls each(i) for every row whose count is above `least`, in order.
    template <class Each>
    void ForCountsAbove(double least, const Each& each) const {
      const double steps = std::floor(least / step_);  // counts are whole steps
      const auto bound = steps < -0x1p62 ? INT64_MIN : static_cast<int64_t>(steps);
      for (size_t i = 0; i < size(); ++i)
        if (cells_[2 * i + 1] > bound) each(i);
    }

   private:
    friend class ReleasedSums;
    uint64_t first_ = 0;              // of a table that is released whole
    std::span<const uint64_t> rows_;  // of another
    std::span<const int64_t> cells_;  // sum and count of each row
    double step_ = 0;
  };

  size_t tables() const { return parts_.size(); }
  Table table(size_t i) const;
  std::span<const double> numbers() const { return numbers_; }

 private:
  friend class RowSums;
  struct Part {
    bool whole = true;
    uint64_t first = 0;
    size_t begin = 0, end = 0;  // rows: in steps_ from head_ on, or in rows_ and kept_
  };

  std::vector<Part> parts_;  // a table each
  size_t head_ = 0;
  std::vector<int64_t> steps_;  // of the tables that are released whole
  std::vector<uint64_t> rows_;  // of the others
  std::vector<int64_t> kept_;
  std::vector<double> numbers_;
  double step_ = 0;
};

// The weights of units that have one row of each of some columns: the sum of a unit's row of column
// j gets sums[j] times a factor of the unit's own, its count counts[j]. They are kept in steps, so
// that a unit costs no more than its additions. A value.
class ColumnWeights {
 public:
  // REQUIRES the options of the query, and finite weights.
  ColumnWeights(const RowSumsOptions& options, std::span<const double> sums,
                std::span<const double> counts);

  size_t size() const { return sums_.size(); }
  double sum(size_t j) const { return sums_[j] * step_; }
  double count(size_t j) const { return counts_[j] * step_; }

 private:
  friend class RowSums;
  double step_;
  std::vector<double> sums_, counts_;  // in steps: exact, since a step is a power of two
  std::vector<int64_t> whole_counts_;  // cut towards zero
  double sum_squares_ = 0, count_squares_ = 0;
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
// integers, to which their noise is then added in place. The private sums of an open period are in
// memory alone; they go when the object goes.
class RowSums {
 public:
  // `tables` ascend, do not overlap and must outlive the object. A place names a row. Rows of
  // tables that are released whole have theirs from the start; others get one when they are
  // touched. `last`: an earlier release, whose memory is used again.
  RowSums(const RowSumsOptions& options, std::span<const SumTable> tables, ReleasedSums last = {});

  // The place of the first row of a table that is released whole; its other rows follow.
  uint32_t FirstPlace(size_t table) const { return first_place_[table]; }
  // Gives a row of any other table the next place, from places() on. REQUIRES one call a row.
  uint32_t Touch(uint64_t row);
  size_t places() const { return whole_places_ + touched_.size(); }

  // The cells of a unit's vector: further numbers, then the sum and the count of each place.
  size_t cells() const { return sums_.size(); }
  uint32_t SumOf(uint32_t place) const { return head_ + 2 * place; }
  uint32_t CountOf(uint32_t place) const { return head_ + 2 * place + 1; }
  static uint32_t Number(size_t i) { return static_cast<uint32_t>(i); }

  // Adds a unit's whole vector; true if it was longer than C. May be called from any thread; the
  // order makes no difference. REQUIRES one call per unit, a vector of cells() cells, and finite
  // weights.
  bool Add(const UnitVector& unit);
  // The same for weights[i] on cells[i]. REQUIRES distinct cells.
  bool Add(std::span<const uint32_t> cells, std::span<const double> weights);
  // The same, to the last step, for a unit of columns, with its factor and its further numbers.
  // REQUIRES that nothing else is added meanwhile, and distinct places.
  bool Add(const ColumnWeights& columns, std::span<const uint32_t> places, double factor,
           std::span<const double> numbers);
  // Returns sums plus noise, once. The noise has a key of its own.
  ReleasedSums Release(noise::NoiseSource& noise) &&;

  privacy::Charge charge() const;
  // Standard deviation of the noise on every number.
  double deviation() const { return options_.noise_multiplier * options_.clip; }

  // The rows that units have counted for; as private as the data.
  size_t CountTouched() const;
  // The sums of the units added so far, in steps; as private as the data.
  std::span<const int64_t> sums() const { return sums_; }
  double step() const { return grid_.step; }

 private:
  friend class PartialSums;
  // Sums that are added up already. REQUIRES a cell for each number and for each place.
  RowSums(const RowSumsOptions& options, std::span<const SumTable> tables, ReleasedSums last,
          std::vector<int64_t> sums);
  // A touched row of a table that is not released whole.
  struct Touched {
    uint64_t row = 0;
    size_t cell = 0;  // of its sum
  };
  bool AddCells(const ColumnWeights& columns, std::span<const uint32_t> places, double factor,
                std::span<const double> numbers);
  void ReleaseAbove(const SumTable& table, std::span<const Touched> touched,
                    noise::NoiseSource& noise, ReleasedSums* out) const;
  void ReleaseExact(std::span<const Touched> touched, ReleasedSums* out) const;
  double ValueOf(int64_t steps) const { return static_cast<double>(steps) * grid_.step; }

  const RowSumsOptions options_;
  const std::span<const SumTable> tables_;
  const Grid grid_;
  const double short_squares_;         // in steps: a shorter vector is not cut, however it rounds
  const uint32_t head_;                // cells before the first place's
  std::vector<uint32_t> first_place_;  // per table
  size_t whole_places_ = 0;
  std::vector<uint64_t> touched_;  // by place
  std::vector<int64_t> sums_;
  ReleasedSums last_;
};

}  // namespace tacit::mechanism
