#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "mechanism/row_sums.h"

namespace tacit::mechanism {

// Rows, ascending, with the sum and the count of each, in steps.
struct PartRows {
  std::vector<uint64_t> rows;
  std::vector<int64_t> cells;

  size_t size() const { return rows.size(); }
  void Clear() {
    rows.clear();
    cells.clear();
  }
};

inline uint64_t SizeOf(int64_t steps) {
  return steps < 0 ? 0 - static_cast<uint64_t>(steps) : static_cast<uint64_t>(steps);
}

// The greatest common divisor of counts, one at a time.
class CountUnit {
 public:
  void Add(int64_t count) {
    if (unit_ != 1 && (unit_ == 0 || SizeOf(count) % unit_ != 0))
      unit_ = std::gcd(unit_, SizeOf(count));
  }
  uint64_t value() const { return unit_; }

 private:
  uint64_t unit_ = 0;
};

// Reads the bytes of a part (PartialSums::Encode), one table after the other, so that a part can be
// checked without being held. Each call reads what follows, and fails for bytes that Encode does
// not write, with the offset: kInvalidArgument where they are of another query, else kCorruption.
// After a failure there is nothing more to read. Not thread-safe.
class PartReader {
 public:
  // A sum or a count that bytes hold has no more steps: 2^30 units of full length fit.
  static constexpr int64_t kStepsMost = int64_t{1} << 50;

  // The bytes, and what `tables` are of, must outlive it.
  PartReader(std::string_view bytes, const RowSumsOptions& options,
             std::span<const SumTable> tables);

  double step() const { return step_; }
  // Comes first. REQUIRES room for the query's further numbers.
  Status ReadHead(std::span<int64_t> numbers);
  // Appends the rows of the next table. Memory: 24 bytes a row, which takes 3 bytes at least.
  Status ReadTable(PartRows* out);
  // Comes last.
  Status ReadEnd();

 private:
  // These return false after a refusal, and Numbers where `each` does.
  bool Refuse(std::string why);
  bool RefuseQuery(std::string why);
  bool Number(uint64_t* value);
  // Calls each(i, number) for `n` numbers, until it returns false for number_.
  template <class Each>
  bool Numbers(size_t n, const Each& each);
  bool Head(std::span<int64_t> numbers);
  bool Table(const SumTable& table, PartRows* out);
  bool Rows(const SumTable& table, std::span<uint64_t> rows);
  bool Sums(std::span<int64_t> cells, size_t stride);
  bool Counts(const SumTable& table, uint64_t unit, std::span<int64_t> cells);
  tl::unexpected<Error> Refusal() const;

  const std::string_view bytes_;
  const size_t numbers_;
  const std::span<const SumTable> tables_;
  const double step_;
  size_t at_ = 0;     // in bytes_
  size_t table_ = 0;  // the next one
  uint64_t number_ = 0;
  bool another_query_ = false;
  std::string why_;
};

}  // namespace tacit::mechanism
