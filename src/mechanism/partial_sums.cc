// The bytes of a part, in the notation of base/bytes.h and base/varint.h:
//     part    := step:f64 numbers:varint number:zigzag*numbers tables:varint table*tables
//     table   := rows:varint unit:varint gap:varint*rows sum:zigzag*rows count:varint*rows
// Sums are whole steps. Rows ascend: the first gap of a table counts from its first row, any other
// from the row after the one before. `unit` is the greatest common divisor of a table's counts,
// which `count` counts in; 0 where all are 0. A count below 0 is written as 2^64 less. A table
// released whole has the rows whose sum or count is not 0, any other all that were touched.
#include "mechanism/partial_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/radix_sort.h"
#include "base/varint.h"

namespace tacit::mechanism {
namespace {

constexpr size_t kRowBytesLeast = 3;

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

uint64_t SizeOf(int64_t count) {
  return count < 0 ? 0 - static_cast<uint64_t>(count) : static_cast<uint64_t>(count);
}

// The greatest common divisor of counts, one at a time.
class Unit {
 public:
  void Add(int64_t count) {
    if (unit_ != 1 && (unit_ == 0 || SizeOf(count) % unit_ != 0))
      unit_ = std::gcd(unit_, SizeOf(count));
  }
  uint64_t value() const { return unit_; }

 private:
  uint64_t unit_ = 0;
};

// Some rows of a table, ascending, with the sum and the count of each.
void EncodeTable(const SumTable& table, std::span<const uint64_t> rows,
                 std::span<const int64_t> cells, ByteWriter* writer) {
  Unit unit;
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

// Reads the bytes of one part, and keeps the reason and the offset of the first refusal.
class PartReader {
 public:
  explicit PartReader(std::string_view bytes) : reader_(bytes), bytes_(bytes.size()) {}

  // All of these return false after a refusal.
  bool Head(double step, const RowSumsOptions& options, std::span<int64_t> numbers);
  bool Tables(std::span<const SumTable> tables, std::vector<uint64_t>* rows,
              std::vector<int64_t>* cells);
  bool End() { return reader_.at_end() || Refuse("bytes follow the last table"); }

  tl::unexpected<Error> error() const {
    return Fail(another_query_ ? ErrorCode::kInvalidArgument : ErrorCode::kCorruption,
                fmt::format("sums of a part, byte {}: {}", bytes_ - reader_.remaining(), why_));
  }

 private:
  bool Refuse(std::string why) {
    why_ = std::move(why);
    return false;
  }
  bool RefuseQuery(std::string why) {
    another_query_ = true;
    return Refuse(std::move(why));
  }
  bool Number(uint64_t* value) {
    if (GetVarint(&reader_, value)) return true;
    return Refuse(reader_.ok() ? "a number is not in its shortest form" : "the bytes end");
  }
  // Reads a number of steps.
  bool Sum(int64_t* steps) {
    uint64_t value = 0;
    if (!Number(&value)) return false;
    *steps = FromZigzag(value);
    return SizeOf(*steps) <= uint64_t{PartialSums::kStepsMost} ||
           Refuse(fmt::format("a sum of {} steps; 2^50 is the most", *steps));
  }
  bool Count(int64_t unit, Unit* units, int64_t* steps) {
    uint64_t value = 0;
    if (!Number(&value)) return false;
    const auto count = static_cast<int64_t>(value);
    units->Add(count);
    if (__builtin_mul_overflow(count, unit, steps) ||
        SizeOf(*steps) > uint64_t{PartialSums::kStepsMost})
      return Refuse(fmt::format("a count of {} times {} steps; 2^50 is the most", count, unit));
    return true;
  }
  bool Rows(const SumTable& table, size_t rows, std::vector<uint64_t>* out);
  bool Table(const SumTable& table, std::vector<uint64_t>* rows, std::vector<int64_t>* cells);

  ByteReader reader_;
  const size_t bytes_;
  bool another_query_ = false;
  std::string why_;
};

bool PartReader::Head(double step, const RowSumsOptions& options, std::span<int64_t> numbers) {
  const auto its_step = reader_.Get<double>();
  if (!reader_.ok()) return Refuse("the bytes end");
  if (its_step != step)
    return RefuseQuery(fmt::format("a step of {}; this query's is {}", its_step, step));
  uint64_t count = 0;
  if (!Number(&count)) return false;
  if (count != options.numbers)
    return RefuseQuery(
        fmt::format("{} further numbers; this query has {}", count, options.numbers));
  for (int64_t& number : numbers)
    if (!Sum(&number)) return false;
  return true;
}

bool PartReader::Tables(std::span<const SumTable> tables, std::vector<uint64_t>* rows,
                        std::vector<int64_t>* cells) {
  uint64_t count = 0;
  if (!Number(&count)) return false;
  if (count != tables.size())
    return RefuseQuery(fmt::format("{} tables; this query has {}", count, tables.size()));
  for (size_t t = 0; t < tables.size(); ++t)
    if (!Table(tables[t], rows, cells)) return Refuse(fmt::format("table {}: {}", t, why_));
  return true;
}

bool PartReader::Rows(const SumTable& table, size_t rows, std::vector<uint64_t>* out) {
  uint64_t next = 0;
  for (size_t i = 0; i < rows; ++i) {
    uint64_t gap = 0;
    if (!Number(&gap)) return false;
    if (gap >= table.rows - next)
      return Refuse(fmt::format("{} rows past row {}; the table has {}", gap, next, table.rows));
    out->push_back(table.first + next + gap);
    next += gap + 1;
  }
  return true;
}

bool PartReader::Table(const SumTable& table, std::vector<uint64_t>* rows,
                       std::vector<int64_t>* cells) {
  uint64_t count = 0, unit = 0;
  if (!Number(&count) || !Number(&unit)) return false;
  if (count > reader_.remaining() / kRowBytesLeast)
    return Refuse(fmt::format("the bytes end before {} rows", count));
  if (unit > uint64_t{PartialSums::kStepsMost})
    return Refuse(fmt::format("counts in units of {} steps; 2^50 is the most", unit));
  if (!Rows(table, count, rows)) return false;
  cells->resize(2 * rows->size());
  const auto read = std::span(*cells).last(2 * count);
  for (size_t i = 0; i < count; ++i)
    if (!Sum(&read[2 * i])) return false;
  Unit units;  // of what is read, so of counts in units
  const auto steps = static_cast<int64_t>(std::max<uint64_t>(unit, 1));
  for (size_t i = 0; i < count; ++i) {
    if (!Count(steps, &units, &read[2 * i + 1])) return false;
    if (table.every_row && read[2 * i] == 0 && read[2 * i + 1] == 0)
      return Refuse("a row of no sum and no count in a table that is released whole");
  }
  if (units.value() != (unit == 0 ? 0 : 1))
    return Refuse(fmt::format("{} is not the unit of the counts", unit));
  return true;
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

void PartialSums::AddList(const List& other) {
  const List mine = std::exchange(list_, {});
  const size_t most = mine.rows.size() + other.rows.size();
  list_.rows.resize(most);
  list_.cells.resize(2 * most);
  size_t a = 0, b = 0, n = 0;
  int64_t* cell = array_.data() + head_;
  for (const SumTable& table : tables_) {
    const size_t a_end = EndOf(table, mine.rows, a), b_end = EndOf(table, other.rows, b);
    if (table.every_row && spread()) {
      for (; b < b_end; ++b) {
        int64_t* const at = cell + 2 * (other.rows[b] - table.first);
        AddTo(&at[0], other.cells[2 * b]);
        AddTo(&at[1], other.cells[2 * b + 1]);
      }
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

size_t PartialSums::Copy(const List& from, size_t begin, size_t end, size_t to) {
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
  List some;
  for (const SumTable& table : tables_) {
    const size_t end = EndOf(table, list_.rows, begin);
    some.rows.clear();
    some.cells.clear();
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

Result<PartialSums> PartialSums::Decode(std::string_view bytes, const RowSumsOptions& options,
                                        std::span<const SumTable> tables) {
  PartialSums part(options, tables);
  PartReader reader(bytes);
  if (!reader.Head(part.step_, options, std::span(part.array_).first(options.numbers)) ||
      !reader.Tables(tables, &part.list_.rows, &part.list_.cells) || !reader.End())
    return reader.error();
  return part;
}

}  // namespace tacit::mechanism
