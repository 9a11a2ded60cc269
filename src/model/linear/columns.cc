#include "model/linear/columns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace tacit::model::linear {
namespace {

float SignedLogarithm(float x) { return std::copysign(std::log1p(std::abs(x)), x); }

}  // namespace

uint32_t Bins::Of(float z) const {
  if (std::isnan(z) || (z == 0 && std::signbit(z))) return 0;
  const double bin = std::clamp(std::floor(z / width), double(lowest), double(highest));
  return static_cast<uint32_t>(static_cast<int32_t>(bin) - lowest) + 1;
}

double Bins::LeastOf(uint32_t value) const {
  TACIT_CHECK(value > 0 && value < values(), "no bin");
  if (value == 1) return -std::numeric_limits<double>::infinity();
  const double z = (static_cast<double>(value) - 1 + lowest) * width;
  return std::copysign(std::expm1(std::abs(z)), z);
}

Columns::Columns(std::vector<CategoryColumn> categories, std::vector<NumberColumn> numbers,
                 Bins bins)
    : bins_(bins) {
  TACIT_CHECK(!categories.empty() || !numbers.empty(), "a model without columns");
  TACIT_CHECK(bins.width > 0 && bins.highest >= bins.lowest, "no bins");
  for (CategoryColumn& column : categories) {
    sets_.push_back(column.set ? 1 : 0);
    space_.AddTable(std::move(column.name), column.rows, 1);
  }
  for (NumberColumn& column : numbers) {
    take_logarithm_.push_back(column.take_logarithm ? 1 : 0);
    space_.AddTable(std::move(column.name), bins.values(), 1);
  }
}

void Columns::ReadNumbers(std::span<const float> numbers, std::span<uint64_t> rows) const {
  const auto tables = space_.tables().subspan(sets_.size());
  for (size_t j = 0; j < numbers.size(); ++j) {
    const float z = take_logarithm_[j] ? SignedLogarithm(numbers[j]) : numbers[j];
    rows[j] = tables[j].first + bins_.Of(z);
  }
}

void Columns::Read(const Inputs& inputs, ValueRuns* runs) const {
  const size_t slots = sets_.size(), width = take_logarithm_.size();
  TACIT_CHECK(inputs.slot_end.size() == inputs.examples * slots &&
                  inputs.numbers.size() == inputs.examples * width,
              "inputs of other columns");
  runs->columns = size();
  runs->one_each = true;
  runs->row.resize(inputs.row.size() + inputs.examples * width);
  runs->end.resize(inputs.examples * size());
  size_t at = 0, from = 0;  // places in runs->row and in inputs.row
  for (size_t i = 0; i < inputs.examples; ++i) {
    uint32_t* end = runs->end.data() + i * size();
    for (size_t slot = 0; slot < slots; ++slot) {
      const size_t to = inputs.slot_end[i * slots + slot];
      runs->one_each = runs->one_each && to == from + 1;
      while (from < to) runs->row[at++] = inputs.row[from++];
      end[slot] = static_cast<uint32_t>(at);
    }
    ReadNumbers(inputs.numbers.subspan(i * width, width), std::span(runs->row).subspan(at, width));
    for (size_t j = 0; j < width; ++j) end[slots + j] = static_cast<uint32_t>(++at);
  }
  TACIT_CHECK(at == runs->row.size(), "rows without a slot");
}

}  // namespace tacit::model::linear
