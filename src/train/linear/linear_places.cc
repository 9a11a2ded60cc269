#include "train/linear/linear_places.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/moving_average.h"
#include "model/linear/row.h"

namespace tacit::train {
namespace {

namespace linear = model::linear;

linear::Effect EffectOf(const float* row, uint64_t period) {
  const bool moved = period > 0 && CountOf(row[linear::kPeriod]) == period;
  return {.weight = row[linear::kWeight], .move = moved ? row[linear::kMove] : 0};
}

// Tells whether each of these slots has one value.
bool OneEach(std::span<const uint32_t> slot_end, uint32_t begin) {
  uint32_t others = 0;
  for (size_t i = 0; i < slot_end.size(); ++i)
    others |= slot_end[i] ^ (begin + static_cast<uint32_t>(i) + 1);
  return others == 0;
}

}  // namespace

LinearPlaces::LinearPlaces(const linear::Columns& columns,
                           std::span<const mechanism::SumTable> tables, LinearRows& rows)
    : columns_(columns), tables_(tables), rows_(rows) {
  for (size_t j = 0; j < tables.size(); ++j) {
    if (tables[j].every_row) {
      shift_.push_back(static_cast<uint32_t>(whole_places_ - tables[j].first));
      whole_places_ += tables[j].rows;
    } else {
      shift_.push_back(0);
      if (columns.CrossOf(j) == nullptr) large_.push_back(j);
    }
    if (columns.IsNumber(j))
      number_shift_.push_back(static_cast<uint32_t>(tables[j].first) + shift_[j]);
  }
}

linear::Places LinearPlaces::places() const {
  return {.columns = columns_.size(), .place = place_, .end = end_, .one_each = one_each_};
}

Status LinearPlaces::Read(const event::Batch& examples, size_t begin, size_t end, uint64_t period) {
  const size_t slots = columns_.categories();
  TACIT_CHECK(examples.slots == slots && examples.dense_width == columns_.numbers(),
              "examples of other columns");
  if (!std::exchange(loaded_, true)) TACIT_RETURN_IF_ERROR(Load(period));
  const auto ends = std::span(examples.slot_end).subspan(begin * slots, (end - begin) * slots);
  one_each_ = OneEach(ends, begin * slots == 0 ? 0 : examples.slot_end[begin * slots - 1]);
  end_.resize((end - begin) * columns_.size());
  one_each_ ? ReadOneEach(examples, begin, end) : ReadRuns(examples, begin, end);
  return FetchNew(period);
}

void LinearPlaces::ReadOneEach(const event::Batch& examples, size_t begin, size_t end) {
  const size_t columns = columns_.size(), slots = columns_.categories();
  const size_t width = columns_.numbers();
  const std::span<const linear::Columns::Cross> crosses = columns_.crosses();
  place_.resize((end - begin) * columns);
  const uint64_t* row =
      examples.row.data() + (begin * slots == 0 ? 0 : examples.slot_end[begin * slots - 1]);
  values_.resize((end - begin) * width);
  columns_.ReadNumbers(std::span(examples.dense).subspan(begin * width, values_.size()), values_);
  const uint32_t* number = values_.data();
  uint32_t* place = place_.data();
  for (size_t i = begin; i < end; ++i, place += columns, row += slots, number += width) {
    for (size_t j = 0; j < slots; ++j) place[j] = static_cast<uint32_t>(row[j]) + shift_[j];
    for (size_t j = 0; j < width; ++j) place[slots + j] = number[j] + number_shift_[j];
    const auto value = [&](size_t j) {
      return j < slots ? row[j] - tables_[j].first : number[j - slots];
    };
    for (size_t c = 0; c < crosses.size(); ++c) {
      const size_t j = slots + width + c;
      const uint64_t of = crosses[c].RowOf(value(crosses[c].first), value(crosses[c].second));
      place[j] = tables_[j].every_row ? static_cast<uint32_t>(of) + shift_[j] : PlaceOf(of);
    }
    for (const size_t j : large_)
      place[j] = PlaceOf(j < slots ? row[j] : tables_[j].first + number[j - slots]);
  }
  std::iota(end_.begin(), end_.end(), 1u);
}

void LinearPlaces::ReadRuns(const event::Batch& examples, size_t begin, size_t end) {
  const size_t columns = columns_.size(), slots = columns_.categories();
  const size_t width = columns_.numbers();
  place_.clear();
  std::vector<uint32_t> values(width);
  for (size_t i = begin; i < end; ++i) {
    uint32_t* const ends = end_.data() + (i - begin) * columns;
    for (size_t j = 0; j < slots; ++j) {
      for (const uint64_t row : examples.Slot(i, j))
        place_.push_back(tables_[j].every_row ? static_cast<uint32_t>(row) + shift_[j]
                                              : PlaceOf(row));
      ends[j] = static_cast<uint32_t>(place_.size());
    }
    columns_.ReadNumbers(std::span(examples.dense).subspan(i * width, width), values);
    for (size_t j = 0; j < width; ++j) {
      const mechanism::SumTable& table = tables_[slots + j];
      place_.push_back(table.every_row
                           ? static_cast<uint32_t>(table.first) + values[j] + shift_[slots + j]
                           : PlaceOf(table.first + values[j]));
      ends[slots + j] = static_cast<uint32_t>(place_.size());
    }
    const auto value = [&](size_t j) {
      return j < slots ? examples.Slot(i, j)[0] - tables_[j].first : values[j - slots];
    };
    for (size_t j = slots + width; j < columns; ++j) {
      const linear::Columns::Cross& cross = *columns_.CrossOf(j);
      const uint64_t row = cross.RowOf(value(cross.first), value(cross.second));
      place_.push_back(tables_[j].every_row ? static_cast<uint32_t>(row) + shift_[j]
                                            : PlaceOf(row));
      ends[j] = static_cast<uint32_t>(place_.size());
    }
  }
}

uint32_t LinearPlaces::PlaceOf(uint64_t row) {
  uint32_t& found = found_[row];
  if (found == 0) {
    met_.push_back(row);
    TACIT_CHECK(whole_places_ + met_.size() < kNoPlace, "too many rows for one period");
    found = static_cast<uint32_t>(whole_places_ + met_.size());
  }
  return found - 1;
}

Status LinearPlaces::Load(uint64_t period) {
  effects_.assign(whole_places_, {});
  moved_.clear();
  if (period == 0) return {};  // every row has its initial value, 0
  std::vector<uint64_t> some;
  for (size_t j = 0; j < tables_.size(); ++j) {
    if (!tables_[j].every_row) continue;
    some.resize(tables_[j].rows);
    std::iota(some.begin(), some.end(), tables_[j].first);
    TACIT_RETURN_IF_ERROR(rows_.ForEach(some, false, [&](size_t i, const float* row) {
      const auto place = static_cast<uint32_t>(some[i]) + shift_[j];
      effects_[place] = EffectOf(row, period);
      if (effects_[place].move != 0) moved_.push_back(place);
    }));
  }
  return {};
}

Status LinearPlaces::FetchNew(uint64_t period) {
  effects_.resize(whole_places_ + met_.size());
  if (fetched_ == met_.size()) return {};
  std::vector<uint64_t> rows(met_.begin() + static_cast<ptrdiff_t>(fetched_), met_.end());
  fetched_ = met_.size();
  if (period == 0) return {};
  std::ranges::sort(rows);
  return rows_.ForEach(rows, false, [&](size_t i, const float* row) {
    effects_[PlaceOf(rows[i])] = EffectOf(row, period);
  });
}

void LinearPlaces::EndPeriod() {
  for (const uint32_t place : moved_) effects_[place].move = 0;
  moved_.clear();
  DropMet();
}

void LinearPlaces::DropMet() {
  if (met_.empty()) return;
  effects_.resize(whole_places_);
  found_ = {};
  met_.clear();
  fetched_ = 0;
}

void LinearPlaces::Move(size_t column, uint64_t row, const linear::Effect& effect) {
  if (!tables_[column].every_row || !loaded_) return;
  const auto place = static_cast<uint32_t>(row) + shift_[column];
  effects_[place] = effect;
  moved_.push_back(place);
}

void LinearPlaces::Forget() {
  loaded_ = false;
  effects_.clear();
  moved_.clear();
  found_ = {};
  met_.clear();
  fetched_ = 0;
}

}  // namespace tacit::train
