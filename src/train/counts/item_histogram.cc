#include "train/counts/item_histogram.h"

#include <cmath>
#include <utility>

#include "base/check.h"
#include "mechanism/unit_histogram.h"
#include "model/transitions/pairs.h"
#include "privacy/mu.h"

namespace tacit::train {

ItemHistogram ReleaseItems(const model::Histories& histories, std::span<const uint32_t> known,
                           size_t items_most, double mu, noise::NoiseSource& noise) {
  TACIT_CHECK(known.empty() || known.size() == histories.units());
  const double stddev = std::isinf(mu) ? 0 : privacy::kMuMargin / mu;
  mechanism::UnitHistogram histogram(histories.catalogue, stddev);
  mechanism::UnitVector vector(histories.catalogue);
  for (size_t unit = 0; unit < histories.units(); ++unit) {
    vector.Clear();
    const auto items = histories.Of(unit).subspan(known.empty() ? 0 : known[unit]);
    model::transitions::AddPopularity(items, items_most, &vector);
    histogram.Add(vector);
  }
  const privacy::Charge charge = histogram.charge();
  return {std::move(histogram).Release(noise), stddev, charge};
}

}  // namespace tacit::train
