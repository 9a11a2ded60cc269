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
// A value; not thread-safe.
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

  // Returns the bytes of the part: equal sums have equal bytes (the grammar is in the .cc).
  std::string Encode() const;
  // Adds a part that another process encoded: the rows of tables that are released whole to sums of
  // the same query, and all else to this part. Fails as PartReader does, and has added nothing
  // then. Memory: 24 bytes a row of one table, or of all that are not released whole.
  Status AddBytes(std::string_view bytes, RowSums* whole);

 private:
  // The array has the rows of tables that are released whole; else no unit has touched them.
  bool spread() const { return array_.size() > head_; }
  void AddList(const PartRows& other);

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
