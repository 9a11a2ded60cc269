// The bytes of a part, in the notation of base/bytes.h and base/varint.h:
//     part    := step:f64 numbers:varint number:zigzag*numbers tables:varint table*tables
//     table   := rows:varint unit:varint gap:varint*rows sum:zigzag*rows count:varint*rows
// Sums are whole steps. Rows ascend: the first gap of a table counts from its first row, any other
// from the row after the one before. `unit` is the greatest common divisor of a table's counts,
// which `count` counts in; 0 where all are 0. A count below 0 is written as 2^64 less. A table
// released whole has the rows whose sum or count is not 0, any other all that were touched.
#include "mechanism/partial_sums.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/radix_sort.h"
#include "base/varint.h"

namespace tacit::mechanism {
namespace {

struct Touched {
  uint64_t row;
  size_t cell;
};

size_t WholeRows(std::span<const SumTable> tables) {
  size_t rows = 0;
  for (const SumTable& table : tables) rows += table.every_row ? table.rows : 0;
  return rows;
}

// The place in `rows` behind those of the table, from `begin` on.
size_t EndOf(const SumTable& table, std::span<const uint64_t> rows, size_t begin) {
  const auto after = std::ranges::lower_bound(rows.subspan(begin), table.first + table.rows);
  return begin + static_cast<size_t>(after - rows.subspan(begin).begin());
}

// Sums of hostile parts may wrap, which harms no other number.
void AddTo(int64_t* sum, int64_t more) {
  *sum = static_cast<int64_t>(static_cast<uint64_t>(*sum) + static_cast<uint64_t>(more));
}

// Adds `times` these rows of a table that is released whole, whose first cell is `first`.
void AddRows(const SumTable& table, const PartRows& from, int64_t times, int64_t* first) {
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t* const cell = first + 2 * (from.rows[i] - table.first);
    AddTo(&cell[0], times * from.cells[2 * i]);
    AddTo(&cell[1], times * from.cells[2 * i + 1]);
  }
}

// Some rows of a table, ascending, with the sum and the count of each.
void EncodeTable(const SumTable& table, std::span<const uint64_t> rows,
                 std::span<const int64_t> cells, ByteWriter* writer) {
  CountUnit unit;
  for (size_t i = 0; i < rows.size(); ++i) unit.Add(cells[2 * i + 1]);
  PutVarint(rows.size(), writer);
  PutVarint(unit.value(), writer);
  uint64_t next = table.first;
  for (const uint64_t row : rows) {
    PutVarint(row - next, writer);
    next = row + 1;
  }
  for (size_t i = 0; i < rows.size(); ++i) PutVarint(ToZigzag(cells[2 * i]), writer);
  const auto divisor = static_cast<int64_t>(std::max<uint64_t>(unit.value(), 1));
  for (size_t i = 0; i < rows.size(); ++i)
    PutVarint(static_cast<uint64_t>(cells[2 * i + 1] / divisor), writer);
}

}  // namespace

PartialSums::PartialSums(const RowSumsOptions& options, std::span<const SumTable> tables)
    : options_(options),
      tables_(tables),
      step_(RowSums(options, {}).step()),
      head_(RowSums(options, {}).cells()),
      whole_rows_(WholeRows(tables)),
      array_(head_) {}

PartialSums::PartialSums(RowSums sums)
    : options_(sums.options_),
      tables_(sums.tables_),
      step_(sums.step()),
      head_(sums.head_),
      whole_rows_(sums.whole_places_),
      array_(std::move(sums.sums_)),
      last_(std::move(sums.last_)) {
  const size_t begin = head_ + 2 * whole_rows_;
  std::vector<Touched> touched, work;
  touched.reserve(sums.touched_.size());
  list_.rows.reserve(touched.capacity());
  list_.cells.reserve(2 * touched.capacity());
  for (const uint64_t row : sums.touched_) touched.push_back({row, begin + 2 * touched.size()});
  if (!std::ranges::is_sorted(touched, {}, &Touched::row))
    RadixSort(&touched, &work, [](const Touched& one) { return one.row; });
  for (const Touched& one : touched) {
    list_.rows.push_back(one.row);
    list_.cells.insert(list_.cells.end(), {array_[one.cell], array_[one.cell + 1]});
  }
  array_.resize(begin);
}

RowSums PartialSums::Open() && {
  array_.resize(head_ + 2 * whole_rows_);
  TACIT_CHECK(whole_rows_ + list_.rows.size() < kReleaseRowsMost, "too many rows for one release");
  RowSums sums(options_, tables_, std::move(last_), std::move(array_));
  sums.sums_.insert(sums.sums_.end(), list_.cells.begin(), list_.cells.end());
  sums.touched_ = std::move(list_.rows);
  return sums;
}

RowSums PartialSums::Renew() && {
  list_ = {};
  std::ranges::fill(array_, 0);
  return std::move(*this).Open();
}

void PartialSums::Add(const PartialSums& other) {
  TACIT_CHECK(options_ == other.options_ && std::ranges::equal(tables_, other.tables_),
              "sums of another query");
  array_.resize(std::max(array_.size(), other.array_.size()));
  for (size_t i = 0; i < other.array_.size(); ++i) AddTo(&array_[i], other.array_[i]);
  if (!other.list_.rows.empty()) AddList(other.list_);
}

void PartialSums::AddList(const PartRows& other) {
  const PartRows mine = std::exchange(list_, {});
  list_.rows.resize(mine.size() + other.size());
  list_.cells.resize(2 * list_.rows.size());
  size_t a = 0, b = 0, n = 0;
  // Without a branch that guesses which list is next.
  for (; a < mine.size() && b < other.size(); ++n) {
    const uint64_t row_a = mine.rows[a], row_b = other.rows[b];
    const bool take_a = row_a <= row_b, take_b = row_b <= row_a;
    list_.rows[n] = std::min(row_a, row_b);
    for (size_t k = 0; k < 2; ++k) {
      int64_t* const cell = &list_.cells[2 * n + k];
      AddTo(cell, take_a ? mine.cells[2 * a + k] : 0);
      AddTo(cell, take_b ? other.cells[2 * b + k] : 0);
    }
    a += take_a;
    b += take_b;
  }
  list_.rows.resize(n);
  list_.cells.resize(2 * n);
  const auto append = [&](const PartRows& from, size_t begin) {
    const auto at = static_cast<ptrdiff_t>(begin);
    list_.rows.insert(list_.rows.end(), from.rows.begin() + at, from.rows.end());
    list_.cells.insert(list_.cells.end(), from.cells.begin() + 2 * at, from.cells.end());
  };
  append(mine, a);
  append(other, b);
}

std::string PartialSums::Encode() const {
  ByteWriter writer;
  writer.Put(step_);
  PutVarint(options_.numbers, &writer);
  for (size_t i = 0; i < options_.numbers; ++i) PutVarint(ToZigzag(array_[i]), &writer);
  PutVarint(tables_.size(), &writer);
  size_t begin = 0;
  const int64_t* cell = array_.data() + head_;
  PartRows some;
  for (const SumTable& table : tables_) {
    if (!table.every_row) {
      const size_t end = EndOf(table, list_.rows, begin), size = end - begin;
      EncodeTable(table, std::span(list_.rows).subspan(begin, size),
                  std::span(list_.cells).subspan(2 * begin, 2 * size), &writer);
      begin = end;
      continue;
    }
    some.Clear();
    for (uint64_t i = 0; spread() && i < table.rows; ++i, cell += 2) {
      if (cell[0] == 0 && cell[1] == 0) continue;
      some.rows.push_back(table.first + i);
      some.cells.insert(some.cells.end(), {cell[0], cell[1]});
    }
    EncodeTable(table, some.rows, some.cells, &writer);
  }
  return std::move(writer).Take();
}

Status PartialSums::AddBytes(std::string_view bytes, RowSums* whole) {
  TACIT_CHECK(options_ == whole->options_ && std::ranges::equal(tables_, whole->tables_),
              "sums of another query");
  PartialSums rest(options_, tables_);
  PartRows rows;
  size_t added = 0;  // tables
  const auto add = [&](int64_t times, size_t tables) -> Status {
    PartReader reader(bytes, options_, tables_);
    TACIT_RETURN_IF_ERROR(reader.ReadHead(std::span(rest.array_).first(options_.numbers)));
    int64_t* cell = whole->sums_.data() + head_;
    for (size_t t = 0; t < tables; ++t) {
      const SumTable& table = tables_[t];
      rows.Clear();
      TACIT_RETURN_IF_ERROR(reader.ReadTable(table.every_row ? &rows : &rest.list_));
      AddRows(table, rows, times, cell);
      if (table.every_row) cell += 2 * table.rows;
      added = t + 1;
    }
    return times == 1 ? reader.ReadEnd() : Status();
  };
  if (Status read = add(1, tables_.size()); !read) {
    static_cast<void>(add(-1, added));  // sums are integers: what was added goes without a trace
    return read;
  }
  Add(rest);
  return {};
}

}  // namespace tacit::mechanism
