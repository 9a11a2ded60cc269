#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "mechanism/partial_sums.h"

// The query of a part whose bytes are few, and such bytes: for the tests of bytes and their fuzzer.
namespace tacit::testing {

inline constexpr mechanism::RowSumsOptions kPartOptions{
    .clip = 1, .noise_multiplier = 1, .numbers = 1};
inline constexpr mechanism::SumTable kPartTables[] = {
    {.first = 10, .rows = 5},
    {.first = 20, .rows = 300, .every_row = false},
    {.first = 400, .rows = 2, .every_row = false}};
inline constexpr double kPartStep = 0x1p-20;

// A number of 3 steps; of the first table rows 11 and 14 with sums of -1 and 64 steps and counts of
// 6 and 4; of the second rows 20, touched for nothing, and 219; none of the third.
inline mechanism::PartialSums SmallPart() {
  mechanism::RowSums sums(kPartOptions, kPartTables);
  const uint32_t late = sums.Touch(219);
  sums.Touch(20);
  mechanism::UnitVector unit(sums.cells());
  unit.Add(mechanism::RowSums::Number(0), 3 * kPartStep);
  unit.AddPair(sums.SumOf(1), -1 * kPartStep, 6 * kPartStep);
  unit.AddPair(sums.SumOf(4), 64 * kPartStep, 4 * kPartStep);
  unit.AddPair(sums.SumOf(late), -2 * kPartStep, 5 * kPartStep);
  sums.Add(unit);
  return mechanism::PartialSums(std::move(sums));
}

// The part that bytes are of.
inline Result<mechanism::PartialSums> ReadPart(
    std::string_view bytes, const mechanism::RowSumsOptions& query = kPartOptions,
    std::span<const mechanism::SumTable> tables = kPartTables) {
  mechanism::RowSums whole(query, tables);
  mechanism::PartialSums part(query, tables);
  TACIT_RETURN_IF_ERROR(part.AddBytes(bytes, &whole));
  part.Add(mechanism::PartialSums(std::move(whole)));
  return part;
}

}  // namespace tacit::testing
