#include "cuda/device/buffer.h"

#include <fmt/format.h>

#include "cuda/device/device.h"
#include "cuda/device/runtime.h"

namespace tacit::cuda {

Result<RawBuffer> RawBuffer::Make(Device& device, Place place, size_t bytes) {
  device.CheckOwner();
  RawBuffer buffer;
  buffer.place_ = place;
  if (bytes == 0) return buffer;
  const bool on_device = place == Place::kDevice;
  const int code = on_device ? runtime::Allocate(&buffer.data_, bytes)
                             : runtime::AllocateHost(&buffer.data_, bytes);
  if (code == runtime::kSuccess) {
    buffer.bytes_ = bytes;
    device.CountMemory();
    return buffer;
  }
  buffer.data_ = nullptr;
  std::string doing =
      fmt::format("taking {} bytes of {} memory", bytes, on_device ? "its" : "pinned host");
  size_t free = 0, total = 0;
  if (on_device && runtime::MemoryFree(&free, &total) == runtime::kSuccess)
    doing += fmt::format(" ({} of {} are free)", free, total);
  const Status failed = device.Check(code, doing);
  return Fail(failed.error());
}

RawBuffer& RawBuffer::operator=(RawBuffer&& other) noexcept {
  std::swap(place_, other.place_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

RawBuffer::~RawBuffer() {
  if (data_ == nullptr) return;
  // A device that is lost cannot give memory back, and has none any more.
  (void)(place_ == Place::kDevice ? runtime::Free(data_) : runtime::FreeHost(data_));
}

}  // namespace tacit::cuda
