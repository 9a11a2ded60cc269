#include "model/carriers/carriers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace tacit::model {
namespace {

// Added to the seed, so that carriers have coins of their own beside the initial weights.
constexpr uint64_t kCarrierCoins = 0x7461636974524750;

// A row of which so little is left beside the rows before it is rounding. Parameters are floats.
constexpr double kLeftOver = 1e-5;

double Dot(const double* a, const double* b, size_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void Subtract(double factor, const double* from, double* x, size_t n) {
  for (size_t i = 0; i < n; ++i) x[i] -= factor * from[i];
}

}  // namespace

SumMapOptions CarriersOf(const CarrierOptions& options) {
  SumMapOptions map{.rank = options.rank, .make = CarrierMaker{options}};
  if (options.power_steps == 0) map.refusal = "carriers: there is no power step";
  if (options.rank == 0) map.refusal = "carriers of rank 0 carry nothing";
  return map;
}

Carriers::Carriers(const CarrierOptions& options, std::vector<Weights> weights,
                   std::span<const float> initial, uint64_t seed, ops::Backend& backend)
    : options_(options),
      weights_(std::move(weights)),
      parameters_(initial.size()),
      seed_(seed + kCarrierCoins),
      backend_(backend),
      initial_(weights_.size()),
      left_(weights_.size()),
      right_(weights_.size()),
      pairs_(weights_.size()) {
  TACIT_CHECK(options.rank > 0 && options.power_steps > 0, "carriers of no rank");
  size_t end = 0;
  for (size_t m = 0; m < weights_.size(); ++m) {
    const Weights& w = weights_[m];
    TACIT_CHECK(w.offset >= end && w.offset + w.in * w.out <= initial.size(),
                "weights ascend inside the parameters");
    end = w.offset + w.in * w.out;
    if (SavedBy(w) == 0) continue;
    const auto begun = initial.subspan(w.offset, w.in * w.out);
    initial_[m].assign(begun.begin(), begun.end());
    left_[m].Reset(options.rank, w.in);
    right_[m].Reset(options.rank, w.out);
    pairs_[m] = {left_[m].view(), right_[m].view()};
  }
}

// Returns how many numbers fewer a matrix's carriers have; 0: it has none.
size_t Carriers::SavedBy(const Weights& weights) const {
  if (!FactorsSave(options_.rank, weights.in, weights.out)) return 0;
  return weights.in * weights.out - options_.rank * (weights.in + weights.out);
}

size_t Carriers::PlaceOf(size_t offset) const {
  size_t place = offset;
  for (const Weights& w : weights_)
    if (w.offset < offset) place -= SavedBy(w);
  return place;
}

const SumMap::Pair* Carriers::PairAt(size_t offset) const {
  for (size_t m = 0; m < weights_.size(); ++m)
    if (weights_[m].offset == offset && pairs_[m].rank() > 0) return &pairs_[m];
  return nullptr;
}

Status Carriers::Choose(uint64_t step, std::span<const float> parameters) {
  TACIT_CHECK(parameters.size() == parameters_, "sizes differ");
  for (size_t m = 0; m < weights_.size(); ++m) {
    if (pairs_[m].rank() == 0) continue;
    const auto coins = static_cast<uint32_t>(2 * m);
    DrawNormal(right_[m].view(), step, coins);
    if (options_.source == CarrierOptions::Source::kRandom) {
      DrawNormal(left_[m].view(), step, coins + 1);
      Orthonormalise(left_[m].view(), step, coins + 1);
    } else {
      TACIT_RETURN_IF_ERROR(ChooseHistorical(m, step, parameters));
    }
    Orthonormalise(right_[m].view(), step, coins);
  }
  return {};
}

// The power method of paper 004's algorithm 2: L = Delta R^T, made orthonormal; R = L^T Delta.
Status Carriers::ChooseHistorical(size_t m, uint64_t step, std::span<const float> parameters) {
  using ops::Transpose;
  const Weights& w = weights_[m];
  ops::ConstMatrix delta(parameters.data() + w.offset, w.in, w.out);
  if (step >= options_.warm_up_steps) {
    moved_.Reset(w.in, w.out);
    for (size_t i = 0; i < w.in; ++i) {
      const float* const now = delta.Row(i);
      const float* const then = initial_[m].data() + i * w.out;
      float* const out = moved_.view().Row(i);
      for (size_t j = 0; j < w.out; ++j) out[j] = now[j] - then[j];
    }
    delta = moved_.view();
  }
  const ops::Matrix left = left_[m].view(), right = right_[m].view();
  for (uint32_t k = 0; k < options_.power_steps; ++k) {
    TACIT_RETURN_IF_ERROR(backend_.Gemm(Transpose::kNo, right, Transpose::kYes, delta, 0, left));
    Orthonormalise(left, step, static_cast<uint32_t>(2 * m + 1));
    TACIT_RETURN_IF_ERROR(backend_.Gemm(Transpose::kNo, left, Transpose::kNo, delta, 0, right));
  }
  return {};
}

// Gram and Schmidt, twice, which leaves rows orthogonal to the last bits (Giraud and others, 2005).
void Carriers::Orthonormalise(ops::Matrix x, uint64_t step, uint32_t coins) {
  const size_t n = x.cols;
  rows_.resize(x.rows * n);
  for (size_t r = 0; r < x.rows; ++r) {
    double* const row = rows_.data() + r * n;
    for (uint32_t attempt = 0;; ++attempt) {
      std::copy_n(x.Row(r), n, row);
      const double whole = std::sqrt(Dot(row, row, n));
      for (int pass = 0; pass < 2; ++pass)
        for (size_t q = 0; q < r; ++q) {
          const double* const before = rows_.data() + q * n;
          Subtract(Dot(before, row, n), before, row, n);
        }
      const double rest = std::sqrt(Dot(row, row, n));
      if (std::isfinite(whole) && whole > 0 && rest > kLeftOver * whole) {
        for (size_t i = 0; i < n; ++i) row[i] /= rest;
        break;
      }
      TACIT_CHECK(attempt < 100, "random rows depend on each other");
      // Rows of coins beyond those of the matrix itself: none is drawn twice.
      const auto again = static_cast<uint32_t>(x.rows + r * 128 + attempt);
      DrawNormal(x.Rows(r, r + 1), step, (again << 12) + coins);
    }
    for (size_t i = 0; i < n; ++i) x.Row(r)[i] = static_cast<float>(row[i]);
  }
}

// Box and Muller, from public coins.
void Carriers::DrawNormal(ops::Matrix x, uint64_t step, uint32_t coins) const {
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed_),
                                       static_cast<uint32_t>(seed_ >> 32)};
  uint32_t call = 0;
  for (size_t r = 0; r < x.rows; ++r)
    for (size_t c = 0; c < x.cols; c += 4) {
      const auto words = Philox(
          {call++, coins, static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)}, key);
      for (size_t i = 0; i < 4 && c + i < x.cols; ++i) {
        const double u = (words[i & ~size_t{1}] + 0.5) * 0x1p-32;
        const double angle = 2 * std::numbers::pi * words[i | 1] * 0x1p-32;
        x.Row(r)[c + i] = static_cast<float>(std::sqrt(-2 * std::log(u)) *
                                             (i % 2 == 0 ? std::cos(angle) : std::sin(angle)));
      }
    }
}

Result<std::span<const float>> Carriers::Expand(std::span<const float> sum) {
  TACIT_CHECK(sum.size() == sum_size(), "sizes differ");
  gradient_.resize(parameters_);
  const std::span<float> gradient = gradient_;
  size_t from = 0, to = 0;
  for (size_t m = 0; m < weights_.size(); ++m) {
    const Weights& w = weights_[m];
    if (pairs_[m].rank() == 0) continue;
    std::copy_n(sum.data() + from, w.offset - to, gradient.data() + to);
    from += w.offset - to;
    const size_t numbers = pairs_[m].rank() * (w.in + w.out);
    TACIT_RETURN_IF_ERROR(
        ExpandMatrix(m, sum.subspan(from, numbers), gradient.subspan(w.offset, w.in * w.out)));
    from += numbers;
    to = w.offset + w.in * w.out;
  }
  std::copy_n(sum.data() + from, gradient.size() - to, gradient.data() + to);
  return gradient_;
}

// (dL) R + L (dR - (L^T dL) R): two thin products and two of inner size r.
Status Carriers::ExpandMatrix(size_t m, std::span<const float> sum, std::span<float> gradient) {
  using ops::Transpose;
  const Weights& w = weights_[m];
  const auto& [left, right] = pairs_[m];
  const size_t rank = pairs_[m].rank();
  const ops::ConstMatrix left_sum(sum.data(), w.in, rank);
  const ops::ConstMatrix right_sum(sum.data() + w.in * rank, rank, w.out);
  crossed_.Reset(rank, rank);
  corrected_.Reset(rank, w.out);
  const ops::Matrix crossed = crossed_.view(), corrected = corrected_.view();
  TACIT_RETURN_IF_ERROR(backend_.Gemm(Transpose::kNo, left, Transpose::kNo, left_sum, 0, crossed));
  TACIT_RETURN_IF_ERROR(
      backend_.Gemm(Transpose::kNo, crossed, Transpose::kNo, right, 0, corrected));
  for (size_t r = 0; r < rank; ++r) {
    float* const row = corrected.Row(r);
    for (size_t c = 0; c < w.out; ++c) row[c] = right_sum.Row(r)[c] - row[c];
  }
  const ops::Matrix out(gradient.data(), w.in, w.out);
  TACIT_RETURN_IF_ERROR(backend_.Gemm(Transpose::kNo, left_sum, Transpose::kNo, right, 0, out));
  return backend_.Gemm(Transpose::kYes, left, Transpose::kNo, corrected, 1, out);
}

}  // namespace tacit::model
