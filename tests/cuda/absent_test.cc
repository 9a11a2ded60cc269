#include <gtest/gtest.h>

#include "cuda/device/device.h"

namespace tacit::cuda {
namespace {

TEST(Absent, SaysThatThisBuildHasNoCuda) {
  const auto device = OpenDevice(0);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(device.error().message.find("was built without CUDA"), std::string::npos);
}

}  // namespace
}  // namespace tacit::cuda
