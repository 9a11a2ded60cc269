#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/transitions/buckets.h"
#include "model/transitions/options.h"

// The rules by which the shaped counts set themselves. Each is a continuous function of public
// numbers and of numbers that were released. rules.cc has the evidence for their constants, which
// are in Options.
//
// The signal is mu times the noisy sum of all popularity. A user's part of that sum is the root of
// his number of items, so users, events of a user and epsilon enter it together.
namespace tacit::model::transitions {

// Returns the deviation of the items' popularity over its mean, by noisy sums and the deviation of
// their noise: 0 if noise explains how they differ.
double PopularitySpread(std::span<const float> sums, double deviation);

// Returns the share of mu that popularity has: in a first period both looks at it together, in a
// later one its only look. `spread` is that of the popularity so far.
double PopularityShareAt(const Options& options, double signal, double spread, uint32_t items,
                         bool described);

// Returns the share of mu that a table has.
double TableShareAt(const Options& options, Buckets::Table table, double signal, uint32_t items);

// Returns the unit that Options::stage_cells counts the measured cells in.
double CellsAt(const Options& options, double signal, uint32_t items);

// Returns the weights of a history's last items in a score, the latest first.
std::vector<float> RecentWeights(const Options& options);

}  // namespace tacit::model::transitions
