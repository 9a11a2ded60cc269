#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "mechanism/part_reader.h"
#include "mechanism/row_sums.h"

namespace tacit::mechanism {

// The sums of a part of a period's units, in whole steps of the query's grid. Integers add up to
// the same in any order, so a period may be summed in parts, by threads or by machines: the parts
// together release what one RowSums of all units would, bit for bit. As private as the data.
//
// Rows of tables that are released whole lie in one array, row after row; the touched rows of all
// other tables in a list that ascends, so that two parts are merged without looking for anything.
// A part out of bytes has all its rows in the list. A value; not thread-safe.
class PartialSums {
 public:
  // A part of no unit.
  PartialSums(const RowSumsOptions& options, std::span<const SumTable> tables);
  // Closes sums: sorts the touched rows. What `sums` borrows must outlive the part too.
  explicit PartialSums(RowSums sums);

  // Adds another part of the query. Work: the rows of both lists, and the array of `other`.
  void Add(const PartialSums& other);
  // Returns sums to release, or to add more units to. Their places of touched rows ascend with the
  // rows. REQUIRES fewer than kReleaseRowsMost rows.
  RowSums Open() &&;
  // Returns sums of no unit, in the memory of these.
  RowSums Renew() &&;

  // The further numbers, and the rows of the list with the sum and the count of each, in steps. A
  // part out of bytes has no other rows.
  struct Cells {
    std::span<const int64_t> numbers;
    std::span<const uint64_t> rows;
    std::span<const int64_t> sums_and_counts;
  };
  Cells cells() const {
    return {std::span(array_).first(options_.numbers), list_.rows, list_.cells};
  }
  double step() const { return step_; }

  // Returns the bytes of the part: equal sums have equal bytes (the grammar is in the .cc).
  std::string Encode() const;
  // Adds a part that another process encoded: the rows of tables that are released whole to sums of
  // the same query, and all else to this part. Fails as PartReader does, and has added nothing
  // then. Memory: 24 bytes a row of one table, or of all that are not released whole.
  Status AddBytes(std::string_view bytes, RowSums* whole);
  // Returns the part that another process encoded, or the failure of PartReader. Memory: 24 bytes a
  // row, which takes 3 bytes at least.
  static Result<PartialSums> Decode(std::string_view bytes, const RowSumsOptions& options,
                                    std::span<const SumTable> tables);

 private:
  // The array has the rows of tables that are released whole; else the list has them.
  bool spread() const { return array_.size() == head_ + 2 * whole_rows_; }
  void Spread();
  void AddList(const PartRows& other);
  // Copies rows [begin, end) to place `to` of the list; returns the place behind them.
  size_t Copy(const PartRows& from, size_t begin, size_t end, size_t to);

  RowSumsOptions options_;
  std::span<const SumTable> tables_;
  double step_;
  size_t head_;        // cells before the array's first row: the further numbers
  size_t whole_rows_;  // of tables that are released whole
  std::vector<int64_t> array_;
  PartRows list_;
  ReleasedSums last_;  // memory for the release
};

}  // namespace tacit::mechanism
