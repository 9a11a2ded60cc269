#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/threads/mutex.h"

namespace tacit::cuda {

// The oldest device that this build's code runs on.
inline constexpr int kMajorMin = 9;

struct DeviceFacts {
  int ordinal = 0;
  std::string name;
  std::string uuid;  // as nvidia-smi -L writes it: GPU-8 digits-4-4-4-12
  int major = 0, minor = 0;
  int driver_version = 0;  // 13000 is CUDA 13.0
  int multiprocessors = 0;
  size_t memory_bytes = 0;
  size_t memory_free_bytes = 0;  // when it was opened
  size_t shared_bytes_per_block_max = 0;
  size_t memory_piece_bytes = 1;  // a buffer takes a multiple of it (runtime.h)
};

// One GPU, opened. Streams, buffers and graphs are made from it and must not outlive it.
// Thread-safe, where what is made from it is used by one thread at a time. Used only by the process
// that opened it: a forked child that makes a call is ended by a check.
//
// The first call that loses the device is remembered, and every later call on an object made from
// it fails with that same error, which names the call that failed first.
class Device {
 public:
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceFacts& facts() const { return facts_; }
  // The bytes of its memory that nobody has taken.
  Result<uint64_t> FreeBytes();
  // The number of times that device or pinned memory was taken.
  uint64_t memory_takes() const { return memory_takes_; }
  // The error that lost the device, or success.
  Status Health() const;

  // For the other classes of this room: turns the result of a call of runtime.h into a status.
  // `doing` says what the call was for, as DeviceError wants it.
  Status Check(int code, std::string_view doing);
  // Makes it the device of the calling thread, which CUDA asks for before any other call. Cheap.
  Status BindThread();
  // Ends the process if it is not the one that opened the device.
  void CheckOwner() const;
  void CountMemory() { ++memory_takes_; }

 private:
  friend Result<std::unique_ptr<Device>> OpenDevice(int ordinal);
  explicit Device(DeviceFacts facts);

  const DeviceFacts facts_;
  const int64_t owner_pid_;
  std::atomic<uint64_t> memory_takes_ = 0;
  std::atomic<bool> lost_ = false;
  mutable Mutex mutex_;
  Status health_ TACIT_GUARDED_BY(mutex_);
};

// Fails with what is missing: a build without CUDA, no driver, a driver that is too old, no such
// device, a device that is busy, a device that is too old. Makes the device's context and takes no
// other memory of the device.
Result<std::unique_ptr<Device>> OpenDevice(int ordinal);

}  // namespace tacit::cuda
