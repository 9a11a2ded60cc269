#include "model/row_gradients.h"

#include <algorithm>

#include "base/check.h"

namespace tacit::model {
namespace {

constexpr uint32_t kNone = StepGradient::kNotKept;

// Calls body(slot, place) for every entry of one example.
template <class Body>
void ForEachEntry(const Examples& examples, size_t example, size_t slots, uint32_t entry,
                  const Body& body) {
  const uint32_t* slot_end = examples.slot_end.data() + example * slots;
  for (size_t slot = 0; slot < slots; ++slot)
    for (; entry < slot_end[slot]; ++entry) body(slot, examples.slot_row[entry]);
}

}  // namespace

RowGradients::RowGradients(std::vector<uint32_t> column, std::vector<uint32_t> dim,
                           WorkerPool& workers)
    : column_(std::move(column)),
      dim_(std::move(dim)),
      workers_(workers),
      unit_sums_(workers.workers()) {}

void RowGradients::SquaredNorms(const Examples& examples, const Activations& activations,
                                std::span<const uint32_t> kept_place,
                                std::span<const uint32_t> example_end,
                                ops::ConstMatrix input_gradient, std::span<float> out) {
  TACIT_CHECK(kept_place.size() == activations.rows.size() && out.size() == example_end.size() &&
                  out.size() == activations.units(),
              "norms are of the activations' units");
  workers_.Run(out.size(), [&](size_t begin, size_t end, size_t worker) {
    UnitSums& scratch = unit_sums_[worker];
    scratch.unit.assign(activations.rows.size(), kNone);
    scratch.begin.resize(activations.rows.size());
    for (size_t u = begin; u < end; ++u) {
      const size_t first = u == 0 ? 0 : example_end[u - 1], last = example_end[u];
      // As many entries as distinct rows: nothing occurs twice.
      const size_t entries = EntryBegin(examples, last) - EntryBegin(examples, first);
      const double norm = entries == activations.UnitRows(u).size()
                              ? UnitNorm(examples, kept_place, first, last, input_gradient)
                              : UnitNormOfRepeats(examples, kept_place, static_cast<uint32_t>(u),
                                                  first, last, input_gradient, &scratch);
      out[u] = static_cast<float>(norm);
    }
  });
}

double RowGradients::UnitNorm(const Examples& examples, std::span<const uint32_t> kept_place,
                              size_t first, size_t last, ops::ConstMatrix input_gradient) const {
  double norm = 0;
  for (size_t i = first; i < last; ++i) {
    const float* gradient = input_gradient.Row(i);
    ForEachEntry(examples, i, slots(), EntryBegin(examples, i), [&](size_t slot, uint32_t place) {
      if (kept_place[place] == kNone) return;
      const float* g = gradient + column_[slot];
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (size_t c = 0; c < dim_[slot]; ++c) sum += double{g[c]} * double{g[c]};
      norm += sum;
    });
  }
  return norm;
}

double RowGradients::UnitNormOfRepeats(const Examples& examples,
                                       std::span<const uint32_t> kept_place, uint32_t unit,
                                       size_t first, size_t last, ops::ConstMatrix input_gradient,
                                       UnitSums* scratch) const {
  scratch->sums.clear();
  for (size_t i = first; i < last; ++i) {
    const float* gradient = input_gradient.Row(i);
    ForEachEntry(examples, i, slots(), EntryBegin(examples, i), [&](size_t slot, uint32_t place) {
      if (kept_place[place] == kNone) return;
      const size_t dim = dim_[slot];
      if (std::exchange(scratch->unit[place], unit) != unit) {
        scratch->begin[place] = static_cast<uint32_t>(scratch->sums.size());
        scratch->sums.resize(scratch->sums.size() + dim, 0.0);
      }
      double* to = scratch->sums.data() + scratch->begin[place];
      for (size_t c = 0; c < dim; ++c) to[c] += gradient[column_[slot] + c];
    });
  }
  double norm = 0;
  for (double x : scratch->sums) norm += x * x;
  return norm;
}

void RowGradients::AddTo(const Examples& examples, ops::ConstMatrix input_gradient,
                         std::span<const float> scale, StepGradient* sum) {
  SortOccurrences(examples, *sum);
  workers_.Run(sum->rows.size(), [&](size_t begin, size_t end, size_t) {
    for (size_t row = begin; row < end; ++row) AddRow(input_gradient, scale, row, sum->Row(row));
  });
}

// Counting sort of the kept entries by row, stable.
void RowGradients::SortOccurrences(const Examples& examples, const StepGradient& sum) {
  occurrence_end_.assign(sum.rows.size(), 0);
  for (uint32_t place : examples.slot_row)
    if (sum.kept_place[place] != kNone) ++occurrence_end_[sum.kept_place[place]];
  uint32_t begin = 0;
  for (uint32_t& count : occurrence_end_) begin += std::exchange(count, begin);
  occurrence_.resize(begin);
  for (size_t i = 0; i < examples.size; ++i) {
    ForEachEntry(examples, i, slots(), EntryBegin(examples, i), [&](size_t slot, uint32_t place) {
      const uint32_t row = sum.kept_place[place];
      if (row == kNone) return;
      occurrence_[occurrence_end_[row]++] = {static_cast<uint32_t>(i), static_cast<uint32_t>(slot)};
    });
  }
}

void RowGradients::AddRow(ops::ConstMatrix input_gradient, std::span<const float> scale, size_t row,
                          std::span<float> out) const {
  constexpr size_t kAhead = 8;
  const uint32_t end = occurrence_end_[row];
  for (uint32_t i = row == 0 ? 0 : occurrence_end_[row - 1]; i < end; ++i) {
    const Occurrence at = occurrence_[i];
    if (i + kAhead < occurrence_.size()) {
      const Occurrence next = occurrence_[i + kAhead];
      __builtin_prefetch(input_gradient.Row(next.example) + column_[next.slot]);
    }
    TACIT_CHECK(dim_[at.slot] == out.size(), "a slot's rows are of its own table");
    const float* from = input_gradient.Row(at.example) + column_[at.slot];
    const float factor = scale.empty() ? 1.0f : scale[at.example];
    float* to = out.data();
#pragma GCC ivdep
    for (size_t c = 0; c < out.size(); ++c) to[c] += factor * from[c];
  }
}

}  // namespace tacit::model
