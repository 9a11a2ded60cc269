#include "model/sequence/unit_gradient.h"

#include <algorithm>

#include "base/check.h"

namespace tacit::model {
namespace {

constexpr size_t kBlock = 4096;  // numbers

}  // namespace

UnitGradient::UnitGradient(const SequenceLayout& layout, ops::UnitOps& ops)
    : layout_(layout),
      ops_(ops),
      output_is_dense_(layout.options().negatives == 0),
      items_dense_(layout.options().tied && output_is_dense_),
      rest_(layout.output().offset + layout.output().size()) {}

void UnitGradient::AddStraightTo(std::span<float> sum) {
  TACIT_CHECK(sum.size() == layout_.size(), "a number per parameter");
  straight_ = true;
  values_ = sum;
}

void UnitGradient::FormEach() {
  straight_ = false;
  own_.resize(layout_.size(), 0.0f);
  values_ = own_;
}

void UnitGradient::BeginUnit() {
  if (straight_) return;
  if (!items_dense_) items_.Begin(layout_.items().rows);
  if (!output_is_dense_ && !layout_.options().tied) output_.Begin(layout_.output().rows);
  std::ranges::fill(values_.subspan(rest_), 0.0f);
}

void UnitGradient::EndUnit() {
  const auto clear = [&](const ParameterTable& table, const TouchedRows& touched) {
    for (const uint32_t row : touched.rows())
      std::ranges::fill(values_.subspan(table.offset + row * table.cols, table.cols), 0.0f);
  };
  if (straight_) return;
  if (!items_dense_) clear(layout_.items(), items_);
  if (!output_is_dense_ && !layout_.options().tied) clear(layout_.output(), output_);
}

const TouchedRows* UnitGradient::RowsOf(size_t group) const {
  if (group == layout_.items().group) return items_dense_ ? nullptr : &items_;
  if (group == layout_.output().group) return output_is_dense_ ? nullptr : &output_;
  return nullptr;
}

template <class Body>
void UnitGradient::ForRuns(size_t group, const Body& body) const {
  const ParameterGroup& place = layout_.groups()[group];
  const TouchedRows* touched = RowsOf(group);
  if (touched == nullptr) {
    body(place.offset, place.size);
    return;
  }
  const size_t cols = layout_.options().width;
  for (const uint32_t row : touched->rows()) body(place.offset + row * cols, cols);
}

// Reads runs from their ends: the numbers written last are still in the cache, and so then are
// those that AddTo begins with.
void UnitGradient::SquaredNorms(std::span<float> squared) {
  for (size_t group = 0; group < squared.size(); ++group) {
    double sum = 0;
    ForRuns(group, [&](size_t offset, size_t size) {
      for (size_t end = size; end > 0;) {
        const size_t count = std::min(end, kBlock);
        sum += ops_.SquaredNorm(values_.subspan(offset + end - count, count));
        end -= count;
      }
    });
    squared[group] = static_cast<float>(sum);
  }
}

size_t UnitGradient::Coordinates() const {
  size_t count = 0;
  for (size_t group = 0; group < layout_.groups().size(); ++group)
    ForRuns(group, [&](size_t, size_t size) { count += size; });
  return count;
}

void UnitGradient::AddTo(std::span<const float> scale, std::span<float> sum) {
  for (size_t group = 0; group < scale.size(); ++group)
    ForRuns(group, [&](size_t offset, size_t size) {
      ops_.AddScaled(scale[group], values_.subspan(offset, size), sum.subspan(offset, size));
    });
}

// The step is a power of two: dividing by it is exact.
void UnitGradient::AddTo(std::span<const float> scale, double step, std::span<int64_t> sum) {
  for (size_t group = 0; group < scale.size(); ++group) {
    const auto factor = static_cast<float>(scale[group] / step);
    ForRuns(group, [&](size_t offset, size_t size) {
      ops_.AddRounded(factor, values_.subspan(offset, size), sum.subspan(offset, size));
    });
  }
}

}  // namespace tacit::model
