#include "cuda/device/errors.h"

#include <fmt/format.h>

#include "base/check.h"
#include "cuda/device/runtime.h"

namespace tacit::cuda {
namespace {

// Returns one clause of advice, or nothing.
std::string_view Advice(int code) {
  switch (code) {
    case code::kMemoryAllocation:
      return "; the memory is taken: end what else uses it, set gpu.rows to cache, or lower "
             "gpu.cache_bytes";
    case code::kDevicesUnavailable:
      return "; another process holds it, or it is in exclusive or prohibited mode (nvidia-smi -q)";
    case code::kNoKernelImageForDevice:
    case code::kUnsupportedPtxVersion:
      return "; this build has code for compute capability 9.0 and newer";
    case code::kSystemDriverMismatch:
      return "; the driver's library and its kernel module differ, which a reboot mends";
    case code::kEccUncorrectable:
      return "; the device's memory is damaged, see nvidia-smi -q and the kernel's log for an Xid";
    default:
      return LosesDevice(code) ? "; the device is lost to this process, which must be restarted"
                               : "";
  }
}

ErrorCode Kind(int code) {
  switch (code) {
    case code::kInvalidDevice:
    case code::kNoKernelImageForDevice:
      return ErrorCode::kInvalidArgument;
    case code::kMemoryAllocation:
    case code::kDevicesUnavailable:
    case code::kNoDevice:
    case code::kInsufficientDriver:
    case code::kSystemDriverMismatch:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace

bool LosesDevice(int code) {
  // From CUDA's manual: errors of a running kernel, of the device's memory and of its bus leave the
  // context in a state in which nothing works any more.
  return code == code::kEccUncorrectable ||
         (code >= code::kIllegalAddress && code < 720 && code != code::kLaunchOutOfResources) ||
         code == code::kUnknown;
}

Error DeviceError(int code, std::string_view doing) {
  TACIT_CHECK(code != runtime::kSuccess, "an error that is none");
  return {Kind(code), fmt::format("{}: {}, {}{}", doing, runtime::ErrorName(code),
                                  runtime::ErrorText(code), Advice(code))};
}

Error NoDeviceError(int code, int driver_version) {
  if (driver_version == 0) {
    return {ErrorCode::kUnavailable,
            fmt::format("no NVIDIA driver is installed; CUDA 13.0 needs {} or newer", kDriverMin)};
  }
  if (driver_version < kCudaVersionMin) {
    return {ErrorCode::kUnavailable,
            fmt::format("the NVIDIA driver knows CUDA {}.{} and is too old for CUDA 13.0, which "
                        "needs driver {} or newer",
                        driver_version / 1000, driver_version % 1000 / 10, kDriverMin)};
  }
  return DeviceError(code, "looking for an NVIDIA device");
}

}  // namespace tacit::cuda
