#include "base/row_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace tacit {

void RowSpace::AddTable(std::string name, uint64_t rows, uint32_t dim) {
  TACIT_CHECK(rows > 0 && dim > 0, "an empty table");
  tables_.push_back({std::move(name), rows, dim, rows_});
  rows_ += rows;
  max_dim_ = std::max(max_dim_, dim);
}

uint64_t RowSpace::floats() const {
  uint64_t floats = 0;
  for (const Table& table : tables_) floats += table.rows * table.dim;
  return floats;
}

uint32_t RowSpace::TableOf(uint64_t row) const {
  TACIT_CHECK(row < rows_, "row outside the id space");
  auto after = std::upper_bound(tables_.begin(), tables_.end(), row,
                                [](uint64_t r, const Table& t) { return r < t.first; });
  return static_cast<uint32_t>(after - tables_.begin()) - 1;
}

Result<uint32_t> RowSpace::FindTable(std::string_view name) const {
  std::vector<std::string_view> names;
  for (uint32_t i = 0; i < tables_.size(); ++i) {
    if (tables_[i].name == name) return i;
    names.push_back(tables_[i].name);
  }
  return Fail(ErrorCode::kNotFound, fmt::format("no table '{}'{}", name, DidYouMean(name, names)));
}

}  // namespace tacit
