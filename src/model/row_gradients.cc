#include "model/row_gradients.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace tacit::model {
namespace {

constexpr uint32_t kNone = StepGradient::kNotKept;

// Returns the nearest integer of a number below 2^51 in magnitude: adding kToInteger leaves it in
// the low bits. The compiler makes vector code of that, but not of a conversion.
constexpr double kToInteger = 0x1.8p52;
[[gnu::always_inline]] inline int64_t Nearest(double x) {
  return std::bit_cast<int64_t>(x + kToInteger) - std::bit_cast<int64_t>(kToInteger);
}

constexpr double kScoreSteps = 0x1p24;  // to the clip

// Returns a grain for WorkerPool: all `n` if the entries' gradients are processed sooner than a
// worker wakes up.
size_t GrainFor(const Examples& examples, size_t slots, size_t width, size_t n) {
  constexpr size_t kAloneNumbers = size_t{1} << 17;
  return examples.slot_row.size() * width < kAloneNumbers * slots ? n : 1;
}

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
                                ops::ConstMatrix input_gradient, std::span<float> out,
                                std::span<uint32_t> coordinates) {
  TACIT_CHECK(kept_place.size() == activations.rows.size() && out.size() == example_end.size() &&
                  out.size() == activations.units() && out.size() == coordinates.size(),
              "norms are of the activations' units");
  const auto norms_of = [&](size_t begin, size_t end, size_t worker) {
    UnitSums& scratch = unit_sums_[worker];
    scratch.unit.assign(activations.rows.size(), kNone);
    scratch.begin.resize(activations.rows.size());
    for (size_t u = begin; u < end; ++u) {
      const size_t first = u == 0 ? 0 : example_end[u - 1], last = example_end[u];
      // As many entries as distinct rows: nothing occurs twice.
      const size_t entries = EntryBegin(examples, last) - EntryBegin(examples, first);
      const UnitNorm norm = entries == activations.UnitRows(u).size()
                                ? NormOf(examples, kept_place, first, last, input_gradient)
                                : NormOfRepeats(examples, kept_place, static_cast<uint32_t>(u),
                                                first, last, input_gradient, &scratch);
      out[u] = static_cast<float>(norm.squared);
      coordinates[u] = static_cast<uint32_t>(norm.coordinates);
    }
  };
  workers_.Run(out.size(), norms_of, GrainFor(examples, slots(), input_gradient.cols, out.size()));
}

RowGradients::UnitNorm RowGradients::NormOf(const Examples& examples,
                                            std::span<const uint32_t> kept_place, size_t first,
                                            size_t last, ops::ConstMatrix input_gradient) const {
  UnitNorm norm;
  for (size_t i = first; i < last; ++i) {
    const float* gradient = input_gradient.Row(i);
    ForEachEntry(examples, i, slots(), EntryBegin(examples, i), [&](size_t slot, uint32_t place) {
      if (kept_place[place] == kNone) return;
      const float* g = gradient + column_[slot];
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (size_t c = 0; c < dim_[slot]; ++c) sum += double{g[c]} * double{g[c]};
      norm.squared += sum;
      norm.coordinates += dim_[slot];
    });
  }
  return norm;
}

RowGradients::UnitNorm RowGradients::NormOfRepeats(const Examples& examples,
                                                   std::span<const uint32_t> kept_place,
                                                   uint32_t unit, size_t first, size_t last,
                                                   ops::ConstMatrix input_gradient,
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
  UnitNorm norm{.squared = 0, .coordinates = scratch->sums.size()};
  for (double x : scratch->sums) norm.squared += x * x;
  return norm;
}

void RowGradients::AddTo(const Examples& examples, ops::ConstMatrix input_gradient,
                         std::span<const float> scale, StepGradient* sum) {
  SortOccurrences(examples, sum->kept_place, sum->rows.size());
  workers_.Run(
      sum->rows.size(),
      [&](size_t begin, size_t end, size_t) {
        for (size_t row = begin; row < end; ++row)
          AddRow(input_gradient, scale, row, sum->Row(row));
      },
      GrainFor(examples, slots(), input_gradient.cols, sum->rows.size()));
}

// Sorts the entries by row, stably, by counting; places without a row are left out.
void RowGradients::SortOccurrences(const Examples& examples, std::span<const uint32_t> row_of_place,
                                   size_t rows) {
  occurrence_end_.assign(rows, 0);
  for (uint32_t place : examples.slot_row)
    if (row_of_place[place] != kNone) ++occurrence_end_[row_of_place[place]];
  uint32_t begin = 0;
  for (uint32_t& count : occurrence_end_) begin += std::exchange(count, begin);
  occurrence_.resize(begin);
  for (size_t i = 0; i < examples.size; ++i) {
    ForEachEntry(examples, i, slots(), EntryBegin(examples, i), [&](size_t slot, uint32_t place) {
      const uint32_t row = row_of_place[place];
      if (row == kNone) return;
      occurrence_[occurrence_end_[row]++] = {static_cast<uint32_t>(i), static_cast<uint32_t>(slot)};
    });
  }
}

// Returns the gradient of an occurrence and prefetches a later one.
const float* RowGradients::At(ops::ConstMatrix input_gradient, uint32_t occurrence,
                              size_t dim) const {
  constexpr size_t kAhead = 8;
  const Occurrence at = occurrence_[occurrence];
  if (occurrence + kAhead < occurrence_.size()) {
    const Occurrence next = occurrence_[occurrence + kAhead];
    __builtin_prefetch(input_gradient.Row(next.example) + column_[next.slot]);
  }
  TACIT_CHECK(dim_[at.slot] == dim, "a slot's rows are of its own table");
  return input_gradient.Row(at.example) + column_[at.slot];
}

void RowGradients::AddRow(ops::ConstMatrix input_gradient, std::span<const float> scale, size_t row,
                          std::span<float> out) const {
  const uint32_t end = occurrence_end_[row];
  for (uint32_t i = row == 0 ? 0 : occurrence_end_[row - 1]; i < end; ++i) {
    const float* from = At(input_gradient, i, out.size());
    const float factor = scale.empty() ? 1.0f : scale[occurrence_[i].example];
    float* to = out.data();
#pragma GCC ivdep
    for (size_t c = 0; c < out.size(); ++c) to[c] += factor * from[c];
  }
}

void RowGradients::SumOnGrid(const Examples& examples, ops::ConstMatrix input_gradient,
                             std::span<const float> scale, double step, StepGradient* sum) {
  TACIT_CHECK(scale.size() == examples.size, "only what is bounded can be rounded");
  SortOccurrences(examples, sum->kept_place, sum->rows.size());
  sum->row_sums.assign(sum->row_values.size(), 0);
  workers_.Run(
      sum->rows.size(),
      [&](size_t begin, size_t end, size_t worker) {
        for (size_t row = begin; row < end; ++row)
          SumRowOnGrid(examples, input_gradient, scale, 1 / step, row, &unit_sums_[worker].sums,
                       sum->RowSum(row));
      },
      GrainFor(examples, slots(), input_gradient.cols, sum->rows.size()));
}

// Occurrences of one unit are adjacent, because examples ascend by unit.
void RowGradients::SumRowOnGrid(const Examples& examples, ops::ConstMatrix input_gradient,
                                std::span<const float> scale, double per_step, size_t row,
                                std::vector<double>* unit_sum, std::span<int64_t> out) const {
  const size_t dim = out.size();
  int64_t* to = out.data();
  const uint32_t end = occurrence_end_[row];
  for (uint32_t i = row == 0 ? 0 : occurrence_end_[row - 1]; i < end;) {
    const uint32_t example = occurrence_[i].example, unit = examples.unit_of[example];
    const double factor = double{scale[example]} * per_step;
    const auto is_of_unit = [&](uint32_t at) {
      return at < end && examples.unit_of[occurrence_[at].example] == unit;
    };
    const float* from = At(input_gradient, i, dim);
    if (!is_of_unit(++i)) {
#pragma GCC ivdep
      for (size_t c = 0; c < dim; ++c) to[c] += Nearest(from[c] * factor);
      continue;
    }
    unit_sum->assign(from, from + dim);
    for (; is_of_unit(i); ++i) {
      from = At(input_gradient, i, dim);
      for (size_t c = 0; c < dim; ++c) (*unit_sum)[c] += from[c];
    }
    for (size_t c = 0; c < dim; ++c) to[c] += Nearest((*unit_sum)[c] * factor);
  }
}

void RowGradients::Scores(const Examples& examples, ops::ConstMatrix input_gradient, double clip,
                          std::span<double> out) {
  every_place_.resize(out.size());
  std::iota(every_place_.begin(), every_place_.end(), 0u);
  SortOccurrences(examples, every_place_, out.size());
  workers_.Run(out.size(), [&](size_t begin, size_t end, size_t worker) {
    for (size_t row = begin; row < end; ++row)
      out[row] = ScoreRow(examples, input_gradient, clip, row, &unit_sums_[worker].sums);
  });
}

// Occurrences of one unit are adjacent.
double RowGradients::ScoreRow(const Examples& examples, ops::ConstMatrix input_gradient,
                              double clip, size_t row, std::vector<double>* unit_sum) const {
  double steps = 0;
  const uint32_t end = occurrence_end_[row];
  for (uint32_t i = row == 0 ? 0 : occurrence_end_[row - 1]; i < end;) {
    const uint32_t unit = examples.unit_of[occurrence_[i].example];
    const size_t dim = dim_[occurrence_[i].slot];
    unit_sum->assign(dim, 0);
    for (; i < end && examples.unit_of[occurrence_[i].example] == unit; ++i) {
      const float* from = At(input_gradient, i, dim);
      for (size_t c = 0; c < dim; ++c) (*unit_sum)[c] += from[c];
    }
    double squared = 0;
    for (double x : *unit_sum) squared += x * x;
    const double share = std::sqrt(squared) / clip;
    if (std::isfinite(share)) steps += std::floor(std::min(share, 1.0) * kScoreSteps);
  }
  return steps / kScoreSteps * clip;
}

}  // namespace tacit::model
