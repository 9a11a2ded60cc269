// Click models whose products are a library's: steps against the CPU's, the choice between it and
// our own products, and a library that is missing or wrong. Emulated: the library is a stand-in.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cuda/device/emulated.h"
#include "cuda/kernels/gemm/gemm_library.h"
#include "cuda/learn/device_net.h"
#include "unit/cuda/blas_trial.h"
#include "unit/cuda/device_trial.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

using ::testing::HasSubstr;
using By = train::GpuProducts;

constexpr char kMissing[] = "libcublas-that-is-nowhere.so.13";
constexpr TrialOptions kBf16{.precision = ops::Precision::kBf16, .threshold = 1};

// Products of rows, with all that they end in. What is summed over rows is never the library's
// where learning is private.
uint64_t OwnProducts() {
  uint64_t products = 0;
  for (const auto& [name, use] : emulated::Kernels())
    if (name.starts_with("Gemm16") && name != "Gemm16Pieces") products += use.launches;
  return products;
}

class LibraryEngine : public ::testing::Test {
 protected:
  LibraryEngine() : library_(FreshStandIn()), device_(OpenTrialDevice()) {}
  ~LibraryEngine() override { FreshStandIn(); }

  std::unique_ptr<DeviceTrial> Make(const TrialOptions& options, const ProductOptions& products,
                                    uint32_t chunk = 64, bool overlap = true) {
    return std::make_unique<DeviceTrial>(*device_, options, chunk, train::GpuRowOptions{}, overlap,
                                         products);
  }
  // A net's error where it cannot be made.
  Error ErrorOf(const ProductOptions& products, ops::Precision precision = ops::Precision::kBf16) {
    auto stream = Stream::Make(*device_);
    EXPECT_TRUE(stream);
    const auto net = MakeDeviceNet(*stream, {.precision = precision,
                                             .layers = {{5, 3, 0}, {3, 1, 18}},
                                             .rows_max = 16,
                                             .products = products});
    return net ? Error{.message = "none"} : net.error();
  }

  BlasStandIn& library_;
  const std::unique_ptr<Device> device_;
};

void ExpectClose(std::span<const float> got, std::span<const float> want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  // As wide as for our own: sums in another order, which bf16 may round the other way.
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 4e-3 * (1 + std::abs(want[i]))) << what << ", number " << i;
}

TEST_F(LibraryEngine, TakesTheCpusSteps) {
  for (const uint32_t chunk : {64u, 5u}) {
    SCOPED_TRACE(chunk);
    HostTrial host(kBf16);
    const auto trial = Make(kBf16, {.by = By::kLibrary}, chunk);
    std::mt19937_64 random(11);
    for (int step = 0; step < 4; ++step) {
      SCOPED_TRACE(step);
      const auto batch = RandomStep(trial->space(), 2, step == 2 ? 0 : 11, 3, random);
      host.Step(batch);
      const auto report = trial->Step(batch);
      EXPECT_EQ(report.units_clipped, host.units_clipped());
      ExpectClose(report.logits, host.logits(), "logits");
      ExpectClose(trial->engine().dense().parameters, host.dense().parameters, "dense");
      const auto got = trial->rows().All(), want = host.rows().All();
      for (size_t row = 0; row < want.size(); ++row) ExpectClose(got[row], want[row], "rows");
    }
    EXPECT_GT(library_.done, 0u);
    EXPECT_EQ(OwnProducts(), 0u);
    EXPECT_EQ(library_.misused, 0u);
  }
  EXPECT_EQ(library_.handles, 0);
}

TEST_F(LibraryEngine, GivesTheSameBitsInEveryOrderOfStreamsAndInGraphs) {
  std::vector<std::vector<float>> alone;
  for (int order = -1; order < Orders(); ++order) {
    NextOrder(order + 1);
    const auto trial = Make(kBf16, {.by = By::kLibrary}, 64, order >= 0);
    std::mt19937_64 random(22);
    const auto small = RandomStep(trial->space(), 2, 5, 2, random);
    const auto large = RandomStep(trial->space(), 2, 12, 2, random);
    std::vector<std::vector<float>> got;
    for (int step = 0; step < 7; ++step) {
      const auto report = trial->StepOnly(step % 2 == 1 ? large : small);
      got.emplace_back(report.logits.begin(), report.logits.end());
    }
    trial->Settle();
    for (auto& row : trial->rows().All()) got.push_back(std::move(row));
    got.push_back(trial->engine().dense().parameters);
    if (order < 0) alone = got;
    ASSERT_EQ(got, alone) << "order " << order;
  }
}

// A net of three layers has six products of rows a step. They come plain, then they are captured,
// and from then on the graph has them.
TEST_F(LibraryEngine, ItsProductsBecomePartOfGraphs) {
  const auto trial = Make(kBf16, {.by = By::kLibrary});
  std::mt19937_64 random(6);
  const auto one = RandomStep(trial->space(), 2, 5, 2, random);
  const uint64_t asked = library_.asked, done = library_.done;
  for (uint64_t step = 0; step < 5; ++step) {
    trial->StepOnly(one);
    EXPECT_EQ(library_.asked - asked, step == 0 ? 6u : 12u) << "step " << step;
    EXPECT_EQ(library_.done - done, 6 * (step + 1)) << "step " << step;
  }
}

TEST_F(LibraryEngine, IsNotLoadedForOwnProductsOrF32) {
  Make(kBf16, {});
  Make({}, {.by = By::kLibrary, .library = kMissing});
  EXPECT_EQ(ErrorOf({.by = By::kLibrary, .library = kMissing}, ops::Precision::kF32).message,
            "none");
  EXPECT_EQ(library_.asked, 0u);
  EXPECT_EQ(library_.workspace_bytes, 0u);
}

TEST_F(LibraryEngine, AMissingLibraryIsNamedWithWhatToDo) {
  const Error error = ErrorOf({.by = By::kLibrary, .library = kMissing});
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message, HasSubstr(kMissing));
  EXPECT_THAT(error.message, HasSubstr("set gpu.gemm to own"));
  const Error other = ErrorOf({.by = By::kLibrary, .library = "libm.so.6"});
  EXPECT_EQ(other.code, ErrorCode::kUnavailable);
  EXPECT_THAT(other.message, HasSubstr("libm.so.6 has no cublas"));
}

TEST_F(LibraryEngine, ALibraryThatFailsOrMultipliesWronglyIsRefused) {
  library_.fault = BlasFault::kNoHandle;
  EXPECT_THAT(ErrorOf({.by = By::kLibrary}).message, HasSubstr("making a handle"));
  EXPECT_EQ(ErrorOf({.by = By::kAuto}).message, "none") << "our own are there";
  library_.fault = BlasFault::kFails;
  EXPECT_THAT(ErrorOf({.by = By::kLibrary}).message, HasSubstr("its status is 13; set gpu.gemm"));
  for (const BlasFault fault :
       {BlasFault::kIgnoresBeta, BlasFault::kReadsAlways, BlasFault::kOtherColumn}) {
    library_.fault = fault;
    for (const By by : {By::kLibrary, By::kAuto}) {
      const Error error = ErrorOf({.by = by});
      EXPECT_EQ(error.code, ErrorCode::kCorruption) << static_cast<int>(fault);
      EXPECT_THAT(error.message, HasSubstr("multiplies wrongly"));
    }
  }
  EXPECT_EQ(library_.handles, 0);
}

TEST_F(LibraryEngine, TheFasterIsTaken) {
  const auto step_by = [&](const ProductOptions& products) {
    const auto trial = Make(kBf16, products);
    EXPECT_EQ(library_.misused, 0u);
    std::mt19937_64 random(6);
    const auto one = RandomStep(trial->space(), 2, 5, 2, random);
    const uint64_t asked = library_.asked, own = OwnProducts();
    trial->StepOnly(one);
    return std::pair(library_.asked - asked, OwnProducts() - own);
  };
  using std::chrono::microseconds;
  const StandInClock faster(library_, microseconds(-1)), slower(library_, microseconds(1)),
      same(library_, microseconds(0));
  using Counts = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(step_by({.by = By::kAuto, .clock = &faster}), Counts(6, 0));
  EXPECT_EQ(step_by({.by = By::kAuto, .clock = &slower}), Counts(0, 6));
  EXPECT_EQ(step_by({.by = By::kAuto, .clock = &same}), Counts(0, 6));
  EXPECT_EQ(step_by({.by = By::kAuto, .library = kMissing, .clock = &faster}), Counts(0, 6));
  EXPECT_EQ(library_.handles, 0);
}

// The host's clock chooses something, and steps go on.
TEST_F(LibraryEngine, TheHostsClockChoosesToo) {
  const auto trial = Make(kBf16, {.by = By::kAuto});
  EXPECT_GT(library_.done, 0u);
  std::mt19937_64 random(6);
  trial->Step(RandomStep(trial->space(), 2, 5, 2, random));
}

// The stand-in itself: without a workspace that is set behind the stream nothing is multiplied.
TEST(BlasStandInTest, WantsItsWorkspaceBehindItsStream) {
  BlasStandIn& library = FreshStandIn();
  void* const loaded = dlopen(kBlasLibrary, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(loaded, nullptr) << dlerror();
  const auto create = reinterpret_cast<int (*)(void**)>(dlsym(loaded, "cublasCreate_v2"));
  const auto destroy = reinterpret_cast<int (*)(void*)>(dlsym(loaded, "cublasDestroy_v2"));
  const auto set_stream =
      reinterpret_cast<int (*)(void*, void*)>(dlsym(loaded, "cublasSetStream_v2"));
  const auto set_workspace =
      reinterpret_cast<int (*)(void*, void*, size_t)>(dlsym(loaded, "cublasSetWorkspace_v2"));
  const auto gemm =
      reinterpret_cast<int (*)(void*, int, int, int, int, int, const void*, const void*, int, int,
                               const void*, int, int, const void*, void*, int, int, int, int)>(
          dlsym(loaded, "cublasGemmEx"));
  void* handle = nullptr;
  ASSERT_EQ(create(&handle), 0);
  alignas(256) char memory[256];
  const float one = 1;
  const uint16_t number = 0x3f80;
  float c = 0;
  library.put = [](void*, void (*run)(void*), void (*drop)(void*), void* argument) {
    run(argument);
    drop(argument);
    return 0;
  };
  const auto multiply = [&](int type_c) {
    return gemm(handle, 0, 0, 1, 1, 1, &one, &number, 14, 1, &number, 14, 1, &one, &c, type_c, 1,
                68, -1);
  };
  ASSERT_EQ(set_workspace(handle, memory, sizeof(memory)), 0);
  ASSERT_EQ(set_stream(handle, memory), 0);
  EXPECT_NE(multiply(0), 0);
  EXPECT_EQ(library.misused, 1u);
  ASSERT_EQ(set_workspace(handle, memory, sizeof(memory)), 0);
  EXPECT_NE(multiply(14), 0) << "c in bf16";
  EXPECT_EQ(multiply(0), 0);
  EXPECT_EQ(c, 1.0f);
  EXPECT_EQ(destroy(handle), 0);
  EXPECT_EQ(library.handles, 0);
  dlclose(loaded);
}

}  // namespace
}  // namespace tacit::cuda::testing
