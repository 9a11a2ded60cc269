// The benchmarks of a GPU, on the emulated one: they run and give figures, which mean nothing
// there.
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "cuda/bench/gpu_bench.h"
#include "unit/cuda/blas_trial.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

std::vector<bench::Bench> Named(const std::string& name) {
  std::vector<bench::Bench> named;
  for (bench::Bench& bench : GpuBenches())
    if (bench.name == name) named.push_back(std::move(bench));
  return named;
}

class GpuBenchTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GpuBenchTest, GivesFigures) {
  ASSERT_NE(OpenTrialDevice(), nullptr);
  FreshStandIn();  // in the place of a library that the machine may have
  const auto named = Named(GetParam());
  ASSERT_EQ(named.size(), 1u);
  const auto rows = named[0].run({.quick = true});
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_FALSE(rows->empty());
  std::set<std::string> names;
  for (const bench::BenchRow& row : *rows) {
    EXPECT_TRUE(std::isfinite(row.value) && row.value >= 0) << row.name;
    EXPECT_TRUE(!row.limit || (std::isfinite(*row.limit) && *row.limit > 0)) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
}

// Each figure of our own products has one of the library's beside it.
TEST(GpuBenches, MeasureTheLibraryBesideOurOwnProducts) {
  ASSERT_NE(OpenTrialDevice(), nullptr);
  const BlasStandIn& library = FreshStandIn();
  const auto named = Named("gpu-products");
  ASSERT_EQ(named.size(), 1u);
  const auto rows = named[0].run({.quick = true});
  ASSERT_TRUE(rows) << rows.error().message;
  std::set<std::string> own, other;
  for (const bench::BenchRow& row : *rows) {
    const std::string name = row.name.substr(0, row.name.rfind('-'));
    if (row.name.ends_with("-mma")) own.insert(name);
    if (row.name.ends_with("-cublas")) other.insert(name);
  }
  EXPECT_GE(own.size(), 5u);
  EXPECT_EQ(own, other);
  EXPECT_GT(library.done, 0u);
  EXPECT_EQ(library.handles, 0);
}

INSTANTIATE_TEST_SUITE_P(All, GpuBenchTest,
                         ::testing::Values("gpu-products", "gpu-noise", "gpu-step", "gpu-tables",
                                           "gpu-rows", "gpu-attention", "gpu-sequence",
                                           "gpu-score"),
                         [](const auto& info) { return std::string(info.param).substr(4); });

TEST(GpuBenches, RunWhenNamedAlone) {
  for (const bench::Bench& bench : GpuBenches()) {
    EXPECT_TRUE(bench.when_named) << bench.name;
    EXPECT_THAT(bench.name, ::testing::StartsWith("gpu-"));
  }
}

}  // namespace
}  // namespace tacit::cuda::testing
