#include "serve/scoring/linear_weights.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/moving_average.h"
#include "model/linear/row.h"
#include "model/linear/update.h"

namespace tacit::serve {
namespace {

namespace linear = model::linear;

// The last number that is read of a row.
constexpr size_t kLastFloat =
    std::max({linear::kWeight, linear::kError, linear::kEvents, linear::kPeriod});

// Larger weights come first; equal ones in the order of their rows.
bool IsLarger(const LinearWeight& a, const LinearWeight& b) {
  return std::tuple(-std::fabs(a.weight), a.row) < std::tuple(-std::fabs(b.weight), b.row);
}

// Keeps the `most` largest in a heap whose first is the smallest of them.
void Keep(const LinearWeight& weight, size_t most, std::vector<LinearWeight>* kept) {
  if (kept->size() == most) {
    if (most == 0 || !IsLarger(weight, kept->front())) return;
    std::ranges::pop_heap(*kept, IsLarger);
    kept->pop_back();
  }
  kept->push_back(weight);
  std::ranges::push_heap(*kept, IsLarger);
}

}  // namespace

Result<std::vector<LinearWeight>> LargestWeights(const store::Snapshot& snapshot,
                                                 LearnerIndex learner,
                                                 const linear::Columns& columns,
                                                 const WeightsAsked& asked) {
  auto first = uint32_t{0}, last = static_cast<uint32_t>(columns.size());
  if (!asked.column.empty()) {
    TACIT_ASSIGN(first, columns.space().FindTable(asked.column));
    last = first + 1;
  }
  std::vector<LinearWeight> kept;
  bool told = true;
  for (uint32_t column = first; column < last; ++column)
    TACIT_RETURN_IF_ERROR(
        snapshot.ForWritten(learner, column, [&](uint64_t row, std::span<const float> floats) {
          told = told && floats.size() > kLastFloat;
          if (!told) return;
          Keep({.column = column,
                .row = row,
                .weight = floats[linear::kWeight],
                .deviation =
                    linear::DeviationOf(floats[linear::kWeight], floats[linear::kError], {}),
                .events = floats[linear::kEvents],
                .period = CountOf(floats[linear::kPeriod])},
               asked.most, &kept);
        }));
  if (!told)
    return Fail(ErrorCode::kRefused,
                "a replica and a release checkpoint hold weights without their deviations and "
                "events: ask the trainer");
  std::ranges::sort(kept, IsLarger);
  return kept;
}

}  // namespace tacit::serve
