#include <gtest/gtest.h>

#include "cuda/learn/gpu.h"

namespace tacit::cuda {
namespace {

TEST(Absent, SaysThatThisBuildHasNoCuda) {
  const auto gpu = OpenGpu({});
  ASSERT_FALSE(gpu);
  EXPECT_EQ(gpu.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(gpu.error().message.find("was built without CUDA"), std::string::npos);
}

}  // namespace
}  // namespace tacit::cuda
