// The promises of every ops::Backend, held against float64 loops. One suite for all of them:
// subjects.h names those of a program.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>
#include <vector>

#include "contract/subjects.h"
#include "ops/backend.h"
#include "ops/bf16.h"

namespace tacit::ops {
namespace {

constexpr float kSentinel = 12345.0f;
constexpr Bf16 kSentinel16 = 0x4321;

// A matrix with `gap` unused columns, filled with sentinels that must survive.
template <class T>
struct Store {
  std::vector<T> values;
  MatrixView<T> view;
  size_t gap;

  Store(size_t rows, size_t cols, size_t gap_cols)
      : values(rows * (cols + gap_cols), Sentinel()), gap(gap_cols) {
    view = {values.data(), rows, cols, cols + gap_cols};
  }
  static T Sentinel() {
    if constexpr (std::is_same_v<T, float>) return kSentinel;
    return kSentinel16;
  }
  void ExpectGapUntouched() const {
    for (size_t r = 0; r < view.rows; ++r)
      for (size_t c = view.cols; c < view.stride; ++c)
        ASSERT_EQ(values[r * view.stride + c], Sentinel()) << "wrote behind row " << r;
  }
};

double Number(float x) { return x; }
double Number(Bf16 x) { return FromBf16(x); }
void Set(float* to, float x) { *to = x; }
void Set(Bf16* to, float x) { *to = ToBf16(x); }

class BackendContract : public ::testing::TestWithParam<Subject> {
 protected:
  BackendContract() : workers_({GetParam().workers, false}), backend_(GetParam().make(workers_)) {}
  void SetUp() override {
    if (backend_ != nullptr) return;
    // A test that has failed is not skipped any more, and would go on without a device.
    if (HasFailure()) FAIL() << "there is no device to run it on";
    GTEST_SKIP() << "there is no device to run it on";
  }

  template <class T>
  Store<T> Random(size_t rows, size_t cols, size_t gap = 0) {
    Store<T> store(rows, cols, gap);
    std::normal_distribution<float> normal;
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < cols; ++c) Set(store.view.Row(r) + c, normal(random_));
    return store;
  }
  std::vector<float> RandomVector(size_t n) { return Random<float>(1, n).values; }

  template <class T>
  void CheckGemm(size_t m, size_t n, size_t k, bool ta, bool tb, float beta, size_t gap);
  template <class T>
  void CheckAllGemms();
  template <class T>
  void CheckBlockSums(size_t rows, size_t cols_a, size_t cols_g, size_t gap);
  template <class T>
  void CheckRowsApart(size_t cols, size_t out, bool transposed);
  template <class T>
  void CheckUnitNorms(const std::vector<uint32_t>& unit_end, bool cancelling);
  template <class T>
  void CheckFarNorms();

  Status DoGemm(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta, Matrix c) {
    return backend_->Gemm(ta, a, tb, b, beta, c);
  }
  Status DoGemm(Transpose ta, ConstMatrix16 a, Transpose tb, ConstMatrix16 b, float beta,
                Matrix c) {
    return backend_->Gemm16(ta, a, tb, b, beta, c);
  }
  Status DoBlockSums(const SumPieces& pieces, ConstMatrix a, ConstMatrix g, double per_step,
                     MatrixView<int64_t> sums) {
    return backend_->AddBlockSums(pieces, a, g, per_step, sums);
  }
  Status DoBlockSums(const SumPieces& pieces, ConstMatrix16 a, ConstMatrix16 g, double per_step,
                     MatrixView<int64_t> sums) {
    return backend_->AddBlockSums16(pieces, a, g, per_step, sums);
  }
  void DoUnitNorms(std::span<const uint32_t> end, ConstMatrix a, ConstMatrix g,
                   std::span<float> out) {
    backend_->UnitSquaredNorms(end, a, g, out);
  }
  void DoUnitNorms(std::span<const uint32_t> end, ConstMatrix16 a, ConstMatrix16 g,
                   std::span<float> out) {
    backend_->UnitSquaredNorms16(end, a, g, out);
  }

  std::mt19937_64 random_{20240607};
  WorkerPool workers_;
  std::unique_ptr<Backend> backend_;
};

template <class T>
void BackendContract::CheckGemm(size_t m, size_t n, size_t k, bool ta, bool tb, float beta,
                                size_t gap) {
  SCOPED_TRACE(::testing::Message() << m << " x " << n << " x " << k << " ta " << ta << " tb " << tb
                                    << " beta " << beta << " gap " << gap);
  const auto a = ta ? Random<T>(k, m, gap) : Random<T>(m, k, gap);
  const auto b = tb ? Random<T>(n, k, gap) : Random<T>(k, n, gap);
  auto c = Random<float>(m, n, gap);
  // With beta 0 the old content must not matter, not even as a NaN.
  if (beta == 0)
    for (size_t r = 0; r < m; ++r)
      for (size_t i = 0; i < n; ++i) c.view.Row(r)[i] = std::nanf("");
  const auto before = c.values;
  ASSERT_TRUE(DoGemm(ta ? Transpose::kYes : Transpose::kNo, MatrixView<const T>(a.view),
                     tb ? Transpose::kYes : Transpose::kNo, MatrixView<const T>(b.view), beta,
                     c.view));
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      double sum = beta == 0 ? 0 : before[i * c.view.stride + j], size = std::abs(sum);
      for (size_t x = 0; x < k; ++x) {
        const double product = Number(ta ? a.view.Row(x)[i] : a.view.Row(i)[x]) *
                               Number(tb ? b.view.Row(j)[x] : b.view.Row(x)[j]);
        sum += product;
        size += std::abs(product);
      }
      ASSERT_NEAR(c.view.Row(i)[j], sum, 2e-6 * size + 1e-30) << i << ", " << j;
    }
  }
  c.ExpectGapUntouched();
}

template <class T>
void BackendContract::CheckAllGemms() {
  const size_t shapes[][3] = {{1, 1, 1},   {1, 17, 5},   {33, 1, 40},   {7, 5, 3},   {64, 48, 32},
                              {65, 31, 1}, {20, 100, 9}, {130, 67, 71}, {3, 150, 33}};
  for (const auto& s : shapes)
    for (int way = 0; way < 8; ++way)
      for (size_t gap : {0, 3})
        CheckGemm<T>(s[0], s[1], s[2], way & 1, way & 2, way & 4 ? 1.0f : 0.0f, gap);
}

TEST_P(BackendContract, GemmMatchesLoops) { CheckAllGemms<float>(); }
TEST_P(BackendContract, Gemm16MatchesLoops) { CheckAllGemms<Bf16>(); }

// Pieces and blocks of random sizes, some of them empty.
SumPieces RandomPieces(size_t rows, std::mt19937_64& random) {
  SumPieces pieces;
  for (uint32_t end = 0; end < rows || pieces.closes.empty() || pieces.closes.back() == 0;) {
    end = std::min<uint32_t>(static_cast<uint32_t>(rows), end + random() % 40);
    pieces.end.push_back(end);
    pieces.closes.push_back(random() % 3 > 0 || end == rows ? 1 : 0);
  }
  return pieces;
}

template <class T>
void BackendContract::CheckBlockSums(size_t rows, size_t cols_a, size_t cols_g, size_t gap) {
  SCOPED_TRACE(::testing::Message() << rows << " rows, " << cols_a << " x " << cols_g);
  constexpr double kPerStep = 0x1p20;
  const auto a = Random<T>(rows, cols_a, gap), g = Random<T>(rows, cols_g, gap);
  const SumPieces pieces = RandomPieces(rows, random_);
  std::vector<int64_t> before(cols_a * (cols_g + gap));
  for (int64_t& sum : before) sum = static_cast<int64_t>(random_() % 1000);
  std::vector<int64_t> sums = before;
  ASSERT_TRUE(DoBlockSums(pieces, MatrixView<const T>(a.view), MatrixView<const T>(g.view),
                          1 / kPerStep, {sums.data(), cols_a, cols_g, cols_g + gap}));
  for (size_t i = 0; i < cols_a; ++i) {
    for (size_t j = 0; j < cols_g + gap; ++j) {
      const size_t at = i * (cols_g + gap) + j;
      double want = 0, size = 0, block = 0;
      for (size_t piece = 0, r = 0; j < cols_g && piece < pieces.end.size(); ++piece) {
        for (; r < pieces.end[piece]; ++r) {
          const double product = Number(a.view.Row(r)[i]) * Number(g.view.Row(r)[j]);
          block += product * kPerStep;
          size += std::abs(product) * kPerStep;
        }
        if (pieces.closes[piece] == 0) continue;
        want += std::nearbyint(block);
        block = 0;
      }
      ASSERT_NEAR(static_cast<double>(sums[at] - before[at]), want, 2e-6 * size + 0.5) << i << j;
    }
  }
}

TEST_P(BackendContract, BlockSumsMatchLoops) {
  const size_t shapes[][3] = {{0, 3, 2}, {1, 1, 1}, {33, 5, 7}, {300, 65, 33}, {700, 30, 1}};
  for (const auto& s : shapes)
    for (const size_t gap : {0, 3}) {
      CheckBlockSums<float>(s[0], s[1], s[2], gap);
      CheckBlockSums<Bf16>(s[0], s[1], s[2], gap);
    }
}

// On a grid as coarse as the sums every block's rounding shows: it is one a block, to the nearest.
TEST_P(BackendContract, ABlockIsRoundedOnce) {
  const std::vector<float> ones(6, 1.0f), thirds(6, 0.3f);
  const auto sum = [&](const SumPieces& pieces) {
    int64_t total = 0;
    EXPECT_TRUE(backend_->AddBlockSums(pieces, ConstMatrix(ones.data(), 6, 1),
                                       ConstMatrix(thirds.data(), 6, 1), 1, {&total, 1, 1}));
    return total;
  };
  EXPECT_EQ(sum({{6}, {1}}), 2);                    // 1.8
  EXPECT_EQ(sum({{2, 4, 6}, {1, 1, 1}}), 3);        // .6 three times
  EXPECT_EQ(sum({{1, 2, 4, 6}, {0, 1, 0, 1}}), 2);  // .6 and 1.2
}

// A row of a product is the same to the last bit beside any other rows.
template <class T>
void BackendContract::CheckRowsApart(size_t cols, size_t out, bool transposed) {
  constexpr size_t kRows = 10 * kRowGrain;
  const auto a = Random<T>(kRows, cols),
             b = transposed ? Random<T>(out, cols) : Random<T>(cols, out);
  const auto product = [&](size_t first, size_t rows) {
    Store<float> c(rows, out, 0);
    EXPECT_TRUE(DoGemm(Transpose::kNo, MatrixView<const T>(a.view).Rows(first, first + rows),
                       transposed ? Transpose::kYes : Transpose::kNo, MatrixView<const T>(b.view),
                       0, c.view));
    return c.values;
  };
  const std::vector<float> all = product(0, kRows);
  for (const size_t grains : {1, 2, 3, 5, 8}) {
    const size_t rows = grains * kRowGrain;
    for (const size_t first : {size_t{0}, size_t{1}, size_t{13}, kRows - rows}) {
      const std::vector<float> some = product(first, rows);
      ASSERT_TRUE(
          std::equal(some.begin(), some.end(), all.begin() + static_cast<ptrdiff_t>(first * out)))
          << rows << " rows from " << first << " of " << cols << " x " << out << ", " << transposed;
    }
  }
}

TEST_P(BackendContract, ARowOfAProductDependsOnNoOtherRow) {
  // The library has other code for few rows than for many where these are wide, too.
  const size_t shapes[][2] = {{598, 598}, {598, 1}, {64, 32},     {32, 1},     {13, 64},
                              {221, 256}, {7, 3},   {1121, 1005}, {1107, 113}, {35, 1100}};
  const bool slow =
      std::string(backend_->name()) == "reference" || std::string(backend_->name()) == "device";
  for (const auto& s : shapes) {
    if (slow && s[0] * s[1] > 5000) continue;  // a device is emulated
    for (const bool transposed : {false, true}) {
      CheckRowsApart<float>(s[0], s[1], transposed);
      CheckRowsApart<Bf16>(s[0], s[1], transposed);
    }
  }
}

TEST_P(BackendContract, GemmOfNothingIsZeroOrWhatWasThere) {
  float c[6] = {1, 2, 3, 4, 5, 6};
  const Matrix view(c, 2, 3);
  ASSERT_TRUE(backend_->Gemm(Transpose::kNo, ConstMatrix(nullptr, 2, 0), Transpose::kNo,
                             ConstMatrix(nullptr, 0, 3, 3), 1, view));
  EXPECT_EQ(c[5], 6);
  ASSERT_TRUE(backend_->Gemm16(Transpose::kYes, ConstMatrix16(nullptr, 0, 2), Transpose::kNo,
                               ConstMatrix16(nullptr, 0, 3), 0, view));
  for (float x : c) EXPECT_EQ(x, 0);
  EXPECT_TRUE(backend_->Gemm(Transpose::kNo, ConstMatrix(nullptr, 0, 4), Transpose::kNo,
                             ConstMatrix(c, 4, 1), 0, Matrix(nullptr, 0, 1)));
}

TEST_P(BackendContract, GemmRefusesShapesThatDiffer) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto a = Random<float>(2, 3), b = Random<float>(4, 5), c = Random<float>(2, 5);
  EXPECT_DEATH((void)backend_->Gemm(Transpose::kNo, a.view, Transpose::kNo, b.view, 0, c.view),
               "shapes");
}

// Bit patterns from the definition: the upper half, nearest, ties to even.
TEST_P(BackendContract, Round16IsNearestEven) {
  const std::pair<uint32_t, Bf16> cases[] = {
      {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80},
      {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82}, {0x3f817fff, 0x3f81}, {0xbf818000, 0xbf82},
      {0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x7f7fffff, 0x7f80}, {0x00000001, 0x0000},
      {0x00018000, 0x0002}, {0x007fffff, 0x0080}, {0x3fffffff, 0x4000}};
  for (size_t cols : {1, 15, 17, 40}) {
    Store<float> in(3, cols, 2);
    Store<Bf16> out(3, cols, 1);
    size_t at = 0;
    for (size_t r = 0; r < 3; ++r)
      for (size_t c = 0; c < cols; ++c)
        in.view.Row(r)[c] = std::bit_cast<float>(cases[at++ % std::size(cases)].first);
    backend_->Round16(in.view, out.view);
    at = 0;
    for (size_t r = 0; r < 3; ++r)
      for (size_t c = 0; c < cols; ++c, ++at)
        ASSERT_EQ(out.view.Row(r)[c], cases[at % std::size(cases)].second)
            << std::hex << cases[at % std::size(cases)].first;
    out.ExpectGapUntouched();
  }
  float nan = std::bit_cast<float>(0x7f800001u);  // its payload is all in the lower half
  Bf16 rounded = 0;
  backend_->Round16(ConstMatrix(&nan, 1, 1), Matrix16(&rounded, 1, 1));
  EXPECT_TRUE(std::isnan(FromBf16(rounded)));
}

TEST_P(BackendContract, AddBiasAddsThenCutsAtZero) {
  for (size_t cols : {0, 1, 7, 33}) {
    for (bool relu : {false, true}) {
      for (bool with_bias : {false, true}) {
        auto x = Random<float>(5, cols, 2);
        if (cols > 0) x.view.Row(2)[0] = std::nanf("");
        const auto bias = with_bias ? RandomVector(cols) : std::vector<float>();
        const auto before = x.values;
        Store<Bf16> rounded(5, cols, 1);
        backend_->AddBias16(x.view, bias, relu, rounded.view);
        backend_->AddBias(x.view, bias, relu);
        for (size_t r = 0; r < 5; ++r) {
          for (size_t c = 0; c < cols; ++c) {
            float want = before[r * x.view.stride + c] + (bias.empty() ? 0 : bias[c]);
            if (relu && want < 0) want = 0;
            if (std::isnan(want)) {
              EXPECT_TRUE(std::isnan(x.view.Row(r)[c]));
              EXPECT_TRUE(std::isnan(FromBf16(rounded.view.Row(r)[c])));
            } else {
              EXPECT_EQ(x.view.Row(r)[c], want);
              EXPECT_EQ(rounded.view.Row(r)[c], ToBf16(want));
            }
          }
        }
        x.ExpectGapUntouched();
        rounded.ExpectGapUntouched();
      }
    }
  }
}

TEST_P(BackendContract, ReluBackwardKeepsWhereActive) {
  for (size_t cols : {0, 1, 19, 64}) {
    auto activation = Random<float>(4, cols, 1), grad = Random<float>(4, cols, 2);
    auto activation16 = Random<Bf16>(4, cols, 3);
    if (cols > 0) activation.view.Row(1)[0] = 0, activation16.view.Row(1)[0] = 0x8000;  // -0
    const auto before = grad;
    Store<Bf16> out(4, cols, 1);
    backend_->ReluBackward16(activation16.view, grad.view, out.view);
    backend_->ReluBackward(activation.view, grad.view);
    for (size_t r = 0; r < 4; ++r) {
      for (size_t c = 0; c < cols; ++c) {
        const float g = before.values[r * grad.view.stride + c];
        EXPECT_EQ(grad.view.Row(r)[c], activation.view.Row(r)[c] > 0 ? g : 0);
        EXPECT_EQ(out.view.Row(r)[c],
                  FromBf16(activation16.view.Row(r)[c]) > 0 ? ToBf16(g) : Bf16{0});
      }
    }
    grad.ExpectGapUntouched();
    out.ExpectGapUntouched();
  }
}

TEST_P(BackendContract, ScaleRowsScales) {
  for (size_t cols : {0, 1, 21, 64}) {
    const auto x = Random<float>(6, cols, 1);
    const auto x16 = Random<Bf16>(6, cols, 1);
    const auto scale = RandomVector(6);
    Store<float> out(6, cols, 2);
    Store<Bf16> out16(6, cols, 2);
    backend_->ScaleRows(scale, x.view, out.view);
    backend_->ScaleRows16(scale, x16.view, out16.view);
    auto in_place = x;
    in_place.view.data = in_place.values.data();
    backend_->ScaleRows(scale, in_place.view, in_place.view);
    for (size_t r = 0; r < 6; ++r) {
      for (size_t c = 0; c < cols; ++c) {
        EXPECT_EQ(out.view.Row(r)[c], scale[r] * x.view.Row(r)[c]);
        EXPECT_EQ(in_place.view.Row(r)[c], out.view.Row(r)[c]);
        EXPECT_EQ(out16.view.Row(r)[c], ToBf16(scale[r] * FromBf16(x16.view.Row(r)[c])));
      }
    }
    out.ExpectGapUntouched();
    out16.ExpectGapUntouched();
  }
}

TEST_P(BackendContract, RowSquaredNormsAreThoseOfDoubles) {
  for (size_t cols : {0, 1, 3, 4, 61, 598}) {
    const auto x = Random<float>(9, cols, 5);
    std::vector<float> out(9, kSentinel);
    backend_->RowSquaredNorms(x.view, out);
    for (size_t r = 0; r < 9; ++r) {
      double want = 0;
      for (size_t c = 0; c < cols; ++c) want += double{x.view.Row(r)[c]} * x.view.Row(r)[c];
      EXPECT_NEAR(out[r], want, 1e-7 * want);
    }
  }
}

template <class T>
void BackendContract::CheckUnitNorms(const std::vector<uint32_t>& unit_end, bool cancelling) {
  const size_t rows = unit_end.empty() ? 0 : unit_end.back(), in = 37, out = 22;
  auto a = Random<T>(rows, in, 2), g = Random<T>(rows, out, 3);
  if (cancelling) {
    // Every odd row repeats the one before it, one number changed, with the opposite gradient.
    for (size_t r = 1; r < rows; r += 2) {
      std::copy_n(a.view.Row(r - 1), in, a.view.Row(r));
      Set(a.view.Row(r), static_cast<float>(Number(a.view.Row(r)[0]) * 1.0078125));
      for (size_t c = 0; c < out; ++c)
        Set(g.view.Row(r) + c, -static_cast<float>(Number(g.view.Row(r - 1)[c])));
    }
  }
  std::vector<float> norms(unit_end.size(), kSentinel);
  DoUnitNorms(unit_end, MatrixView<const T>(a.view), MatrixView<const T>(g.view), norms);
  for (size_t u = 0; u < unit_end.size(); ++u) {
    double want = 0;
    for (size_t i = 0; i < in; ++i) {
      for (size_t j = 0; j < out; ++j) {
        double w = 0;
        for (size_t t = u == 0 ? 0 : unit_end[u - 1]; t < unit_end[u]; ++t)
          w += Number(a.view.Row(t)[i]) * Number(g.view.Row(t)[j]);
        want += w * w;
      }
    }
    EXPECT_NEAR(norms[u], want, 1e-6 * want) << "unit " << u;
  }
}

TEST_P(BackendContract, UnitSquaredNormsMatchMaterialisedGradients) {
  const std::vector<std::vector<uint32_t>> partitions = {
      {}, {1}, {1, 2, 3, 4, 5}, {0, 3, 3, 4, 11, 11}, {20}, {2, 90, 91}};
  for (const auto& unit_end : partitions) {
    CheckUnitNorms<float>(unit_end, false);
    CheckUnitNorms<Bf16>(unit_end, false);
  }
}

TEST_P(BackendContract, UnitSquaredNormsSurviveCancellation) {
  CheckUnitNorms<float>({2, 4, 8, 16, 96}, true);
  CheckUnitNorms<Bf16>({2, 4, 8, 16, 96}, true);
}

// Records that cancel except for the last bits: what is left must not be lost, or a clip lets it
// through. Exact by materialising in long double.
TEST_P(BackendContract, UnitSquaredNormsAreNotBelowWhatIsLeftOfRowsThatCancel) {
  constexpr size_t kIn = 61, kOut = 37;
  int with_something_left = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const auto a = Random<float>(2, kIn, 0), g = Random<float>(2, kOut, 0);
    for (size_t c = 0; c < kIn; ++c) a.view.Row(1)[c] = a.view.Row(0)[c];
    for (size_t c = 0; c < kOut; ++c) g.view.Row(1)[c] = -g.view.Row(0)[c];
    float& last = g.view.Row(1)[random_() % kOut];
    last = std::nextafter(last, trial % 2 ? 1e9f : 0.0f);
    long double exact = 0;
    for (size_t i = 0; i < kIn; ++i)
      for (size_t j = 0; j < kOut; ++j) {
        long double sum = 0;
        for (size_t r = 0; r < 2; ++r)
          sum += static_cast<long double>(a.view.Row(r)[i]) * g.view.Row(r)[j];
        exact += sum * sum;
      }
    float norm = -1;
    const uint32_t end = 2;
    DoUnitNorms({&end, 1}, a.view, g.view, {&norm, 1});
    ASSERT_NEAR(norm / static_cast<double>(exact), 1, 0x1p-20) << trial;
    with_something_left += exact > 0;
  }
  EXPECT_EQ(with_something_left, 200);
}

// The square of a small number does not vanish, because a large one may stand beside it. Rows of
// `a` so long that rounding could decide about g have no norm.
template <class T>
void BackendContract::CheckFarNorms() {
  auto a = Random<T>(4, 37, 2), g = Random<T>(4, 22, 3);
  const auto fill = [](auto row, size_t cols, float number) {
    for (size_t c = 0; c < cols; ++c) Set(row + c, number);
  };
  for (size_t r = 0; r < 4; ++r) {
    fill(a.view.Row(r), 37, std::ldexp(1.0f, r < 3 ? 60 : 64));
    fill(g.view.Row(r), 22, std::ldexp(1.0f, r == 0 ? -76 : -125));
  }
  const std::vector<uint32_t> unit_end = {1, 3, 4};
  std::vector<float> norms(3, kSentinel);
  DoUnitNorms(unit_end, MatrixView<const T>(a.view), MatrixView<const T>(g.view), norms);
  EXPECT_FLOAT_EQ(norms[0], 37 * 22 * std::ldexp(1.0f, -32));
  EXPECT_FLOAT_EQ(norms[1], 4 * 37 * 22 * std::ldexp(1.0f, -130));
  EXPECT_TRUE(std::isinf(norms[2])) << norms[2];
}

TEST_P(BackendContract, UnitSquaredNormsOfFarNumbersAreBounds) {
  CheckFarNorms<float>();
  CheckFarNorms<Bf16>();
}

TEST_P(BackendContract, ColumnSumsAddRowsInOrder) {
  const auto x = Random<float>(50, 35, 2);
  auto out = RandomVector(35);
  auto want = out;
  for (size_t r = 0; r < 50; ++r)
    for (size_t c = 0; c < 35; ++c) want[c] += x.view.Row(r)[c];
  backend_->ColumnSums(x.view, out);
  EXPECT_EQ(out, want);
}

TEST_P(BackendContract, LogisticLossIsStable) {
  std::vector<float> logit = {0, 1, -1, 20, -20, 88, -88, 1000, -1000, 3e38f, -3e38f};
  for (float y : {0.0f, 1.0f}) {
    const std::vector<float> label(logit.size(), y);
    std::vector<float> loss(logit.size()), dlogit(logit.size());
    backend_->LogisticLoss(logit, label, loss, dlogit);
    for (size_t i = 0; i < logit.size(); ++i) {
      // log(1 + exp(-margin)) in long double, whose exponent reaches exp(11000).
      const long double margin = (y == 1 ? 1.0L : -1.0L) * static_cast<long double>(logit[i]);
      const long double want = margin < -11000 ? -margin : std::log1p(std::exp(-margin));
      const long double d = (y == 1 ? -1.0L : 1.0L) / (1 + std::exp(margin));
      EXPECT_NEAR(loss[i], static_cast<double>(want), 1e-6 * static_cast<double>(want) + 1e-37)
          << logit[i];
      EXPECT_NEAR(dlogit[i], static_cast<double>(d), 1e-7) << logit[i];
    }
  }
}

TEST_P(BackendContract, GatherSumPoolsSlots) {
  const std::vector<uint32_t> dim = {3, 1, 17}, column = {0, 3, 4};
  auto table = Random<float>(30, 17);
  std::vector<float*> rows;
  for (size_t r = 0; r < 30; ++r) rows.push_back(table.view.Row(r));
  for (size_t examples : {0, 1, 10, 75}) {
    std::vector<uint32_t> slot_end, slot_row;
    for (size_t cell = 0; cell < examples * dim.size(); ++cell) {
      for (size_t n = random_() % 4; n > 0; --n) slot_row.push_back(random_() % 30);  // 0 to 3
      slot_end.push_back(static_cast<uint32_t>(slot_row.size()));
    }
    Store<float> x(examples, 21, 4);
    backend_->GatherSum({slot_end, slot_row, column, dim}, rows, x.view);
    for (size_t cell = 0; cell < slot_end.size(); ++cell) {
      const size_t s = cell % dim.size();
      for (size_t c = 0; c < dim[s]; ++c) {
        double want = 0;
        for (uint32_t e = cell == 0 ? 0 : slot_end[cell - 1]; e < slot_end[cell]; ++e)
          want += rows[slot_row[e]][c];
        EXPECT_NEAR(x.view.Row(cell / dim.size())[column[s] + c], want, 1e-6);
      }
    }
    x.ExpectGapUntouched();
  }
}

TEST_P(BackendContract, SameInputsGiveTheSameBits) {
  const auto a = Random<float>(203, 97), b = Random<float>(97, 150);
  const auto a16 = Random<Bf16>(203, 97), b16 = Random<Bf16>(97, 150);
  Store<float> first(203, 150, 0), second(203, 150, 0);
  ASSERT_TRUE(backend_->Gemm(Transpose::kNo, a.view, Transpose::kNo, b.view, 0, first.view));
  ASSERT_TRUE(backend_->Gemm(Transpose::kNo, a.view, Transpose::kNo, b.view, 0, second.view));
  EXPECT_EQ(first.values, second.values);
  ASSERT_TRUE(backend_->Gemm16(Transpose::kNo, a16.view, Transpose::kNo, b16.view, 0, first.view));
  ASSERT_TRUE(backend_->Gemm16(Transpose::kNo, a16.view, Transpose::kNo, b16.view, 0, second.view));
  EXPECT_EQ(first.values, second.values);
}

size_t Threads() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    ++count;
  return count;
}

// The library has threads of its own, which would fight the workers for the cores.
TEST_P(BackendContract, NoThreadsButTheWorkers) {
  const size_t before = Threads();
  CheckGemm<float>(256, 256, 64, false, true, 0, 0);
  CheckGemm<Bf16>(256, 256, 64, true, false, 1, 0);
  EXPECT_EQ(Threads(), before);
}

INSTANTIATE_TEST_SUITE_P(All, BackendContract, ::testing::ValuesIn(Subjects()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tacit::ops
