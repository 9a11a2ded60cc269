#include "model/gradient.h"

#include <cmath>

#include "base/check.h"

namespace tacit::model {

float RoundingOf(double step, size_t numbers) {
  return static_cast<float>(step * std::sqrt(static_cast<double>(numbers)) / 2 * (1 + 0x1p-20));
}

void StepGradient::Reset(const RowSpace& space, const Activations& activations,
                         const RowSelection& selection, size_t dense_size) {
  const std::vector<uint64_t>& touched = activations.rows;
  TACIT_CHECK(selection.kept.size() == touched.size(), "one decision per touched row");
  dense.assign(dense_size, 0.0f);
  dense_sums.clear();
  rows.clear();
  row_end.clear();
  kept_place.assign(touched.size(), kNotKept);

  // Merges two ascending lists; both walk the tables in order.
  size_t table = 0, floats = 0;
  const auto append = [&](uint64_t row) {
    TACIT_CHECK(row < space.rows() && (rows.empty() || rows.back() < row),
                "rows must ascend and lie in the space");
    const auto tables = space.tables();
    while (row - tables[table].first >= tables[table].rows) ++table;
    floats += tables[table].dim;
    rows.push_back(row);
    row_end.push_back(floats);
  };
  size_t extra = 0;
  for (size_t i = 0; i < touched.size(); ++i) {
    if (!selection.kept[i]) continue;
    while (extra < selection.extra.size() && selection.extra[extra] < touched[i])
      append(selection.extra[extra++]);
    kept_place[i] = static_cast<uint32_t>(rows.size());
    append(touched[i]);
  }
  while (extra < selection.extra.size()) append(selection.extra[extra++]);
  row_values.assign(floats, 0.0f);
  row_sums.clear();
}

}  // namespace tacit::model
