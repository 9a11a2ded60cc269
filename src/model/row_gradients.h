#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/threads/worker_pool.h"
#include "model/examples.h"
#include "model/gradient.h"
#include "ops/backend.h"

namespace tacit::model {

// Gradients of embedding rows that were sum-pooled into columns of the model's input: a row's
// gradient is the input gradient's columns of its slot, added over the row's occurrences. It is
// formed per unit only for rows that occur several times in one unit. Keeps its memory; not
// thread-safe.
class RowGradients {
 public:
  // `column` and `dim` are per slot, as in ops::Backend::Slots.
  RowGradients(std::vector<uint32_t> column, std::vector<uint32_t> dim, WorkerPool& workers);

  // out[u] = squared norm of unit u's gradient over the rows with kept_place; occurrences of one
  // row are added before they are squared. coordinates[u] = the count of numbers in that gradient.
  // `example_end` is per unit.
  void SquaredNorms(const Examples& examples, const Activations& activations,
                    std::span<const uint32_t> kept_place, std::span<const uint32_t> example_end,
                    ops::ConstMatrix input_gradient, std::span<float> out,
                    std::span<uint32_t> coordinates);

  // Adds the rows' sums, each example scaled, into sum's rows. Occurrences are added in the order
  // of the batch, with any number of workers. An empty `scale` is all ones.
  void AddTo(const Examples& examples, ops::ConstMatrix input_gradient,
             std::span<const float> scale, StepGradient* sum);
  // The same on a grid: fills sum's row_sums. A unit's occurrences of a row are added in double, in
  // the order in which its norm was taken, scaled, and rounded once. `scale` is per example and
  // equal within a unit.
  void SumOnGrid(const Examples& examples, ops::ConstMatrix input_gradient,
                 std::span<const float> scale, double step, StepGradient* sum);

  // out[place] = over units, the sum of the norm of the unit's gradient of the row, each cut to
  // `clip` and rounded down to a multiple of clip / 2^24. Sums of those are exact below 2^29 units:
  // they depend neither on the order nor on the number of workers, and one unit moves none by more
  // than the clip. A norm that is not finite counts 0.
  void Scores(const Examples& examples, ops::ConstMatrix input_gradient, double clip,
              std::span<double> out);

 private:
  struct Occurrence {
    uint32_t example;
    uint32_t slot;
  };
  // One worker's map from a row's place to its sum of the current unit.
  struct UnitSums {
    std::vector<uint32_t> unit;   // per place: the unit last seen
    std::vector<uint32_t> begin;  // per place: in `sums`
    std::vector<double> sums;
  };

  struct UnitNorm {
    double squared = 0;
    size_t coordinates = 0;
  };

  UnitNorm NormOf(const Examples& examples, std::span<const uint32_t> kept_place, size_t first,
                  size_t last, ops::ConstMatrix input_gradient) const;
  UnitNorm NormOfRepeats(const Examples& examples, std::span<const uint32_t> kept_place,
                         uint32_t unit, size_t first, size_t last, ops::ConstMatrix input_gradient,
                         UnitSums* scratch) const;
  void SortOccurrences(const Examples& examples, std::span<const uint32_t> row_of_place,
                       size_t rows);
  double ScoreRow(const Examples& examples, ops::ConstMatrix input_gradient, double clip,
                  size_t row, std::vector<double>* unit_sum) const;
  void AddRow(ops::ConstMatrix input_gradient, std::span<const float> scale, size_t row,
              std::span<float> out) const;
  void SumRowOnGrid(const Examples& examples, ops::ConstMatrix input_gradient,
                    std::span<const float> scale, double per_step, size_t row,
                    std::vector<double>* unit_sum, std::span<int64_t> out) const;
  const float* At(ops::ConstMatrix input_gradient, uint32_t occurrence, size_t dim) const;

  size_t slots() const { return dim_.size(); }
  uint32_t EntryBegin(const Examples& examples, size_t example) const {
    return example == 0 || slots() == 0 ? 0 : examples.slot_end[example * slots() - 1];
  }

  const std::vector<uint32_t> column_, dim_;
  WorkerPool& workers_;
  std::vector<UnitSums> unit_sums_;       // per worker
  std::vector<uint32_t> every_place_;     // 0, 1, 2, ...
  std::vector<uint32_t> occurrence_end_;  // per row of the sum
  std::vector<Occurrence> occurrence_;
};

}  // namespace tacit::model
