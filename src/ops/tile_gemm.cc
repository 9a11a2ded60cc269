#include "ops/tile_gemm.h"

#include <immintrin.h>

#include <algorithm>

#include "base/check.h"
#include "base/cpu.h"
#include "ops/lanes.h"

namespace tacit::ops {
namespace {

// A tile of c is summed in registers: kRows rows of kVectors vectors of 16 columns. With the
// vectors of b and one number of a that makes 29 of 32 registers.
constexpr size_t kRows = 6, kVectors = 4;
// The lanes of the inner dimension, and the rows of c, that are finished before the next ones: the
// part of b that all rows read, and the rearranged part of a, stay in the caches.
constexpr size_t kLanes = 128, kBlock = 192;

// The lanes of a left factor: that of row i and place k is at[i * row + k * lane].
struct Left {
  const float* at;
  size_t row, lane;
};

// c (+)= a b for kM rows and kN vectors of columns. If kCut, the last vector has only the lanes
// that `last` selects.
template <class Lane, size_t kM, size_t kN, bool kCut>
TACIT_LANES void Tile(Left a, const float* b, size_t b_stride, size_t lanes, bool add,
                      __mmask16 last, float* c, size_t c_stride) {
  __m512 sum[kM][kN];
  float* row = c;
#pragma GCC unroll 6
  for (size_t i = 0; i < kM; ++i, row += c_stride)
#pragma GCC unroll 4
    for (size_t j = 0; j < kN; ++j) {
      const float* from = row + j * kWidth;
      sum[i][j] = !add                  ? _mm512_setzero_ps()
                  : kCut && j + 1 == kN ? _mm512_maskz_loadu_ps(last, from)
                                        : _mm512_loadu_ps(from);
    }
  // Without this the compiler keeps the addresses of all rows in registers that sums need.
  asm("" : "+r"(c));
  for (size_t k = 0; k < lanes; ++k, b += b_stride, a.at += a.lane) {
    __m512 right[kN];
#pragma GCC unroll 4
    for (size_t j = 0; j < kN; ++j)
      right[j] = kCut && j + 1 == kN ? _mm512_maskz_loadu_ps(last, b + j * kWidth)
                                     : _mm512_loadu_ps(b + j * kWidth);
#pragma GCC unroll 6
    for (size_t i = 0; i < kM; ++i) {
      const __m512 left = _mm512_set1_ps(a.at[i * a.row]);
#pragma GCC unroll 4
      for (size_t j = 0; j < kN; ++j) sum[i][j] = Lane::Add(sum[i][j], left, right[j]);
    }
  }
#pragma GCC unroll 6
  for (size_t i = 0; i < kM; ++i, c += c_stride)
#pragma GCC unroll 4
    for (size_t j = 0; j < kN; ++j) {
      float* to = c + j * kWidth;
      if (kCut && j + 1 == kN) {
        _mm512_mask_storeu_ps(to, last, sum[i][j]);
      } else {
        _mm512_storeu_ps(to, sum[i][j]);
      }
    }
}

using TileFunction = void (*)(Left a, const float* b, size_t b_stride, size_t lanes, bool add,
                              __mmask16 last, float* c, size_t c_stride);
// The tiles by their rows.
template <class Lane, size_t kN, bool kCut>
constexpr TileFunction kTiles[kRows] = {Tile<Lane, 1, kN, kCut>, Tile<Lane, 2, kN, kCut>,
                                        Tile<Lane, 3, kN, kCut>, Tile<Lane, 4, kN, kCut>,
                                        Tile<Lane, 5, kN, kCut>, Tile<Lane, 6, kN, kCut>};
// The tiles by their vectors, the last one whole or cut.
template <class Lane>
constexpr const TileFunction* kPanels[kVectors][2] = {
    {kTiles<Lane, 1, false>, kTiles<Lane, 1, true>},
    {kTiles<Lane, 2, false>, kTiles<Lane, 2, true>},
    {kTiles<Lane, 3, false>, kTiles<Lane, 3, true>},
    {kTiles<Lane, 4, false>, kTiles<Lane, 4, true>}};

// c (+)= a b, panel by panel of b.
template <class Lane>
void Panels(Left a, const float* b, size_t b_stride, size_t lanes, bool add, Matrix c) {
  for (size_t first = 0; first < c.cols; first += kVectors * kWidth) {
    const size_t cols = std::min(kVectors * kWidth, c.cols - first), cut = cols % kWidth;
    const TileFunction* tiles = kPanels<Lane>[(cols + kWidth - 1) / kWidth - 1][cut != 0];
    const auto last = static_cast<__mmask16>(cut == 0 ? 0xffff : (1u << cut) - 1);
    for (size_t i = 0; i < c.rows; i += kRows) {
      const size_t rows = std::min(kRows, c.rows - i);
      tiles[rows - 1]({a.at + i * a.row, a.row, a.lane}, b + first, b_stride, lanes, add, last,
                      c.Row(i) + first, c.stride);
    }
  }
}

size_t LanesOf(size_t numbers, size_t per_lane) { return (numbers + per_lane - 1) / per_lane; }

// Rounds each row of x to lanes along itself.
TACIT_LANES void RoundAlong(ConstMatrix x, Matrix to) {
  for (size_t r = 0; r < x.rows; ++r) {
    const float* from = x.Row(r);
    float* lanes = to.Row(r);
    for (size_t k = 0; k < x.cols; k += 2 * kWidth)
      _mm512_storeu_ps(lanes + k / 2, Bf16Lane::Along(from + k, x.cols - k));
  }
}

alignas(64) constexpr uint16_t kInterleaved[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                   21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                   11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

// Rounds rows of x two by two, each two to one row of lanes.
TACIT_LANES void RoundAcross(ConstMatrix x, Matrix to) {
  const __m512i interleaved = _mm512_load_si512(kInterleaved);
  for (size_t r = 0; r < x.rows; r += 2) {
    const float* upper = x.Row(r);
    const float* lower = x.Row(r + 1 < x.rows ? r + 1 : r);
    const size_t lower_cols = r + 1 < x.rows ? x.cols : 0;
    float* lanes = to.Row(r / 2);
    for (size_t c = 0; c < x.cols; c += kWidth) {
      const __m512 first = FloatLane::Along(upper + c, x.cols - c);
      const __m512 second =
          lower_cols > 0 ? FloatLane::Along(lower + c, x.cols - c) : _mm512_setzero_ps();
      const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
      _mm512_storeu_si512(lanes + c, _mm512_permutexvar_epi16(interleaved, both));
    }
  }
}

// Transposes in place: number j of vector i becomes number i of vector j.
TACIT_LANES void TransposeVectors(__m512i (&x)[16]) {
  __m512i y[16];
  for (size_t i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
  for (size_t i = 0; i < 16; i += 4)
    for (size_t j = 0; j < 2; ++j) {
      x[i + 2 * j] = _mm512_unpacklo_epi64(y[i + j], y[i + 2 + j]);
      x[i + 2 * j + 1] = _mm512_unpackhi_epi64(y[i + j], y[i + 2 + j]);
    }
  // Quarter l of x[4 g + q] now holds numbers 4 l + q of vectors 4 g .. 4 g + 3.
  for (size_t q = 0; q < 4; ++q) {
    const __m512i a = _mm512_shuffle_i32x4(x[q], x[4 + q], 0x88);
    const __m512i b = _mm512_shuffle_i32x4(x[8 + q], x[12 + q], 0x88);
    const __m512i c = _mm512_shuffle_i32x4(x[q], x[4 + q], 0xdd);
    const __m512i d = _mm512_shuffle_i32x4(x[8 + q], x[12 + q], 0xdd);
    y[q] = _mm512_shuffle_i32x4(a, b, 0x88);
    y[8 + q] = _mm512_shuffle_i32x4(a, b, 0xdd);
    y[4 + q] = _mm512_shuffle_i32x4(c, d, 0x88);
    y[12 + q] = _mm512_shuffle_i32x4(c, d, 0xdd);
  }
  for (size_t i = 0; i < 16; ++i) x[i] = y[i];
}

// Rearranges x, n by k, to lanes by n.
template <class Lane>
TACIT_LANES void TransposeToLanes(ConstMatrix x, Matrix to) {
  constexpr size_t kNumbers = kWidth * Lane::kNumbers;
  for (size_t r = 0; r < x.rows; r += kWidth)
    for (size_t k = 0; k < x.cols; k += kNumbers) {
      __m512i square[16];
      for (size_t i = 0; i < 16; ++i)
        square[i] = r + i < x.rows
                        ? reinterpret_cast<__m512i>(Lane::Along(x.Row(r + i) + k, x.cols - k))
                        : _mm512_setzero_si512();
      TransposeVectors(square);
      const size_t lanes = std::min(kWidth, to.rows - k / Lane::kNumbers);
      for (size_t i = 0; i < lanes; ++i)
        _mm512_storeu_si512(to.Row(k / Lane::kNumbers + i) + r, square[i]);
    }
}

ConstMatrix Columns(ConstMatrix x, size_t begin, size_t end) {
  return {x.data + begin, x.rows, end - begin, x.stride};
}

// The numbers in one lane.
size_t PerLane(Precision precision) { return precision == Precision::kF32 ? 1 : 2; }

// Returns the right factor in lanes, of which whole vectors may be read: in `room`, or in place.
ConstMatrix RightLanes(Precision precision, Transpose tb, ConstMatrix b,
                       MatrixBuffer<float>* room) {
  const bool transposed = tb == Transpose::kYes;
  const size_t inner = transposed ? b.cols : b.rows, cols = transposed ? b.rows : b.cols;
  if (precision == Precision::kF32 && !transposed) return b;
  room->Reset(LanesOf(inner, PerLane(precision)), cols);
  const Matrix to = room->view();
  if (!transposed) {
    RoundAcross(b, to);
  } else if (precision == Precision::kF32) {
    TransposeToLanes<FloatLane>(b, to);
  } else {
    TransposeToLanes<Bf16Lane>(b, to);
  }
  return to;
}

// A factor of ops of another kind has no lanes, or another number of them.
void CheckIsOfTiles(const RightFactor& b, Precision precision) {
  const size_t inner = b.transpose == Transpose::kYes ? b.matrix.cols : b.matrix.rows;
  TACIT_CHECK(b.lanes.data != nullptr && b.lanes.rows == LanesOf(inner, PerLane(precision)),
              "factors are made by ops of the same kind");
}

}  // namespace

bool HasTileGemm() { return ThisCpu().avx512_bf16; }

template <class Lane>
void TileGemm::Multiply(Transpose ta, ConstMatrix a, ConstMatrix lanes, float beta, Matrix c) {
  constexpr size_t kNumbers = Lane::kNumbers;
  const bool transposed = ta == Transpose::kYes;
  const size_t inner = transposed ? a.rows : a.cols;
  for (size_t k = 0; k < inner; k += kLanes * kNumbers) {
    const size_t numbers = std::min(kLanes * kNumbers, inner - k);
    for (size_t first = 0; first < c.rows; first += kBlock) {
      const size_t last = std::min(c.rows, first + kBlock);
      const ConstMatrix part = transposed ? Columns(a.Rows(k, k + numbers), first, last)
                                          : Columns(a.Rows(first, last), k, k + numbers);
      Left left{part.data, transposed ? 1 : part.stride, transposed ? part.stride : 1};
      if constexpr (kNumbers == 2) {
        left_.Reset(transposed ? LanesOf(numbers, 2) : part.rows,
                    transposed ? part.cols : LanesOf(numbers, 2));
        const Matrix rounded = left_.view();
        transposed ? RoundAcross(part, rounded) : RoundAlong(part, rounded);
        left = {rounded.data, transposed ? 1 : rounded.stride, transposed ? rounded.stride : 1};
      }
      Panels<Lane>(left, lanes.Row(k / kNumbers), lanes.stride, LanesOf(numbers, kNumbers),
                   beta != 0 || k > 0, c.Rows(first, last));
    }
  }
}

void TileGemm::Prepare(Transpose tb, ConstMatrix b, RightFactor* factor) {
  factor->lanes = RightLanes(precision_, tb, b, &factor->room);
}

void TileGemm::Run(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta, Matrix c) {
  RunLanes(ta, a, RightLanes(precision_, tb, b, &right_), beta, c);
}

void TileGemm::Run(Transpose ta, ConstMatrix a, const RightFactor& b, float beta, Matrix c) {
  CheckIsOfTiles(b, precision_);
  RunLanes(ta, a, b.lanes, beta, c);
}

void TileGemm::RunLanes(Transpose ta, ConstMatrix a, ConstMatrix lanes, float beta, Matrix c) {
  if (precision_ == Precision::kBf16) {
    Multiply<Bf16Lane>(ta, a, lanes, beta, c);
  } else {
    Multiply<FloatLane>(ta, a, lanes, beta, c);
  }
}

void TileGemm::Run(Transpose ta, const LeftFactor& a, const RightFactor& b, float beta, Matrix c) {
  CheckIsOfTiles(b, precision_);
  const bool transposed = ta == Transpose::kYes;
  const Matrix lanes = transposed ? a.across.view() : a.along.view();
  const size_t inner = LanesOf(transposed ? a.matrix.rows : a.matrix.cols, 2);
  for (size_t k = 0; k < inner; k += kLanes) {
    const Left left{transposed ? lanes.Row(k) : lanes.data + k, transposed ? 1 : lanes.stride,
                    transposed ? lanes.stride : 1};
    Panels<Bf16Lane>(left, b.lanes.Row(k), b.lanes.stride, std::min(kLanes, inner - k),
                     beta != 0 || k > 0, c);
  }
}

// Rows two by two (`across`) have the layout of a right factor's lanes.
void TileGemm::AddWeightedRows(std::span<const float> weight, const LeftFactor& a,
                               std::span<float> out) {
  Multiply<Bf16Lane>(Transpose::kNo, {weight.data(), 1, weight.size()}, a.across.view(), 1,
                     {out.data(), 1, out.size()});
}

}  // namespace tacit::ops
