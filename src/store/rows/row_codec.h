#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"

// A row as the store's tables hold it: an embedding of `dim` numbers, then the optimiser's floats.
// The embedding's numbers are f32, or bfloat16 (the upper halves of f32s) in learners that say so
// (RowLayout::bf16) where that loses nothing. The value's length tells the two apart, so that a
// store may hold both.
namespace tacit::store {

// The value of a row; valid until `scratch` changes. REQUIRES dim <= row.size().
std::string_view EncodeRow(std::span<const float> row, uint32_t dim, bool bf16,
                           std::string* scratch);
// The bytes of a row's value, in one form and in the other.
constexpr size_t RowBytes(uint32_t dim, uint32_t state_floats, bool bf16) {
  return size_t{dim} * (bf16 ? 2 : 4) + size_t{state_floats} * 4;
}
// Writes the first out.size() floats of the row, at least the embedding's. False if the value has
// neither length.
bool DecodeRow(std::string_view value, uint32_t dim, uint32_t state_floats, std::span<float> out);

// Rounds the numbers to bfloat16: up or down at random, so that they stay as they are in the mean.
// The coins are public, and follow from the row and the commit that it goes into. Numbers that are
// bfloat16 already stay.
void RoundToBf16(uint64_t seed, CommitSeq commit, uint64_t row, std::span<float> numbers);

}  // namespace tacit::store
