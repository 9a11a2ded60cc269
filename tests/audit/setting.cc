#include "audit/setting.h"

#include <bit>
#include <cmath>
#include <string>

namespace tacit::audit {
namespace {

constexpr uint32_t kDim = 2;

// Alternating signs: nothing here is constant along a row.
std::vector<double> RowGradient(double norm) {
  const double each = norm / std::sqrt(double{kDim});
  return {each, -each};
}

UnitGradient MakeCanary(const SettingOptions& options, const Setting& setting) {
  const double clip = setting.clip_gradient;
  const bool heavy = options.canary == Canary::kHeavyRow;
  UnitGradient canary;
  canary.dense = heavy ? std::vector<double>{6 * clip, 0, 8 * clip, 0}
                       : std::vector<double>{1000 * clip, 0, 0, 0};
  for (const RowSpace::Table& table : setting.space.tables())
    for (uint64_t i = 0; i < options.canary_rows_per_table; ++i)
      canary.rows[table.first + i] = RowGradient(heavy ? 10 * clip : clip / 1000);
  if (heavy) canary.rows[0] = RowGradient(1000 * clip);
  for (uint64_t i = 0; i < options.foreign_rows; ++i)
    canary.rows[setting.space.tables()[i].first + options.rows_per_table - 1] =
        RowGradient(10 * clip);
  return canary;
}

}  // namespace

Setting MakeSetting(const SettingOptions& options) {
  Setting setting;
  for (uint32_t t = 0; t < options.tables; ++t)
    setting.space.AddTable("t" + std::to_string(t), options.rows_per_table, kDim);
  for (uint64_t row = 0; row < setting.space.rows(); ++row)
    if (row % options.rows_per_table + 1 < options.rows_per_table)
      setting.vocabulary.push_back(row);
  const double clip = setting.clip_gradient;
  for (uint64_t u = 0; u < options.rowed; ++u) {
    UnitGradient unit{.dense = {0, clip, 0, clip / 10}, .rows = {}};
    // One row of every second table: the canary's neighbour.
    for (uint32_t t = static_cast<uint32_t>(u % 2); t < options.tables; t += 2)
      unit.rows[setting.space.tables()[t].first + options.canary_rows_per_table] =
          RowGradient(clip / 4 * static_cast<double>(u + 1));
    setting.background.push_back(unit);
  }
  for (uint64_t u = 0; u < options.plain; ++u)
    setting.background.push_back({.dense = {-100 * clip, 0, 0, 0}, .rows = {}});
  setting.canary = MakeCanary(options, setting);
  setting.expected_batch = static_cast<double>(std::bit_ceil(setting.background.size()));
  return setting;
}

}  // namespace tacit::audit
