// The reference, and each way the CPU backend may run.
#include <gtest/gtest.h>

#include "contract/subjects.h"
#include "ops/cpu_backend.h"
#include "ops/dnnl_gemm.h"

namespace tacit::ops {

std::vector<Subject> Subjects() {
  const auto widened = [](WorkerPool& w) { return MakeCpuBackendWith(w, Bf16Gemm::kWidened); };
  return {{"Reference", 1, [](WorkerPool&) { return MakeReferenceBackend(); }},
          {"Cpu", 1, MakeCpuBackend},
          {"CpuTwoWorkers", 2, MakeCpuBackend},
          {"CpuWithoutBf16", 1, widened},
          {"CpuWithoutBf16ThreeWorkers", 3, widened}};
}

namespace {

TEST(CpuBackend, Bf16IsFastWhereTheProcessorHasIt) {
  WorkerPool workers({1, false});
  EXPECT_EQ(MakeCpuBackend(workers)->has_fast_bf16(), HasFastBf16());
  EXPECT_FALSE(MakeCpuBackendWith(workers, Bf16Gemm::kWidened)->has_fast_bf16());
}

TEST(MeasureGemmLimit, IsThatOfAMachineOfThisCentury) {
  for (Precision precision : {Precision::kF32, Precision::kBf16}) {
    const double flops = MeasureGemmLimit(precision, 0.05);
    EXPECT_GT(flops, 1e8);
    EXPECT_LT(flops, 1e13);
  }
}

}  // namespace
}  // namespace tacit::ops
