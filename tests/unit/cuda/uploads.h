#pragma once

#include <utility>
#include <vector>

#include "base/check.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"

namespace tacit::cuda::testing {

inline Stream MakeStream(Device& device) {
  auto stream = Stream::Make(device);
  TACIT_CHECK(stream.has_value());
  return std::move(*stream);
}

// Returns a copy of these numbers in the device's memory, once the stream has come so far.
template <class T>
Buffer<T> Upload(Stream& stream, const std::vector<T>& from) {
  auto buffer = Buffer<T>::Make(stream.device(), from.size());
  TACIT_CHECK(buffer.has_value());
  TACIT_CHECK(stream.Upload<T>(from, buffer->span()).has_value());
  return std::move(*buffer);
}

}  // namespace tacit::cuda::testing
