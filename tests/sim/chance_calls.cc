// Chance, and the numbers that the kernel gives to processes and threads.
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "sim/native.h"
#include "sim/scheduler.h"

namespace tacit::sim {
namespace {

constexpr pid_t kProcess = 4711;

void Fill(Scheduler& world, void* bytes, size_t size) {
  world.Point(Call::kRandom);
  auto* to = static_cast<unsigned char*>(bytes);
  for (size_t at = 0; at < size; at += 8) {
    const uint64_t drawn = world.Random();
    memcpy(to + at, &drawn, std::min<size_t>(8, size - at));
  }
}

}  // namespace
}  // namespace tacit::sim

using tacit::sim::Scheduler;

// libstdc++ asks the processor by an instruction, which no call of the C library sees.
std::random_device::result_type std::random_device::_M_getval() {
  Scheduler* const world = Scheduler::current();
  if (world != nullptr) return static_cast<result_type>(world->Random());
  result_type drawn = 0;
  tacit::sim::RawCall(SYS_getrandom, reinterpret_cast<long>(&drawn), sizeof(drawn));
  return drawn;
}

// NOLINTBEGIN: the C library's names
extern "C" {

ssize_t getrandom(void* bytes, size_t size, unsigned flags) {
  TACIT_SIMULATED_OR(TACIT_NATIVE(getrandom)(bytes, size, flags));
  tacit::sim::Fill(*world, bytes, size);
  return static_cast<ssize_t>(size);
}

int getentropy(void* bytes, size_t size) {
  TACIT_SIMULATED_OR(TACIT_NATIVE(getentropy)(bytes, size));
  tacit::sim::Fill(*world, bytes, size);
  return 0;
}

uint32_t arc4random() noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(arc4random)());
  return static_cast<uint32_t>(world->Random());
}

void arc4random_buf(void* bytes, size_t size) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(arc4random_buf)(bytes, size));
  tacit::sim::Fill(*world, bytes, size);
}

// OpenSSL asks the processor and the kernel by instructions of its own.
int RAND_bytes(unsigned char* bytes, int size) {
  TACIT_SIMULATED_OR(TACIT_NATIVE(RAND_bytes)(bytes, size));
  tacit::sim::Fill(*world, bytes, static_cast<size_t>(size));
  return 1;
}

pid_t getpid() noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(getpid)());
  return tacit::sim::kProcess;
}

pid_t gettid() noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(gettid)());
  return tacit::sim::kProcess + static_cast<pid_t>(Scheduler::self().number);
}

}  // extern "C"
// NOLINTEND
