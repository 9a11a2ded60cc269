#include "model/linear/columns.h"

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace tacit::model::linear {
namespace {

float SignedLogarithm(float x) { return std::copysign(std::log1p(std::abs(x)), x); }

// Without branches and in place, so that many numbers become vector code.
inline uint32_t ValueOf(float z, double width, double lowest, double highest) {
  const double floor = std::floor(z / width);
  const double capped = floor < highest ? floor : highest;  // so is NaN
  const double bin = capped > lowest ? capped : lowest;
  const auto value = static_cast<uint32_t>(static_cast<int32_t>(bin - lowest)) + 1;
  const bool missing = (std::bit_cast<uint32_t>(z) == 0x80000000u) | (z != z);
  return missing ? 0 : value;
}

}  // namespace

uint32_t Bins::Of(float z) const { return ValueOf(z, width, lowest, highest); }

double Bins::LeastOf(uint32_t value) const {
  TACIT_CHECK(value > 0 && value < values(), "no bin");
  if (value == 1) return -std::numeric_limits<double>::infinity();
  const double z = (static_cast<double>(value) - 1 + lowest) * width;
  return std::copysign(std::expm1(std::abs(z)), z);
}

Columns::Columns(std::vector<CategoryColumn> categories, std::vector<NumberColumn> numbers,
                 Bins bins, std::vector<CrossColumn> crosses)
    : bins_(bins) {
  TACIT_CHECK(!categories.empty() || !numbers.empty(), "a model without columns");
  TACIT_CHECK(bins.width > 0 && bins.highest >= bins.lowest, "no bins");
  for (CategoryColumn& column : categories) {
    sets_.push_back(column.set ? 1 : 0);
    space_.AddTable(std::move(column.name), column.rows, 1);
  }
  for (NumberColumn& column : numbers) {
    take_logarithm_.push_back(column.take_logarithm ? 1 : 0);
    takes_logarithms_ |= column.take_logarithm;
    space_.AddTable(std::move(column.name), bins.values(), 1);
  }
  for (CrossColumn& cross : crosses) {
    TACIT_CHECK(cross.first < categories.size() + numbers.size() &&
                    cross.second < categories.size() + numbers.size() &&
                    cross.first != cross.second && !IsSet(cross.first) && !IsSet(cross.second),
                "a cross is of two columns of one value each");
    const uint64_t rows = space_.tables()[cross.first].rows;
    const uint64_t second_rows = space_.tables()[cross.second].rows;
    TACIT_CHECK(rows <= UINT64_MAX / second_rows, "a cross of too many values");
    crosses_.push_back({cross.first, cross.second, second_rows, space_.rows()});
    space_.AddTable(std::move(cross.name), rows * second_rows, 1);
  }
}

void Columns::ReadNumbers(std::span<const float> numbers, std::span<uint32_t> values) const {
  const Bins bins = bins_;
  if (!takes_logarithms_) {
    const double width = bins.width, lowest = bins.lowest, highest = bins.highest;
    const float* const number = numbers.data();
    uint32_t* const value = values.data();
    for (size_t j = 0; j < numbers.size(); ++j)
      value[j] = ValueOf(number[j], width, lowest, highest);
    return;
  }
  const size_t width = take_logarithm_.size();
  for (size_t i = 0; i < numbers.size(); ++i)
    values[i] = bins.Of(take_logarithm_[i % width] ? SignedLogarithm(numbers[i]) : numbers[i]);
}

void Columns::Read(const Inputs& inputs, ValueRuns* runs) const {
  const size_t slots = sets_.size(), width = take_logarithm_.size();
  TACIT_CHECK(inputs.slot_end.size() == inputs.examples * slots &&
                  inputs.numbers.size() == inputs.examples * width,
              "inputs of other columns");
  runs->columns = size();
  runs->one_each = true;
  runs->row.resize(inputs.row.size() + inputs.examples * (width + crosses_.size()));
  runs->end.resize(inputs.examples * size());
  std::vector<uint32_t> values(width);
  size_t at = 0, from = 0;  // places in runs->row and in inputs.row
  for (size_t i = 0; i < inputs.examples; ++i) {
    uint32_t* end = runs->end.data() + i * size();
    for (size_t slot = 0; slot < slots; ++slot) {
      const size_t to = inputs.slot_end[i * slots + slot];
      runs->one_each = runs->one_each && to == from + 1;
      while (from < to) runs->row[at++] = inputs.row[from++];
      end[slot] = static_cast<uint32_t>(at);
    }
    ReadNumbers(inputs.numbers.subspan(i * width, width), values);
    for (size_t j = 0; j < width; ++j) {
      runs->row[at++] = space_.tables()[slots + j].first + values[j];
      end[slots + j] = static_cast<uint32_t>(at);
    }
    const auto value = [&](size_t column) {
      return runs->row[end[column] - 1] - space_.tables()[column].first;
    };
    for (size_t c = 0; c < crosses_.size(); ++c) {
      const Cross& cross = crosses_[c];
      runs->row[at++] = cross.RowOf(value(cross.first), value(cross.second));
      end[slots + width + c] = static_cast<uint32_t>(at);
    }
  }
  TACIT_CHECK(at == runs->row.size(), "rows without a slot");
}

}  // namespace tacit::model::linear
