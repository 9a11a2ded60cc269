#pragma once

#include <string_view>

#include "base/result.h"

namespace tacit::cuda {

// The numbers of the CUDA errors that Tacit distinguishes. They are part of CUDA's stable
// interface; runtime.cc checks them against the toolkit's header when it is compiled.
namespace code {
inline constexpr int kInvalidValue = 1;
inline constexpr int kMemoryAllocation = 2;
inline constexpr int kInvalidConfiguration = 9;
inline constexpr int kInsufficientDriver = 35;
inline constexpr int kDevicesUnavailable = 46;
inline constexpr int kNoDevice = 100;
inline constexpr int kInvalidDevice = 101;
inline constexpr int kNoKernelImageForDevice = 209;
inline constexpr int kEccUncorrectable = 214;
inline constexpr int kUnsupportedPtxVersion = 222;
inline constexpr int kInvalidResourceHandle = 400;
inline constexpr int kIllegalAddress = 700;
inline constexpr int kLaunchOutOfResources = 701;
inline constexpr int kLaunchFailure = 719;
inline constexpr int kSystemDriverMismatch = 803;
inline constexpr int kStreamCaptureUnsupported = 900;
inline constexpr int kStreamCaptureInvalidated = 901;
inline constexpr int kStreamCaptureUnjoined = 904;
inline constexpr int kUnknown = 999;
}  // namespace code

// CUDA 13.0 as the driver counts versions, and the driver that brought it.
inline constexpr int kCudaVersionMin = 13000;
inline constexpr std::string_view kDriverMin = "580";

// Returns true if the error loses the device's context: every later call of the process then fails.
bool LosesDevice(int code);

// Describes a failed call as an Error: what was being done, CUDA's name and sentence, and a remedy
// if one is known. `doing` reads like "copying 4096 bytes". REQUIRES a code other than success.
Error DeviceError(int code, std::string_view doing);

// Says why there is no device at all: no driver, a driver that is too old, a driver without a
// device. `driver_version` as runtime::DriverVersion gives it.
Error NoDeviceError(int code, int driver_version);

}  // namespace tacit::cuda
