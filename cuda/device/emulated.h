#pragma once

#include <cstdint>
#include <map>
#include <string>

// Functions by which tests drive the emulated device (emulated_runtime.cc). Process-wide, as the
// device is.
namespace tacit::cuda::emulated {

// The machine that the emulated device pretends to be. Kernels run on any of them.
struct Machine {
  int driver_version = 13000;  // 0: no driver
  int devices = 1;
  int major = 9, minor = 0;
  uint64_t memory_bytes = uint64_t{1} << 30;
  uint64_t memory_piece_bytes = 1;  // a buffer takes a multiple of it
  // The error that runtime::UseDevice returns; 0 for success.
  int use_device_code = 0;
};
// Forgets failures and starts with this machine. REQUIRES that nothing of a Device is alive.
void Reset(const Machine& machine = {});

// Makes the call of runtime.h that is `calls` further on (1 is the next) fail with this number. A
// number that loses the device makes all later calls fail as well, until Reset.
void FailCall(uint64_t calls, int code);
// Has every call for device or pinned memory fail for want of it from here on, until it is called
// with false or Reset is.
void RefuseMemory(bool refuse);
// The number of calls since Reset. Calls that release an object do not count and never fail.
uint64_t Calls();

// The order of streams when several may run. Streams keep their work until a caller waits for it.
enum class Turns {
  kShuffled,  // the emulator's seed decides
  kLate,      // other streams run only as far as events make them: the least that is promised
};
void SetTurns(Turns turns);

struct KernelUse {
  uint64_t launches = 0;
  uint64_t threads_per_block_min = UINT64_MAX;
};
// The kernels that were launched since Reset, by name.
const std::map<std::string, KernelUse>& Kernels();

// The bytes of device and pinned memory that were not given back; and those of pinned memory alone.
uint64_t BytesTaken();
uint64_t PinnedBytesTaken();

}  // namespace tacit::cuda::emulated
