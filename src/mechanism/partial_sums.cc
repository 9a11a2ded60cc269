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

// Adds `times` rows [begin, end) of a table that is released whole, whose first cell is `first`.
void AddRows(const SumTable& table, const PartRows& from, size_t begin, size_t end, int64_t times,
             int64_t* first) {
  for (size_t i = begin; i < end; ++i) {
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
  Spread();
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

void PartialSums::Spread() {
  if (spread()) return;
  array_.resize(head_ + 2 * whole_rows_);
  AddList(std::exchange(list_, {}));
}

void PartialSums::Add(const PartialSums& other) {
  TACIT_CHECK(options_ == other.options_ && std::ranges::equal(tables_, other.tables_),
              "sums of another query");
  if (other.spread()) Spread();
  for (size_t i = 0; i < other.array_.size(); ++i) AddTo(&array_[i], other.array_[i]);
  if (!other.list_.rows.empty()) AddList(other.list_);
}

void PartialSums::AddList(const PartRows& other) {
  const PartRows mine = std::exchange(list_, {});
  const size_t most = mine.rows.size() + other.rows.size();
  list_.rows.resize(most);
  list_.cells.resize(2 * most);
  size_t a = 0, b = 0, n = 0;
  int64_t* cell = array_.data() + head_;
  for (const SumTable& table : tables_) {
    const size_t a_end = EndOf(table, mine.rows, a), b_end = EndOf(table, other.rows, b);
    if (table.every_row && spread()) {
      AddRows(table, other, b, b_end, 1, cell);
      b = b_end;
      cell += 2 * table.rows;
      continue;
    }
    for (; a < a_end && b < b_end; ++n) {  // without a branch that guesses which list is next
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
    n = Copy(mine, a, a_end, n);
    n = Copy(other, b, b_end, n);
    a = a_end;
    b = b_end;
  }
  list_.rows.resize(n);
  list_.cells.resize(2 * n);
}

size_t PartialSums::Copy(const PartRows& from, size_t begin, size_t end, size_t to) {
  const auto at = static_cast<ptrdiff_t>(begin), count = static_cast<ptrdiff_t>(end - begin);
  std::copy_n(from.rows.begin() + at, count, list_.rows.begin() + static_cast<ptrdiff_t>(to));
  std::copy_n(from.cells.begin() + 2 * at, 2 * count,
              list_.cells.begin() + 2 * static_cast<ptrdiff_t>(to));
  return to + (end - begin);
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
    const size_t end = EndOf(table, list_.rows, begin);
    some.Clear();
    const auto take = [&](uint64_t row, const int64_t* at) {
      if (table.every_row && at[0] == 0 && at[1] == 0) return;
      some.rows.push_back(row);
      some.cells.insert(some.cells.end(), {at[0], at[1]});
    };
    for (; begin < end; ++begin) take(list_.rows[begin], &list_.cells[2 * begin]);
    if (table.every_row && spread())
      for (uint64_t i = 0; i < table.rows; ++i, cell += 2) take(table.first + i, cell);
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
      AddRows(table, rows, 0, rows.size(), times, cell);
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

Result<PartialSums> PartialSums::Decode(std::string_view bytes, const RowSumsOptions& options,
                                        std::span<const SumTable> tables) {
  PartialSums part(options, tables);
  PartReader reader(bytes, options, tables);
  TACIT_RETURN_IF_ERROR(reader.ReadHead(std::span(part.array_).first(options.numbers)));
  for (size_t t = 0; t < tables.size(); ++t) TACIT_RETURN_IF_ERROR(reader.ReadTable(&part.list_));
  TACIT_RETURN_IF_ERROR(reader.ReadEnd());
  return part;
}

}  // namespace tacit::mechanism
