#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/device.h"
#include "base/result.h"

namespace tacit::cuda {

class Device;

// Numbers in device memory, not owned; a value, passed to kernels as it is. A type of its own, so
// that the host cannot take it for memory that it may read.
template <class T>
struct DeviceSpan {
  T* data = nullptr;
  size_t size = 0;

  DeviceSpan() = default;
  TACIT_DEVICE DeviceSpan(T* begin, size_t count) : data(begin), size(count) {}
  // Converts to a span that only reads.
  template <class U>
  requires std::is_same_v<const U, T> TACIT_DEVICE DeviceSpan(DeviceSpan<U> other)
      : data(other.data), size(other.size) {}

  TACIT_DEVICE DeviceSpan Sub(size_t offset, size_t count) const { return {data + offset, count}; }
  TACIT_DEVICE T& operator[](size_t i) const { return data[i]; }
};

// Device memory or pinned host memory with an owner. Moves, does not copy. Uninitialised.
class RawBuffer {
 public:
  enum class Place { kDevice, kPinnedHost };

  // Fails with the sizes asked for and free. Takes nothing for 0 bytes.
  static Result<RawBuffer> Make(Device& device, Place place, size_t bytes);
  RawBuffer() = default;
  RawBuffer(RawBuffer&& other) noexcept { *this = std::move(other); }
  RawBuffer& operator=(RawBuffer&& other) noexcept;
  // Waits until all streams have done their work before it frees device memory.
  ~RawBuffer();

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  Place place_ = Place::kDevice;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// `count` numbers on the device.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  static Result<Buffer> Make(Device& device, size_t count) {
    TACIT_ASSIGN(RawBuffer raw,
                 RawBuffer::Make(device, RawBuffer::Place::kDevice, count * sizeof(T)));
    return Buffer(std::move(raw));
  }
  Buffer() = default;

  // An object that was moved from holds nothing.
  DeviceSpan<T> span() const { return {static_cast<T*>(raw_.data()), size()}; }
  size_t size() const { return raw_.bytes() / sizeof(T); }

 private:
  explicit Buffer(RawBuffer raw) : raw_(std::move(raw)) {}

  RawBuffer raw_;
};

// Makes a buffer larger where more is wanted than before; what was in it is lost then, and its
// memory given back first.
template <class T>
Status Reserve(Device& device, size_t count, Buffer<T>* buffer) {
  if (buffer->size() >= count) return {};
  *buffer = Buffer<T>();
  TACIT_ASSIGN(*buffer, Buffer<T>::Make(device, count));
  return {};
}

// `count` numbers in pinned host memory: staging, which streams copy from and to while the host
// works on something else.
template <class T>
class HostBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  static Result<HostBuffer> Make(Device& device, size_t count) {
    TACIT_ASSIGN(RawBuffer raw,
                 RawBuffer::Make(device, RawBuffer::Place::kPinnedHost, count * sizeof(T)));
    return HostBuffer(std::move(raw));
  }
  HostBuffer() = default;

  std::span<T> span() const { return {static_cast<T*>(raw_.data()), raw_.bytes() / sizeof(T)}; }

 private:
  explicit HostBuffer(RawBuffer raw) : raw_(std::move(raw)) {}

  RawBuffer raw_;
};

// As for device memory.
template <class T>
Status Reserve(Device& device, size_t count, HostBuffer<T>* buffer) {
  if (buffer->span().size() >= count) return {};
  *buffer = HostBuffer<T>();
  TACIT_ASSIGN(*buffer, HostBuffer<T>::Make(device, count));
  return {};
}

}  // namespace tacit::cuda
