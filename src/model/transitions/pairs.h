#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tacit::model::transitions {

// Adds each of a history's last `items_most` items once, however often it is repeated, with weight
// 1, to a vector that can Add(item, weight) and says what it Has(item).
template <class Vector>
void AddPopularity(std::span<const uint32_t> history, size_t items_most, Vector* vector) {
  for (const uint32_t item : history.last(std::min(history.size(), items_most)))
    if (!vector->Has(item)) vector->Add(item, 1);
}

// Calls visit(a, b, weight) for every two different items of a history, a before b, at most `lags`
// apart, with weight decay^(lag - 1). The same pair may come more than once. Pairs within the first
// `known` items are left out, but not those from one of them to a later item: so a history that is
// cut anywhere, each part with the items before it, has each of its pairs once.
template <class Visit>
void ForNewPairs(std::span<const uint32_t> history, size_t known, uint32_t lags, double decay,
                 const Visit& visit) {
  for (size_t i = std::max<size_t>(1, known); i < history.size(); ++i) {
    double weight = 1;
    for (size_t lag = 1; lag <= std::min<size_t>(lags, i); ++lag, weight *= decay)
      if (history[i - lag] != history[i]) visit(history[i - lag], history[i], weight);
  }
}

// The same with no known items.
template <class Visit>
void ForPairs(std::span<const uint32_t> history, uint32_t lags, double decay, const Visit& visit) {
  ForNewPairs(history, 0, lags, decay, visit);
}

}  // namespace tacit::model::transitions
