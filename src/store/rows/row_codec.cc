#include "store/rows/row_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"

namespace tacit::store {
namespace {

constexpr uint32_t kLowerHalf = 0xffff, kExponent = 0x7f800000, kQuiet = 0x00400000;

// Tells these coins from other uses of the seed.
constexpr uint32_t kRounding = 0x62663136;

std::array<uint32_t, 2> Halves(uint64_t number) {
  return {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32)};
}

// Rounds away from zero if the lower half and the coin, of 16 bits, come to a whole.
float Rounded(float number, uint32_t coin) {
  const auto bits = std::bit_cast<uint32_t>(number);
  const uint32_t down = bits & ~kLowerHalf, rounded = (bits + coin) & ~kLowerHalf;
  // A NaN stays one, and the largest numbers do not become infinite.
  if ((bits & kExponent) == kExponent)
    return std::isnan(number) ? std::bit_cast<float>(down | kQuiet) : number;
  return std::bit_cast<float>((rounded & kExponent) == kExponent ? down : rounded);
}

bool IsBf16(float number) { return (std::bit_cast<uint32_t>(number) & kLowerHalf) == 0; }

}  // namespace

std::string_view EncodeRow(std::span<const float> row, uint32_t dim, bool bf16,
                           std::string* scratch) {
  TACIT_CHECK(dim <= row.size());
  if (!bf16 || !std::ranges::all_of(row.first(dim), IsBf16))
    return {reinterpret_cast<const char*>(row.data()), row.size_bytes()};
  const std::span<const float> state = row.subspan(dim);
  scratch->resize(size_t{dim} * 2 + state.size_bytes());
  for (uint32_t i = 0; i < dim; ++i) {
    const auto half = static_cast<uint16_t>(std::bit_cast<uint32_t>(row[i]) >> 16);
    std::memcpy(scratch->data() + size_t{i} * 2, &half, sizeof(half));
  }
  if (!state.empty())
    std::memcpy(scratch->data() + size_t{dim} * 2, state.data(), state.size_bytes());
  return *scratch;
}

bool DecodeRow(std::string_view value, uint32_t dim, uint32_t state_floats, std::span<float> out) {
  TACIT_CHECK(dim <= out.size() && out.size() <= size_t{dim} + state_floats);
  if (value.size() == RowBytes(dim, state_floats, false)) {
    std::memcpy(out.data(), value.data(), out.size_bytes());
    return true;
  }
  if (value.size() != RowBytes(dim, state_floats, true)) return false;
  for (uint32_t i = 0; i < dim; ++i) {
    uint16_t half;
    std::memcpy(&half, value.data() + size_t{i} * 2, sizeof(half));
    out[i] = std::bit_cast<float>(uint32_t{half} << 16);
  }
  if (out.size() > dim)
    std::memcpy(out.data() + dim, value.data() + size_t{dim} * 2, (out.size() - dim) * 4);
  return true;
}

void RoundToBf16(uint64_t seed, CommitSeq commit, uint64_t row, std::span<float> numbers) {
  const std::array<uint32_t, 2> key = Halves(seed);
  const auto [row_low, row_high] = Halves(row);
  const auto commit_low = static_cast<uint32_t>(commit.value);
  std::array<uint32_t, 4> coins{};
  for (uint32_t i = 0; i < numbers.size(); ++i) {
    if (i % 8 == 0) coins = Philox({row_low, row_high, commit_low, kRounding + i}, key);
    const uint32_t coin = coins[i / 2 % 4] >> (i % 2 * 16) & kLowerHalf;
    numbers[i] = Rounded(numbers[i], coin);
  }
}

}  // namespace tacit::store
