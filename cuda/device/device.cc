#include "cuda/device/device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/check.h"
#include "cuda/device/errors.h"
#include "cuda/device/runtime.h"

namespace tacit::cuda {
namespace {

std::string UuidText(const char (&bytes)[16]) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(bytes[i]));
  }
  return text;
}

Result<int> CountDevices(int* driver_version) {
  if (const int code = runtime::DriverVersion(driver_version); code != runtime::kSuccess)
    *driver_version = 0;
  int count = 0;
  const int code = runtime::DeviceCount(&count);
  // A driver without a device answers with an error; a count of 0 is the same thing said otherwise.
  if (code != runtime::kSuccess) return Fail(NoDeviceError(code, *driver_version));
  if (count == 0) return Fail(NoDeviceError(code::kNoDevice, *driver_version));
  return count;
}

}  // namespace

Device::Device(DeviceFacts facts) : facts_(std::move(facts)), owner_pid_(getpid()) {}
Device::~Device() = default;

Status Device::Health() const {
  if (!lost_) return {};
  const MutexLock lock(mutex_);
  return health_;
}

void Device::CheckOwner() const {
  TACIT_CHECK(getpid() == owner_pid_, "a forked child must not use its parent's device");
}

Status Device::Check(int code, std::string_view doing) {
  TACIT_RETURN_IF_ERROR(Health());
  if (code == runtime::kSuccess) return {};
  Error error = DeviceError(code, fmt::format("GPU {}: {}", facts_.ordinal, doing));
  if (!LosesDevice(code)) return Fail(std::move(error));
  const MutexLock lock(mutex_);
  if (health_) health_ = Fail(std::move(error));
  lost_ = true;
  return health_;
}

Status Device::BindThread() {
  return Check(runtime::BindThread(facts_.ordinal), "taking it up in another thread");
}

Result<std::unique_ptr<Device>> OpenDevice(int ordinal) {
  DeviceFacts facts;
  facts.ordinal = ordinal;
  TACIT_ASSIGN(const int count, CountDevices(&facts.driver_version));
  if (ordinal < 0 || ordinal >= count) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("there is no GPU {}: this machine has {}, counted from 0", ordinal,
                            count == 1 ? "one" : fmt::format("{}", count)));
  }
  const std::string opening = fmt::format("opening GPU {}", ordinal);
  runtime::Properties properties;
  if (const int code = runtime::GetProperties(ordinal, &properties); code != runtime::kSuccess)
    return Fail(DeviceError(code, opening));
  if (properties.major < kMajorMin) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("GPU {}, {}, has compute capability {}.{}; this build has code for "
                    "{}.0 and newer",
                    ordinal, properties.name, properties.major, properties.minor, kMajorMin));
  }
  facts.name = properties.name;
  facts.uuid = UuidText(properties.uuid);
  facts.major = properties.major;
  facts.minor = properties.minor;
  facts.multiprocessors = properties.multiprocessors;
  facts.shared_bytes_per_block_max = properties.shared_bytes_per_block_max;
  facts.memory_piece_bytes = properties.memory_piece_bytes;
  if (const int code = runtime::UseDevice(ordinal); code != runtime::kSuccess)
    return Fail(DeviceError(code, opening));
  if (const int code = runtime::MemoryFree(&facts.memory_free_bytes, &facts.memory_bytes);
      code != runtime::kSuccess)
    return Fail(DeviceError(code, opening));
  return std::unique_ptr<Device>(new Device(std::move(facts)));
}

Result<uint64_t> Device::FreeBytes() {
  size_t free = 0, total = 0;
  TACIT_RETURN_IF_ERROR(Check(runtime::MemoryFree(&free, &total), "asking for its free memory"));
  return uint64_t{free};
}

}  // namespace tacit::cuda
