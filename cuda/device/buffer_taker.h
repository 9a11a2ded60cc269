#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "base/result.h"
#include "cuda/device/buffer.h"

namespace tacit::cuda {

// Adds up the device memory of buffers that are still to be made. Each of them takes whole pieces
// (DeviceFacts::memory_piece_bytes).
class MemoryNeed {
 public:
  explicit MemoryNeed(uint64_t piece_bytes) : piece_(piece_bytes) {}

  template <class T>
  MemoryNeed& Add(uint64_t count) {
    bytes_ += (count * sizeof(T) + piece_ - 1) / piece_ * piece_;
    return *this;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t piece_, bytes_ = 0;
};

// Makes buffers as large as is wanted, or only adds up what they would take. A part that hands all
// of its buffers to a taker in one function is planned by the function that takes its memory.
class BufferTaker {
 public:
  // Makes buffers larger where they are smaller, as Reserve does.
  explicit BufferTaker(Device& device) : device_(&device) {}
  // Adds up alone, as for buffers that hold nothing; pinned memory is not counted.
  explicit BufferTaker(MemoryNeed& need) : need_(&need) {}

  template <class T>
  Status Take(uint64_t count, Buffer<T>* buffer) {
    if (device_ != nullptr) return Reserve(*device_, count, buffer);
    need_->Add<T>(count);
    return {};
  }
  template <class T>
  Status Take(uint64_t count, HostBuffer<T>* buffer) {
    return device_ != nullptr ? Reserve(*device_, count, buffer) : Status();
  }
  template <class Buffers>
  Status TakeEach(uint64_t count, std::initializer_list<Buffers*> buffers) {
    for (Buffers* buffer : buffers) TACIT_RETURN_IF_ERROR(Take(count, buffer));
    return {};
  }

 private:
  Device* device_ = nullptr;
  MemoryNeed* need_ = nullptr;
};

}  // namespace tacit::cuda
