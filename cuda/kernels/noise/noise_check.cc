#include "cuda/kernels/noise/noise_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cuda/device/device.h"
#include "cuda/kernels/noise/noise.h"
#include "cuda/kernels/parts/chacha.h"
#include "noise/grid_gaussian.h"

namespace tacit::cuda {
namespace {

constexpr double kStddev = 0x1.4p30;
constexpr double kFactor = 0x1p-31;
constexpr size_t kWordsPerPlace = 48;

constexpr NoiseKey kKey = {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0,
                            0x082efa98, 0xec4e6c89}};  // digits of pi

// The place's 16 numbers by the host's arithmetic, pair by pair.
std::vector<int64_t> HostPlace(NoiseQuery query, uint64_t place) {
  uint32_t words[kWordsPerPlace];
  for (uint64_t b = 0; b < 3; ++b) {
    uint32_t block[kChaChaWords];
    ChaChaBlock(kKey.words, 3 * place + b, static_cast<uint64_t>(query), block);
    std::copy(std::begin(block), std::end(block), words + b * kChaChaWords);
  }
  std::vector<int64_t> numbers(kNumbersPerPlace, 0);
  for (size_t pair = 0; pair < kNumbersPerPlace / 2; ++pair) {
    alignas(8) uint32_t bits[noise::kWordsPerPair];
    std::copy_n(words + pair * noise::kWordsPerPair, noise::kWordsPerPair, bits);
    noise::AddGridPortable(bits, kStddev, noise::DitherBits(kStddev), &numbers[2 * pair],
                           &numbers[2 * pair + 1], 1);
  }
  return numbers;
}

std::vector<int64_t> HostNumbers(NoiseQuery query, uint64_t first_place, size_t n) {
  std::vector<int64_t> numbers;
  for (uint64_t place = first_place; numbers.size() < n; ++place) {
    const auto more = HostPlace(query, place);
    numbers.insert(numbers.end(), more.begin(), more.end());
  }
  numbers.resize(n);
  return numbers;
}

template <class T>
Result<std::vector<T>> FromDevice(Stream& stream, const Buffer<T>& buffer) {
  std::vector<T> values(buffer.size());
  TACIT_RETURN_IF_ERROR(stream.Download(buffer.span(), std::span<T>(values)));
  TACIT_RETURN_IF_ERROR(stream.Synchronize());
  return values;
}

Result<bool> DenseIsRight(Stream& stream, DeviceSpan<const NoiseKey> key) {
  constexpr size_t kNumbers = 16 * 300 + 5;  // several blocks, and a place that is not whole
  std::vector<int64_t> start(kNumbers);
  for (size_t i = 0; i < kNumbers; ++i) start[i] = static_cast<int64_t>(i << 40) - (1 << 20);
  TACIT_ASSIGN(const auto values, Buffer<int64_t>::Make(stream.device(), kNumbers));
  TACIT_RETURN_IF_ERROR(stream.Upload<int64_t>(start, values.span()));
  TACIT_RETURN_IF_ERROR(AddGridNoise(stream, key, NoiseQuery::kDense, kStddev, values.span()));
  TACIT_ASSIGN(const auto got, FromDevice(stream, values));
  auto want = HostNumbers(NoiseQuery::kDense, 0, kNumbers);
  for (size_t i = 0; i < kNumbers; ++i) want[i] += start[i];
  return got == want;
}

Result<bool> FloatsAreRight(Stream& stream, DeviceSpan<const NoiseKey> key) {
  constexpr size_t kNumbers = 1000;
  TACIT_ASSIGN(const auto values, Buffer<float>::Make(stream.device(), kNumbers));
  TACIT_RETURN_IF_ERROR(stream.Fill(values.span(), 0));
  TACIT_RETURN_IF_ERROR(
      FillGridNoise(stream, key, NoiseQuery::kSelection, kStddev, kFactor, values.span()));
  TACIT_ASSIGN(const auto got, FromDevice(stream, values));
  std::vector<float> want;
  for (const int64_t n : HostNumbers(NoiseQuery::kSelection, 0, kNumbers))
    want.push_back(static_cast<float>(static_cast<double>(n) * kFactor));
  return got == want;
}

Result<bool> RowsAreRight(Stream& stream, DeviceSpan<const NoiseKey> key) {
  constexpr uint32_t kDim = 37, kPlacesPerRow = 3;
  const std::vector<uint64_t> ids = {7, 0, (uint64_t{1} << 48) - 1, 123456789012};
  TACIT_ASSIGN(const auto rows, Buffer<uint64_t>::Make(stream.device(), ids.size()));
  TACIT_ASSIGN(const auto values, Buffer<int64_t>::Make(stream.device(), ids.size() * kDim));
  TACIT_RETURN_IF_ERROR(stream.Upload<uint64_t>(ids, rows.span()));
  TACIT_RETURN_IF_ERROR(stream.Fill(values.span(), 0));
  TACIT_RETURN_IF_ERROR(AddGridNoiseToRows(stream, key, NoiseQuery::kRows, kStddev, rows.span(),
                                           kDim, values.span()));
  TACIT_ASSIGN(const auto got, FromDevice(stream, values));
  std::vector<int64_t> want;
  for (const uint64_t id : ids) {
    const auto row = HostNumbers(NoiseQuery::kRows, id * kPlacesPerRow, kDim);
    want.insert(want.end(), row.begin(), row.end());
  }
  return got == want;
}

}  // namespace

Status CheckNoise(Stream& stream) {
  TACIT_ASSIGN(const auto key, Buffer<NoiseKey>::Make(stream.device(), 1));
  TACIT_RETURN_IF_ERROR(stream.Upload<NoiseKey>({&kKey, 1}, key.span()));
  for (const auto& check : {DenseIsRight, FloatsAreRight, RowsAreRight}) {
    TACIT_ASSIGN(const bool right, check(stream, key.span()));
    if (right) continue;
    return Fail(ErrorCode::kCorruption,
                fmt::format("GPU {} does not compute what the CPU does (noise): it must not train",
                            stream.device().facts().ordinal));
  }
  return {};
}

}  // namespace tacit::cuda
