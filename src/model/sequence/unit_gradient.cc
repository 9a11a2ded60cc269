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
      rest_(layout.output().offset + layout.output().size()),
      size_(layout.size()) {}

void UnitGradient::SumBy(const SumMap& map) {
  map_ = &map;
  size_ = PlaceOf(layout_.size());
}

void UnitGradient::AddStraightTo(std::span<float> sum) {
  TACIT_CHECK(sum.size() == size_, "a number per number of the sum");
  straight_ = true;
  values_ = sum;
}

void UnitGradient::FormEach() {
  straight_ = false;
  own_.resize(size_, 0.0f);
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
    const size_t begin = PlaceOf(place.offset);
    body(begin, PlaceOf(place.offset + place.size) - begin);
    return;
  }
  const size_t cols = layout_.options().width;
  for (const uint32_t row : touched->rows()) body(place.offset + row * cols, cols);
}

Status UnitGradient::AddLinear(const LinearLayer& layer, ops::ConstMatrix in,
                               ops::ConstMatrix grad) {
  ops_.ColumnSums(grad, Part(layer.offset + layer.in * layer.out, layer.out));
  const SumMap::Pair* pair = map_->PairAt(layer.offset);
  const size_t place = PlaceOf(layer.offset);
  if (pair != nullptr) return AddThin(*pair, place, in, grad);
  return ops_.Gemm(ops::Transpose::kYes, in, ops::Transpose::kNo, grad, 1,
                   {values_.data() + place, layer.in, layer.out});
}

// Adds in^T (grad right^T) and (in left^T)^T grad: products of rows that are projected first, so
// that the matrix's own gradient is never formed.
Status UnitGradient::AddThin(const SumMap::Pair& pair, size_t place, ops::ConstMatrix in,
                             ops::ConstMatrix grad) {
  using ops::Transpose;
  projected_.Reset(in.rows, pair.rank());
  const ops::Matrix projected = projected_.view();
  const ops::Matrix left(values_.data() + place, in.cols, pair.rank());
  const ops::Matrix right(left.data + in.cols * pair.rank(), pair.rank(), grad.cols);
  TACIT_RETURN_IF_ERROR(ops_.Gemm(Transpose::kNo, grad, Transpose::kYes, pair.right, 0, projected));
  TACIT_RETURN_IF_ERROR(ops_.Gemm(Transpose::kYes, in, Transpose::kNo, projected, 1, left));
  TACIT_RETURN_IF_ERROR(ops_.Gemm(Transpose::kNo, in, Transpose::kYes, pair.left, 0, projected));
  return ops_.Gemm(Transpose::kYes, projected, Transpose::kNo, grad, 1, right);
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
