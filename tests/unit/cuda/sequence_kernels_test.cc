// The kernels of a sequence model against the reference of ops::UnitOps and the CPU's attention, in
// f32 and with factors of bf16.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cuda/kernels/dense/pointwise.h"
#include "cuda/kernels/reattention/variance.h"
#include "cuda/kernels/rows/ranks.h"
#include "cuda/kernels/sequence/attention.h"
#include "cuda/kernels/sequence/catalogue.h"
#include "cuda/kernels/sequence/dropout.h"
#include "cuda/kernels/sequence/layer_norm.h"
#include "cuda/kernels/sequence/packed_rows.h"
#include "cuda/kernels/sequence/unit_tiles.h"
#include "model/sequence/attention.h"
#include "model/sequence/coins.h"
#include "ops/bf16.h"
#include "ops/unit_ops.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

using ops::ConstMatrix;
using ops::Matrix;
using ops::Precision;
using ops::Transpose;

// Row-major numbers of the host.
struct Numbers {
  size_t rows = 0, cols = 0;
  std::vector<float> values;

  Matrix view() { return {values.data(), rows, cols}; }
  ConstMatrix view() const { return {values.data(), rows, cols}; }
  float& At(size_t r, size_t c) { return values[r * cols + c]; }
};

class SequenceKernels : public OnDevice {
 protected:
  Numbers Random(size_t rows, size_t cols) {
    Numbers numbers{rows, cols, {}};
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < rows * cols; ++i) numbers.values.push_back(normal(random_));
    return numbers;
  }
  static Numbers Zeros(size_t rows, size_t cols) {
    return {rows, cols, std::vector<float>(rows * cols, 0.0f)};
  }
  // Numbers on the device, as long as the test lives.
  DeviceMatrix<float> Upload(const Numbers& numbers) {
    floats_.push_back(ToDevice(numbers.values));
    const auto cols = static_cast<uint32_t>(numbers.cols);
    return {floats_.back().span().data, static_cast<uint32_t>(numbers.rows), cols, cols};
  }
  DeviceMatrix<uint16_t> Upload16(const Numbers& numbers) {
    std::vector<uint16_t> halves;
    for (const float x : numbers.values) halves.push_back(ops::ToBf16(x));
    halves_.push_back(ToDevice(halves));
    const auto cols = static_cast<uint32_t>(numbers.cols);
    return {halves_.back().span().data, static_cast<uint32_t>(numbers.rows), cols, cols};
  }
  template <class T>
  DeviceMatrix<T> UploadAs(const Numbers& numbers) {
    if constexpr (std::is_same_v<T, float>)
      return Upload(numbers);
    else
      return Upload16(numbers);
  }
  // The same with rows that begin at multiples of 16 bytes, and no numbers between them.
  template <class T>
  DeviceMatrix<T> UploadRows(const Numbers& numbers) {
    if constexpr (std::is_same_v<T, float>) return Upload(numbers);
    constexpr uint16_t kNoNumber = 0x7fc0;
    const size_t stride = (numbers.cols + 7) / 8 * 8;
    std::vector<uint16_t> halves(numbers.rows * stride, kNoNumber);
    for (size_t r = 0; r < numbers.rows; ++r)
      for (size_t c = 0; c < numbers.cols; ++c)
        halves[r * stride + c] = ops::ToBf16(numbers.values[r * numbers.cols + c]);
    if constexpr (!std::is_same_v<T, float>) {
      halves_.push_back(ToDevice(halves));
      return {halves_.back().span().data, static_cast<uint32_t>(numbers.rows),
              static_cast<uint32_t>(numbers.cols), stride};
    }
  }
  DeviceSpan<float> Vector(const std::vector<float>& values) {
    floats_.push_back(ToDevice(values));
    return floats_.back().span();
  }
  DeviceSpan<uint32_t> Ints(const std::vector<uint32_t>& values) {
    ints_.push_back(ToDevice(values));
    return ints_.back().span();
  }
  template <class T>
  std::vector<T> Read(const T* data, size_t n) {
    std::vector<T> values(n);
    EXPECT_TRUE(stream_->Download(DeviceSpan<const T>(data, n), std::span<T>(values)));
    EXPECT_TRUE(stream_->Synchronize());
    return values;
  }
  std::vector<float> Read(const DeviceMatrix<float>& x) {
    return Read<float>(x.data, size_t{x.rows} * x.cols);
  }
  std::vector<float> Read(const DeviceMatrix<uint16_t>& x) {
    std::vector<float> wide;
    for (const uint16_t half : Read<uint16_t>(x.data, size_t{x.rows} * x.cols))
      wide.push_back(ops::FromBf16(half));
    return wide;
  }
  static void ExpectNear(const std::vector<float>& got, const std::vector<float>& want,
                         double tolerance, const char* what) {
    ASSERT_EQ(got.size(), want.size()) << what;
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << what << " " << i;
  }
  void TearDown() override {
    floats_.clear(), halves_.clear(), ints_.clear();
    OnDevice::TearDown();
  }

  std::mt19937_64 random_{5};
  std::vector<Buffer<float>> floats_;
  std::vector<Buffer<uint16_t>> halves_;
  std::vector<Buffer<uint32_t>> ints_;
};

TEST_F(SequenceKernels, LayerNormIsTheReferences) {
  if (device_ == nullptr) return;
  const auto ops = ops::MakeReferenceUnitOps(Precision::kF32);
  for (const auto& [rows, cols] : {std::pair<size_t, size_t>{11, 40}, {5, 7}, {1, 64}}) {
    const Numbers x = Random(rows, cols), grad = Random(rows, cols);
    const std::vector<float> gain = Random(1, cols).values, bias = Random(1, cols).values;
    Numbers normal = Zeros(rows, cols), out = Zeros(rows, cols);
    std::vector<float> inverse(rows);
    ops->LayerNorm(x.view(), gain, bias, 1e-5f, normal.view(), inverse, out.view());
    const auto on_normal = Upload(Zeros(rows, cols)), on_out = Upload(x);
    const auto on_gain = Vector(gain), on_inverse = Vector(std::vector<float>(rows));
    ASSERT_TRUE(
        LayerNorm(*stream_, on_out, on_gain, Vector(bias), 1e-5f, on_normal, on_inverse, on_out));
    ExpectNear(Read(on_normal), normal.values, 1e-6, "normal");
    ExpectNear(Read(on_out), out.values, 1e-6, "out");
    ExpectNear(Read<float>(on_inverse.data, rows), inverse, 1e-6, "inverse");

    // Two units: the first has all rows but the last, the second one.
    const auto last = static_cast<uint32_t>(rows - 1), all = static_cast<uint32_t>(rows);
    const auto on_grad = Upload(grad), of_units = Upload(Zeros(2, 2 * cols));
    ASSERT_TRUE(LayerNormUnitGradients(*stream_, Ints({last, all}), on_normal, on_grad, of_units));
    ASSERT_TRUE(LayerNormBackward(*stream_, on_normal, on_inverse, on_gain, on_grad));
    Numbers want_grad = grad, want_units = Zeros(2, 2 * cols);
    for (const auto& [unit, first, end] :
         {std::tuple<size_t, size_t, size_t>{0, 0, last}, {1, last, all}}) {
      const std::span<float> of_unit = std::span(want_units.values).subspan(unit * 2 * cols);
      ops->LayerNormBackward(
          normal.view().Rows(first, end), std::span(inverse).subspan(first, end - first), gain,
          want_grad.view().Rows(first, end), of_unit.first(cols), of_unit.subspan(cols, cols));
    }
    ExpectNear(Read(of_units), want_units.values, 1e-5, "units' gradients");
    ExpectNear(Read(on_grad), want_grad.values, 1e-5, "gradient");
  }
}

// A sum before a norm and factors behind it have the bits of the loops.
TEST_F(SequenceKernels, WhatIsDoneAlongANormHasTheLoopsBits) {
  if (device_ == nullptr) return;
  for (const auto& [rows, cols] : {std::pair<size_t, size_t>{11, 40}, {5, 7}, {1, 64}}) {
    const Numbers x = Random(rows, cols), plus = Random(rows, cols), grad = Random(rows, cols);
    const auto gain = Vector(Random(1, cols).values), bias = Vector(Random(1, cols).values);
    const auto inverse = Vector(std::vector<float>(rows));
    const auto normal = Upload(Zeros(rows, cols)), on_plus = Upload(plus);
    const auto loops = Upload(x), along = Upload(x), normal_along = Upload(Zeros(rows, cols));
    const auto factor = Upload16(Zeros(rows, cols)), factor_along = Upload16(Zeros(rows, cols));
    ASSERT_TRUE(AddMatrix(*stream_, on_plus, loops));
    ASSERT_TRUE(LayerNorm(*stream_, loops, gain, bias, 1e-5f, normal, inverse, loops));
    ASSERT_TRUE(AddBias<uint16_t>(*stream_, loops, {}, false, factor));
    ASSERT_TRUE(LayerNorm(*stream_, along, gain, bias, 1e-5f, normal_along, inverse, along,
                          {.plus = on_plus, .rounded = factor_along}));
    EXPECT_EQ(Read(along), Read(loops));
    EXPECT_EQ(Read(normal_along), Read(normal));
    EXPECT_EQ(Read(factor_along), Read(factor));
    const auto back = Upload(grad), back_along = Upload(grad);
    ASSERT_TRUE(LayerNormBackward(*stream_, normal, inverse, gain, back));
    ASSERT_TRUE(AddBias<uint16_t>(*stream_, back, {}, false, factor));
    ASSERT_TRUE(LayerNormBackward(*stream_, normal, inverse, gain, back_along, factor_along));
    EXPECT_EQ(Read(back_along), Read(back));
    EXPECT_EQ(Read(factor_along), Read(factor));
  }
}

TEST_F(SequenceKernels, AttentionIsTheCpus) {
  if (device_ == nullptr) return;
  const std::vector<uint32_t> crop_end = {7, 8, 45};
  constexpr uint32_t kRows = 45, kWidth = 12, kLongest = 37;
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    for (const uint32_t heads : {1u, 3u}) {
      const auto ops = ops::MakeReferenceUnitOps(precision);
      model::CausalAttention host(kWidth, heads, *ops);
      const Numbers qkv = Random(kRows, 3 * kWidth), grad = Random(kRows, kWidth);
      Numbers out = Zeros(kRows, kWidth), qkv_grad = Zeros(kRows, 3 * kWidth);
      ASSERT_TRUE(host.Forward(crop_end, qkv.view(), {}, {}, out.view()));
      // Some corrections are at their most.
      const model::ReAttentionOptions options{.kappa = 0.7f, .most = 1.5f};
      Numbers variance = Random(kRows, kWidth), corrected = out, of_out = out;
      for (float& v : variance.values) v *= v;
      model::CausalAttention correcting(kWidth, heads, *ops);
      ASSERT_TRUE(
          correcting.Forward(crop_end, qkv.view(), options, variance.view(), corrected.view()));
      ASSERT_TRUE(correcting.Variance(crop_end, variance.view(), of_out.view()));
      ASSERT_TRUE(host.Backward(crop_end, qkv.view(), grad.view(), qkv_grad.view()));
      const AttentionShape shape{.crop_end = Ints(crop_end),
                                 .longest = kLongest,
                                 .heads = heads,
                                 .rounds = precision == Precision::kBf16};
      AttentionShape correcting_shape = shape;
      correcting_shape.corrected = true;
      std::vector<float> first;
      for (int order = 0; order < Orders() / 4 + 1; ++order) {
        NextOrder(order);
        const auto on_qkv = Upload(qkv), on_out = Upload(Zeros(kRows, kWidth));
        const auto kept = Upload(Zeros(heads * kRows, KeptNumbers(shape, kWidth)));
        const auto shares = Upload(Zeros(heads * kRows, kLongest));
        const auto work = Upload(Zeros(heads * kRows, kLongest));
        const auto on_qkv_grad = Upload(Zeros(kRows, 3 * kWidth));
        ASSERT_TRUE(Attend(*stream_, shape, on_qkv, {}, kept, on_out));
        ASSERT_TRUE(AttendBackward(*stream_, shape, on_qkv, kept, Upload(grad), work, on_qkv_grad));
        // A share of bf16 may be rounded the other way.
        const double tolerance = precision == Precision::kBf16 ? 1e-2 : 1e-5;
        ExpectNear(Read(on_out), out.values, tolerance, "out");
        const auto on_variance = Upload(variance), on_of_out = Upload(Zeros(kRows, kWidth));
        const AttentionCorrection correction{
            .key_variance = on_variance,
            .factor = options.kappa / (2 * static_cast<float>(kWidth / heads)),
            .most = options.most};
        ASSERT_TRUE(Attend(*stream_, correcting_shape, on_qkv, correction, shares, on_out));
        ASSERT_TRUE(AttendVariance(*stream_, correcting_shape, shares, on_variance, on_of_out));
        ExpectNear(Read(on_out), corrected.values, tolerance, "corrected");
        ExpectNear(Read(on_of_out), of_out.values, tolerance, "variance");
        ExpectNear(Read(on_qkv_grad), qkv_grad.values, tolerance, "gradient");
        auto got = Read(on_qkv_grad);
        if (order == 0) first = got;
        ASSERT_EQ(got, first) << "order " << order;
      }
    }
  }
}

TEST_F(SequenceKernels, ExponentialsAndStatesAreTheReferences) {
  if (device_ == nullptr) return;
  constexpr size_t kRows = 9, kItems = 150, kWidth = 10;
  const auto ops = ops::MakeReferenceUnitOps(Precision::kF32);
  const Numbers logits = Random(kRows, kItems), states = Random(kRows, kWidth);
  const Numbers table = Random(kItems, kWidth), products = Random(kRows, kWidth);
  const std::vector<float> bias = Random(1, kItems).values;
  std::vector<float> weight(kRows);
  std::vector<uint32_t> target(kRows);
  for (size_t r = 0; r < kRows; ++r) {
    weight[r] = 1 / (1 + static_cast<float>(r));
    target[r] = static_cast<uint32_t>(random_() % kItems);
  }
  Numbers want = logits;
  std::vector<ops::ExpRow> rows(kRows);
  ops->ExpRows(bias, want.view(), rows);
  const PredictedRows predicted{Ints(target), Vector(weight)};
  const auto on_logits = Upload(logits);
  const auto loss = Vector(std::vector<float>(kRows)), factor = Vector(std::vector<float>(kRows)),
             minus_sum = Vector(std::vector<float>(kRows));
  const auto check = [&]<class T>(T, double tolerance) {
    const auto e = UploadAs<T>(Zeros(kRows, kItems)), scaled = UploadAs<T>(Zeros(kRows, kWidth));
    ASSERT_TRUE(
        ExpRows<T>(*stream_, on_logits, Vector(bias), predicted, e, {loss, factor, minus_sum}));
    ExpectNear(Read(e), want.values, tolerance, "e");
    const auto got_loss = Read<float>(loss.data, kRows);
    const auto got_factor = Read<float>(factor.data, kRows);
    const auto got_sum = Read<float>(minus_sum.data, kRows);
    for (size_t r = 0; r < kRows; ++r) {
      const double logit = logits.values[r * kItems + target[r]] + bias[target[r]];
      EXPECT_NEAR(got_loss[r], weight[r] * (rows[r].max + std::log(rows[r].sum) - logit), 1e-6);
      EXPECT_NEAR(got_sum[r], -rows[r].sum, 1e-5 * rows[r].sum);
      EXPECT_NEAR(got_factor[r], weight[r] / rows[r].sum, 1e-6 * got_factor[r]);
    }
    ASSERT_TRUE(ScaleStates<T>(*stream_, factor, Upload(states), scaled));
    const auto on_products = Upload(products);
    ASSERT_TRUE(StateGradients<T>(*stream_, predicted, factor, UploadAs<T>(table), on_products));
    Numbers want_scaled = states, want_gradient = products;
    for (size_t r = 0; r < kRows; ++r)
      for (size_t c = 0; c < kWidth; ++c) {
        want_scaled.At(r, c) *= got_factor[r];
        want_gradient.At(r, c) = got_factor[r] * products.values[r * kWidth + c] -
                                 weight[r] * table.values[target[r] * kWidth + c];
      }
    ExpectNear(Read(scaled), want_scaled.values, tolerance, "scaled states");
    ExpectNear(Read(on_products), want_gradient.values, tolerance, "states' gradients");
  };
  check(float{}, 1e-6);
  check(uint16_t{}, 1e-2);
}

TEST_F(SequenceKernels, DroppedNumbersAreTheCpusBitForBit) {
  if (device_ == nullptr) return;
  // The second unit has no row.
  const std::vector<uint32_t> end = {3, 3, 11};
  const std::vector<uint64_t> ids = {7, 8, (uint64_t{5} << 32) + 9};
  for (const uint32_t cols : {8u, 13u}) {
    const Numbers x = Random(11, cols);
    Numbers want = x;
    model::DropoutCoins coins{.seed = 0x123456789abcdef, .unit = 0, .rate = 0.3f};
    for (size_t u = 0; u < ids.size(); ++u) {
      const size_t first = u == 0 ? 0 : end[u - 1];
      if (first == end[u]) continue;
      coins.unit = ids[u];
      Numbers factors = Zeros(end[u] - first, cols);
      coins.Draw(4, factors.view());
      for (int twice = 0; twice < 2; ++twice)
        model::Multiply(factors.view(), want.view().Rows(first, end[u]));
    }
    const auto on_x = Upload(x);
    ASSERT_TRUE(DropNumbers(*stream_,
                            {.seed = coins.seed,
                             .kept = coins.kept(),
                             .factor = coins.factor(),
                             .unit_end = Ints(end),
                             .id_low = Ints({7, 8, 9}),
                             .id_high = Ints({0, 0, 5})},
                            4, 2, on_x));
    EXPECT_EQ(Read(on_x), want.values);
  }
}

TEST_F(SequenceKernels, VariancesOfReluAreTheReferences) {
  if (device_ == nullptr) return;
  const auto ops = ops::MakeReferenceUnitOps(Precision::kF32);
  const Numbers mean = Random(9, 30);
  Numbers variance = Random(9, 30);
  for (float& v : variance.values) v = v < 0 ? 0 : v * v;
  Numbers want = variance;
  ops->ReluVariance(mean.view(), want.view());
  const auto on_variance = Upload(variance);
  ASSERT_TRUE(ReluVariance(*stream_, Upload(mean), on_variance));
  ExpectNear(Read(on_variance), want.values, 1e-6, "variance");
}

// Units' gradients of a table, formed in double.
class UnitTables : public SequenceKernels {
 protected:
  // More units than a block sums, and with kOthers more tables than a launch takes.
  static constexpr size_t kUnits = 19, kItems = 70, kWidth = 9, kOthers = 13;
  // Rows that predict, and rows that read; the third unit has none.
  std::vector<uint32_t> ends_ = {5, 24, 24, 30}, input_ends_ = {6, 30, 30, 37};

  UnitTables() {
    while (ends_.size() < kUnits) {
      ends_.push_back(ends_.back() + 1 + ends_.size() % 3);
      input_ends_.push_back(input_ends_.back() + 1 + ends_.size() % 2);
    }
  }

  template <class T>
  void Check(bool ones, bool product, double tolerance) {
    const size_t rows = ends_.back(), inputs = input_ends_.back();
    const size_t table_rows = kItems + (ones ? 1 : 0);
    // Rounds to what T can hold.
    const auto as_t = [](Numbers numbers) {
      if (std::is_same_v<T, uint16_t>)
        for (float& x : numbers.values) x = ops::FromBf16(ops::ToBf16(x));
      return numbers;
    };
    const Numbers a = as_t(Random(rows, kItems)), g = as_t(Random(rows, kWidth));
    const Numbers read = Random(inputs, kWidth);
    const std::vector<float> factor = Random(1, rows).values;
    std::vector<uint32_t> target(rows), item(inputs);
    for (uint32_t& place : target) place = static_cast<uint32_t>(random_() % kItems);
    for (uint32_t& place : item) place = static_cast<uint32_t>(random_() % kItems);
    target[3] = item[8] = kNone;
    std::vector<std::vector<double>> want(kUnits, std::vector<double>(table_rows * kWidth, 0.0));
    const auto first_of = [](const std::vector<uint32_t>& ends, size_t u) {
      return u == 0 ? 0u : ends[u - 1];
    };
    for (size_t u = 0; u < kUnits; ++u) {
      for (uint32_t r = first_of(ends_, u); r < ends_[u]; ++r)
        for (size_t c = 0; c < kWidth; ++c) {
          const double of_g = g.values[r * kWidth + c];
          for (size_t m = 0; product && m < kItems; ++m)
            want[u][m * kWidth + c] += double{a.values[r * kItems + m]} * of_g;
          if (product && ones) want[u][kItems * kWidth + c] += of_g;
          if (target[r] != kNone) want[u][target[r] * kWidth + c] += double{factor[r]} * of_g;
        }
      for (uint32_t r = first_of(input_ends_, u); r < input_ends_[u]; ++r)
        for (size_t c = 0; c < kWidth && item[r] != kNone; ++c)
          want[u][item[r] * kWidth + c] += 3.0 * read.values[r * kWidth + c];
    }
    UnitTable<T> table{.rows = static_cast<uint32_t>(table_rows), .cols = kWidth};
    // Further tables, so that several are of one launch: g^T g.
    std::vector<std::vector<double>> want_other(kUnits, std::vector<double>(kWidth * kWidth, 0.0));
    for (size_t u = 0; u < kUnits; ++u)
      for (uint32_t r = first_of(ends_, u); r < ends_[u]; ++r)
        for (size_t i = 0; i < kWidth * kWidth; ++i)
          want_other[u][i] +=
              double{g.values[r * kWidth + i / kWidth]} * g.values[r * kWidth + i % kWidth];
    const auto ends = Ints(ends_);
    UnitTable<T> other{.rows = kWidth, .cols = kWidth, .unit_end = ends};
    other.a = other.g = UploadRows<T>(g);
    if (product) {
      table.unit_end = ends;
      table.a = UploadRows<T>(a);
      table.g = UploadRows<T>(g);
      table.ones = ones;
    }
    table.own = {
        .unit_end = ends, .place = Ints(target), .from = UploadAs<T>(g), .factor = Vector(factor)};
    table.input = {.unit_end = Ints(input_ends_),
                   .place = Ints(item),
                   .from = Upload(read),
                   .factor = {},
                   .each = 3};
    // A scale of 0 leaves a unit out, with any numbers.
    std::vector<float> scale = {0.5f, 0.25f, 1, 0};
    while (scale.size() < kUnits) scale.push_back(scale.size() == 17 ? 0 : 0.75f);
    constexpr double kStep = 0x1p-10;
    std::vector<int64_t> first;
    for (int order = 0; order < Orders() / 4 + 1; ++order) {
      NextOrder(order);
      const auto squared = ToDevice(std::vector<double>(kUnits, 100));
      const auto sums = ToDevice(std::vector<int64_t>(table_rows * kWidth, 7));
      table.sums = sums.span();
      std::vector<UnitTable<T>> tables = {table};
      std::vector<Buffer<int64_t>> other_sums;
      for (size_t i = 0; i < kOthers; ++i) {
        other_sums.push_back(ToDevice(std::vector<int64_t>(kWidth * kWidth, 0)));
        other.sums = other_sums.back().span();
        tables.push_back(other);
      }
      const auto work = Make<double>(UnitTableWork<T>(tables, kUnits));
      ASSERT_TRUE(AddUnitTableNorms<T>(*stream_, tables, work.span(), squared.span()));
      ASSERT_TRUE(AddUnitTables<T>(*stream_, tables, Vector(scale), kStep));
      const auto got = FromDevice(sums);
      const auto got_squared = FromDevice(squared);
      for (size_t u = 0; u < kUnits; ++u) {
        double norm = 100;
        for (const double x : want[u]) norm += x * x;
        for (const double x : want_other[u]) norm += kOthers * x * x;
        EXPECT_NEAR(got_squared[u], norm, 1e-6 * norm) << "unit " << u;
      }
      const auto expect_sums = [&](const std::vector<int64_t>& is, int64_t before,
                                   const std::vector<std::vector<double>>& gradients) {
        for (size_t i = 0; i < is.size(); ++i) {
          double sum = 0, size = 0;
          for (size_t u = 0; u < kUnits; ++u) {
            const double steps = scale[u] * gradients[u][i] / kStep;
            sum += std::nearbyint(steps);
            size += std::abs(steps);
          }
          // A float's rounding may go the other way.
          ASSERT_NEAR(static_cast<double>(is[i]), static_cast<double>(before) + sum,
                      tolerance * size + 1)
              << "number " << i;
        }
      };
      expect_sums(got, 7, want);
      for (const Buffer<int64_t>& one : other_sums) expect_sums(FromDevice(one), 0, want_other);
      if (order == 0) first = got;
      ASSERT_EQ(got, first) << "order " << order;
    }
  }
};

TEST_F(UnitTables, AreFormedForNormsAndSums) {
  if (device_ == nullptr) return;
  Check<float>(false, true, 1e-6);
  Check<float>(true, true, 1e-6);
  Check<float>(false, false, 1e-6);
  Check<uint16_t>(false, true, 1e-6);
  Check<uint16_t>(true, true, 1e-6);
}

TEST_F(UnitTables, VectorsAreAddedInSteps) {
  if (device_ == nullptr) return;
  const Numbers of_units = Random(kUnits, 33);
  std::vector<float> scale = {1, 0, 0.5f, 0.125f, 1};
  while (scale.size() < kUnits) scale.push_back(scale.size() == 17 ? 0 : 0.25f);
  const auto squared = ToDevice(std::vector<double>(kUnits, 2));
  const auto sums = ToDevice(std::vector<int64_t>(33, -3));
  const auto on_device = Upload(of_units);
  ASSERT_TRUE(AddUnitVectorNorms(*stream_, on_device, squared.span()));
  ASSERT_TRUE(AddUnitVectors(*stream_, on_device, Vector(scale), 0x1p-8, sums.span()));
  const auto got = FromDevice(sums);
  const auto got_squared = FromDevice(squared);
  const auto ops = ops::MakeReferenceUnitOps(Precision::kF32);
  std::vector<int64_t> want(33, -3);
  for (size_t u = 0; u < kUnits; ++u) {
    const std::span<const float> row = std::span(of_units.values).subspan(u * 33, 33);
    ops->AddRounded(scale[u] * 0x1p8f, row, want);
    EXPECT_NEAR(got_squared[u], 2 + ops->SquaredNorm(row), 1e-12);
  }
  EXPECT_EQ(got, want);
}

}  // namespace
}  // namespace tacit::cuda::testing
