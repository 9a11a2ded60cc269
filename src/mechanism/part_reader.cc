#include "mechanism/part_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/varint.h"

namespace tacit::mechanism {
namespace {

constexpr size_t kRowBytesLeast = 3;
// The bit of each byte that the last byte of a number lacks.
constexpr uint64_t kGoesOn = 0x8080808080808080;

// Joins the seven low bits of each byte.
uint64_t JoinSevens(uint64_t word) {
  word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
  word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
  return (word & 0x000000000fffffff) | (word & 0x0fffffff00000000) >> 4;
}

// A number of a word, which begins behind `begin` bits and ends in the byte of the lowest of
// `ends`. Means nothing where no bit of `ends` is set.
struct Short {
  Short(uint64_t word, size_t begin, uint64_t ends)
      : bytes((word & (ends ^ (ends - 1))) >> begin % 64),
        bits(static_cast<size_t>(std::countr_zero(ends)) + 1 - begin) {}

  // Tells whether it has no byte too many.
  bool shortest() const { return bits == 8 || bytes >> (bits - 8) % 64 != 0; }
  uint64_t number() const { return JoinSevens(bytes); }

  uint64_t bytes;
  size_t bits;
};

}  // namespace

PartReader::PartReader(std::string_view bytes, const RowSumsOptions& options,
                       std::span<const SumTable> tables)
    : bytes_(bytes),
      numbers_(options.numbers),
      tables_(tables),
      step_(RowSums(options, {}).step()) {}

Status PartReader::ReadHead(std::span<int64_t> numbers) {
  if (!Head(numbers)) return Refusal();
  return {};
}

Status PartReader::ReadTable(PartRows* out) {
  if (Table(tables_[table_], out)) {
    ++table_;
    return {};
  }
  why_ = fmt::format("table {}: {}", table_, why_);
  return Refusal();
}

Status PartReader::ReadEnd() {
  if (at_ == bytes_.size()) return {};
  Refuse("bytes follow the last table");
  return Refusal();
}

tl::unexpected<Error> PartReader::Refusal() const {
  return Fail(another_query_ ? ErrorCode::kInvalidArgument : ErrorCode::kCorruption,
              fmt::format("sums of a part, byte {}: {}", at_, why_));
}

// The first reason stands.
bool PartReader::Refuse(std::string why) {
  if (why_.empty()) why_ = std::move(why);
  return false;
}

bool PartReader::RefuseQuery(std::string why) {
  another_query_ = true;
  return Refuse(std::move(why));
}

bool PartReader::Number(uint64_t* value) {
  ByteReader rest(bytes_.substr(at_));
  const bool good = GetVarint(&rest, value);
  at_ = bytes_.size() - rest.remaining();
  return good || Refuse(rest.ok() ? "a number is not in its shortest form" : "the bytes end");
}

// Most numbers have few bytes, and eight of one byte, or two, lie whole in the next eight. What
// does not, and what is not in its shortest form, is left to Number.
template <class Each>
bool PartReader::Numbers(size_t n, const Each& each) {
  std::array<uint64_t, 8> number{};
  std::array<size_t, 8> bytes{};
  size_t at = at_;
  bool goes_on = true;
  for (size_t i = 0; i < n && goes_on;) {
    uint64_t word = 0, ends = 0;
    if (bytes_.size() - at >= sizeof(word)) {
      std::memcpy(&word, bytes_.data() + at, sizeof(word));
      ends = ~word & kGoesOn;
    }
    const uint64_t later = ends & (ends - 1);
    const Short first(word, 0, ends), second(word, first.bits, later);
    size_t some = 1;
    if (ends == kGoesOn && n - i >= sizeof(word)) {
      some = sizeof(word);
      for (size_t k = 0; k < some; ++k) number[k] = word >> 8 * k & 0xff;
      bytes.fill(1);
    } else if (ends != 0 && first.shortest()) {
      number[0] = first.number();
      bytes[0] = first.bits / 8;
      number[1] = second.number();
      bytes[1] = second.bits / 8;
      some += later != 0 && n - i >= 2 && second.shortest();
    } else {
      at_ = at;
      if (!Number(&number[0])) return false;
      bytes[0] = at_ - at;
    }
    for (size_t k = 0; k < some && goes_on; ++k) {
      at += bytes[k];
      number_ = number[k];
      goes_on = each(i++, number[k]);
    }
  }
  at_ = at;
  return goes_on;
}

bool PartReader::Head(std::span<int64_t> numbers) {
  ByteReader reader(bytes_);
  const auto its_step = reader.Get<double>();
  if (!reader.ok()) return Refuse("the bytes end");
  at_ = sizeof(its_step);
  if (its_step != step_)
    return RefuseQuery(fmt::format("a step of {}; this query's is {}", its_step, step_));
  uint64_t count = 0;
  if (!Number(&count)) return false;
  if (count != numbers_)
    return RefuseQuery(fmt::format("{} further numbers; this query has {}", count, numbers_));
  if (!Sums(numbers, 1)) return false;
  if (!Number(&count)) return false;
  return count == tables_.size() ||
         RefuseQuery(fmt::format("{} tables; this query has {}", count, tables_.size()));
}

bool PartReader::Table(const SumTable& table, PartRows* out) {
  uint64_t count = 0, unit = 0;
  if (!Number(&count) || !Number(&unit)) return false;
  if (count > (bytes_.size() - at_) / kRowBytesLeast)
    return Refuse(fmt::format("the bytes end before {} rows", count));
  if (unit > uint64_t{kStepsMost})
    return Refuse(fmt::format("counts in units of {} steps; 2^50 is the most", unit));
  out->rows.resize(out->rows.size() + count);
  out->cells.resize(2 * out->rows.size());
  const auto cells = std::span(out->cells).last(2 * count);
  return Rows(table, std::span(out->rows).last(count)) && Sums(cells, 2) &&
         Counts(table, unit, cells);
}

bool PartReader::Rows(const SumTable& table, std::span<uint64_t> rows) {
  uint64_t next = 0;
  const auto each = [&](size_t i, uint64_t gap) {
    rows[i] = table.first + next + gap;
    const bool lies = gap < table.rows - next;
    next += lies ? gap + 1 : 0;
    return lies;
  };
  return Numbers(rows.size(), each) ||
         Refuse(fmt::format("{} rows past row {}; the table has {}", number_, next, table.rows));
}

// Reads a sum into each cell of a stride.
bool PartReader::Sums(std::span<int64_t> cells, size_t stride) {
  const auto each = [&](size_t i, uint64_t number) {
    cells[stride * i] = FromZigzag(number);
    return number <= 2 * uint64_t{kStepsMost};
  };
  return Numbers(cells.size() / stride, each) ||
         Refuse(fmt::format("a sum of {} steps; 2^50 is the most", FromZigzag(number_)));
}

bool PartReader::Counts(const SumTable& table, uint64_t unit, std::span<int64_t> cells) {
  CountUnit units;  // of what is read, so of counts in units
  const auto its_unit = static_cast<int64_t>(std::max<uint64_t>(unit, 1));
  bool touched = true;
  const auto each = [&](size_t i, uint64_t number) {
    const auto count = static_cast<int64_t>(number);
    int64_t* const steps = &cells[2 * i + 1];
    units.Add(count);
    if (__builtin_mul_overflow(count, its_unit, steps) || SizeOf(*steps) > uint64_t{kStepsMost})
      return false;
    touched = !table.every_row || cells[2 * i] != 0 || *steps != 0;
    return touched;
  };
  if (!Numbers(cells.size() / 2, each))
    return Refuse(touched ? fmt::format("a count of {} times {} steps; 2^50 is the most",
                                        static_cast<int64_t>(number_), its_unit)
                          : "a row of no sum and no count in a table that is released whole");
  return units.value() == (unit == 0 ? 0 : 1) ||
         Refuse(fmt::format("{} is not the unit of the counts", unit));
}

}  // namespace tacit::mechanism
