#include "model/linear/predict.h"

#include <cmath>

#include "base/check.h"

namespace tacit::model::linear {
namespace {

constexpr size_t kWeightsAhead = 4;  // examples whose weights are on their way to the cache

// Sums one value a column. Four sums, so that an addition need not wait for the one before it.
template <class T>
T SumOfOneEach(std::span<const uint32_t> place, const T* weight) {
  T sum[4] = {};
  size_t j = 0;
  for (; j + 4 <= place.size(); j += 4)
    for (size_t k = 0; k < 4; ++k) sum[k] += weight[place[j + k]];
  for (; j < place.size(); ++j) sum[0] += weight[place[j]];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Sums in the same order: an example of one value a column may lie beside others that have sets.
template <class T>
T SumOfRuns(const Places& places, size_t example, const T* weight) {
  const size_t in_fours = places.columns / 4 * 4;
  T sum[4] = {};
  for (size_t j = 0; j < places.columns; ++j) {
    const size_t run = example * places.columns + j;
    const size_t begin = places.Begin(run), end = places.end[run];
    T of_run{};
    for (size_t k = begin; k < end; ++k) of_run += weight[places.place[k]];
    sum[j < in_fours ? j % 4 : 0] +=
        end - begin == 1 ? of_run : of_run * static_cast<float>(InputOf(end - begin));
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

template <class T>
void AddUpAll(const Places& places, size_t begin, size_t end, std::span<const T> weight,
              std::span<T> out) {
  TACIT_CHECK(begin <= end && end <= places.examples() && out.size() == end - begin);
  for (size_t i = begin; i < end; ++i) {
    const size_t ahead = (i + kWeightsAhead) * places.columns;
    if (places.one_each && ahead < places.place.size())
      for (const uint32_t place : places.place.subspan(ahead, places.columns))
        __builtin_prefetch(&weight[place]);
    out[i - begin] =
        places.one_each
            ? SumOfOneEach(places.place.subspan(i * places.columns, places.columns), weight.data())
            : SumOfRuns(places, i, weight.data());
  }
}

}  // namespace

double InputOf(size_t m) { return m <= 1 ? 1 : 1 / std::sqrt(static_cast<double>(m)); }

void AddUp(const Places& places, size_t begin, size_t end, std::span<const float> weight,
           std::span<float> out) {
  AddUpAll(places, begin, end, weight, out);
}

void AddUp(const Places& places, size_t begin, size_t end, std::span<const Effect> effect,
           std::span<Effect> out) {
  AddUpAll(places, begin, end, effect, out);
}

}  // namespace tacit::model::linear
