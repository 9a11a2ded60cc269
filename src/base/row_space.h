#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tacit {

// One id space over all embedding tables of a learner: row `first + bucket` of the space is row
// `bucket` of its table. The configuration fixes it before any record is read, so the set of rows
// reveals nothing about the data. A value; immutable after construction.
class RowSpace {
 public:
  struct Table {
    std::string name;
    uint64_t rows = 0;   // size of the table
    uint32_t dim = 0;    // floats in a row
    uint64_t first = 0;  // id of its row 0 in the space
  };

  RowSpace() = default;

  // Appends a table after the last one; REQUIRES rows > 0 and dim > 0.
  void AddTable(std::string name, uint64_t rows, uint32_t dim);

  std::span<const Table> tables() const { return tables_; }
  uint64_t rows() const { return rows_; }
  uint32_t max_dim() const { return max_dim_; }
  // The coordinates of all rows together.
  uint64_t floats() const;

  // Index of the table that holds the row. REQUIRES row < rows(). O(log tables).
  uint32_t TableOf(uint64_t row) const;
  // Returns the index of the table with this name, or an error that suggests the nearest name.
  Result<uint32_t> FindTable(std::string_view name) const;

 private:
  std::vector<Table> tables_;
  uint64_t rows_ = 0;
  uint32_t max_dim_ = 0;
};

}  // namespace tacit
