#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cuda/device/buffer.h"
#include "cuda/device/device.h"
#include "cuda/device/stream.h"

namespace tacit::cuda::testing {

// The device that tests of this program run on: emulated_device.cc, with all failures forgotten, or
// real_device.cc, the machine's first, which skips the test where there is none and fails it where
// TACIT_REQUIRE has "gpu". Null then.
std::unique_ptr<Device> OpenTrialDevice();
// The number of times to repeat a test whose result must not depend on the order of turns; each
// call of NextOrder makes another order. Once, and nothing, on a real device.
int Orders();
void NextOrder(int number);

// A test with an open device and a stream.
class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = OpenTrialDevice();
    if (device_ == nullptr) return;
    auto stream = Stream::Make(*device_);
    ASSERT_TRUE(stream) << stream.error().message;
    stream_ = std::make_unique<Stream>(std::move(*stream));
  }
  void TearDown() override { stream_.reset(); }

  template <class T>
  Buffer<T> Make(size_t n) {
    auto buffer = Buffer<T>::Make(*device_, n);
    EXPECT_TRUE(buffer) << buffer.error().message;
    return std::move(*buffer);
  }
  template <class T>
  Buffer<T> ToDevice(const std::vector<T>& values) {
    Buffer<T> buffer = Make<T>(values.size());
    EXPECT_TRUE(stream_->template Upload<T>(values, buffer.span()));
    EXPECT_TRUE(stream_->Synchronize());
    return buffer;
  }
  template <class T>
  std::vector<T> FromDevice(const Buffer<T>& buffer) {
    std::vector<T> values(buffer.size());
    EXPECT_TRUE(stream_->Download(buffer.span(), std::span<T>(values)));
    EXPECT_TRUE(stream_->Synchronize());
    return values;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

inline std::vector<uint32_t> Counted(size_t n, uint32_t first = 1) {
  std::vector<uint32_t> numbers(n);
  for (size_t i = 0; i < n; ++i) numbers[i] = first + static_cast<uint32_t>(i);
  return numbers;
}

}  // namespace tacit::cuda::testing
