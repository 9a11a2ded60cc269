#pragma once

#include <cstddef>
#include <vector>

#include "inspect/noised_counts.h"
#include "inspect/private_sample.h"
#include "inspect/roles.h"

// A column in noised counts.
namespace tacit::inspect {

// The places of a column's counts among others.
struct ColumnPlaces {
  size_t forms = 0, halves = 0, distinct = 0, distinct_first = 0, cells = 0, numbers = 0, order = 0,
         elements = 0;
};
// The places of a sample's counts: readable records by half and unreadable ones, different lines.
struct SamplePlaces {
  size_t readable = 0, distinct = 0;
  std::vector<ColumnPlaces> columns = {};
};
// Adds all counts of a sample; a unit moves them by at most `bound` times the root of 15 a column
// and 2. `bound`: the records that a unit has at most.
SamplePlaces AddSample(const PrivateSample& raw, double bound, NoisedCounts* counts);

// The column as it is known by noised counts.
struct NoisedColumn {
  Column column;  // counts of forms; no code, number or text
  Profile profile;
  std::vector<std::pair<double, uint64_t>> scale = {};  // if empty, its numbers are not on a scale
};
// Makes whole numbers of noised counts: what does not stand out of the noise is 0, and parts add up
// to their whole. `rows`: readable records, of both halves.
NoisedColumn ReadColumn(const NoisedCounts& counts, const ColumnPlaces& at, const Column& raw_name,
                        double rows_first, double rows_second);

}  // namespace tacit::inspect
