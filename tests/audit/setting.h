#pragma once

#include <cstdint>
#include <vector>

#include "base/row_space.h"
#include "unit/mechanism/step.h"

// The instances an auditor chooses: everything but whether the canary is there is known to him.
namespace tacit::audit {

using mechanism::StepUnits;
using mechanism::UnitGradient;

// Groups of parameters, as a model has them: two layers, and the embedding rows last.
inline constexpr size_t kLayerSize = 2;
inline constexpr size_t kDense = 2 * kLayerSize;
inline constexpr size_t kGroups = 3;

// The part of a canary's gradient that is large.
enum class Canary {
  kHeavyRow,  // one row, by far; the rest is above the clip by itself when that row is not written
  kDense,     // one dense coordinate, against what the others push it to
};

struct SettingOptions {
  Canary canary = Canary::kHeavyRow;
  uint32_t tables = 8;
  uint64_t rows_per_table = 4;
  uint64_t canary_rows_per_table = 1;
  uint64_t foreign_rows = 0;  // the canary's rows that the vocabulary does not have
  uint64_t plain = 13;        // units without rows that push against the canary
  uint64_t rowed = 3;         // units with rows of their own
};

struct Setting {
  RowSpace space;
  StepUnits background;
  UnitGradient canary;
  std::vector<uint64_t> vocabulary;  // public, where a mechanism wants one
  double clip_gradient = 0.5;
  double clip_selection = 0.75;
  double expected_batch = 0;  // a power of two, so that dividing by it is exact
};

Setting MakeSetting(const SettingOptions& options);

}  // namespace tacit::audit
