#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/runtime.h"

namespace tacit::cuda {

class Device;

// A place in a stream's work that other streams and the host can wait for.
class Event {
 public:
  static Result<Event> Make(Device& device);
  Event(Event&& other) noexcept { *this = std::move(other); }
  Event& operator=(Event&& other) noexcept;
  ~Event();

  // Waits until the work before the last Record has run; returns at once if there was none.
  Status Synchronize();

 private:
  friend class Stream;
  Event() = default;

  Device* device_ = nullptr;
  runtime::Event handle_ = nullptr;
};

// Work for the device, done in the order in which it was put here. Different streams run at the
// same time, unless one waits for an event of another.
//
// Every call but Synchronize returns at once. The memory it names, the host's too, must not change
// until the work has run. A later call reports a failure of the work.
class Stream {
 public:
  static Result<Stream> Make(Device& device);
  Stream(Stream&& other) noexcept { *this = std::move(other); }
  Stream& operator=(Stream&& other) noexcept;
  // Waits for the stream's work, because memory that it names may go away next.
  ~Stream();

  // REQUIRES equal sizes, here and below.
  template <class T>
  Status Upload(std::type_identity_t<std::span<const T>> from, DeviceSpan<T> to) {
    TACIT_CHECK(from.size() == to.size, "an upload to a place of another size");
    return Copy(to.data, from.data(), from.size_bytes());
  }
  template <class T>
  Status Download(DeviceSpan<T> from, std::span<std::remove_const_t<T>> to) {
    TACIT_CHECK(from.size == to.size(), "a download to a place of another size");
    return Copy(to.data(), from.data, to.size_bytes());
  }
  template <class T>
  Status CopyOnDevice(std::type_identity_t<DeviceSpan<const T>> from, DeviceSpan<T> to) {
    TACIT_CHECK(from.size == to.size, "a copy to a place of another size");
    return Copy(to.data, from.data, to.size * sizeof(T));
  }
  // Every byte becomes `value`.
  template <class T>
  Status Fill(DeviceSpan<T> memory, uint8_t value) {
    return FillBytes(memory.data, value, memory.size * sizeof(T));
  }

  Status Record(Event& event);
  // Makes later work on this stream wait for the work before the event's last Record.
  Status Wait(const Event& event);
  // Waits until all of the work has run.
  Status Synchronize();

  Device& device() const { return *device_; }
  // For kernel.h and graph.cc.
  runtime::Stream handle() const { return handle_; }
  // While a list is set, every call adds to it what it would have put here, byte for byte, and puts
  // nothing. For kept_graphs.cc.
  void ListTo(std::string* list) { list_ = list; }
  // Tells whether a launch is listed instead of made.
  template <class... P>
  bool Lists(const void* kernel, const runtime::LaunchShape& shape, const P&... arguments) {
    if (list_ == nullptr) return false;
    const char what = 'k';
    List(what, handle_, kernel, shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x,
         shape.block.y, shape.block.z, shape.shared_bytes, arguments...);
    return true;
  }

 private:
  Stream() = default;
  Status Copy(void* to, const void* from, size_t bytes);
  Status FillBytes(void* memory, uint8_t value, size_t bytes);
  template <class... T>
  void List(const T&... values) {
    (ListOne(values), ...);
  }
  template <class T>
  void ListOne(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
#if !defined(__clang__)
    // Bytes between a struct's numbers say nothing.
    __builtin_clear_padding(&value);
#endif
    list_->append(reinterpret_cast<const char*>(&value), sizeof(T));
  }

  Device* device_ = nullptr;
  runtime::Stream handle_ = nullptr;
  std::string* list_ = nullptr;
};

// Launch (kernel.h) ends in one of these: the one for the device that is linked.
Status LaunchKernel(Stream& stream, const char* name, const void* kernel,
                    const runtime::LaunchShape& shape, void** arguments);
Status LaunchEmulated(Stream& stream, const char* name, const runtime::LaunchShape& shape,
                      std::function<void()> body);

}  // namespace tacit::cuda
