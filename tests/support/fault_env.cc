// System calls that fail on demand, linked into the fault tests' daemon in place of the C
// library's: TACIT_TEST_FAULT=CALL:PART:N:ERRNO:COUNT lets the N-th such call (from 1) on a file
// whose path holds PART fail with this number, and the COUNT - 1 that follow. CALL is fdatasync or
// write.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string>

namespace {

struct Fault {
  std::string call, part;
  int first = 0, error = 0, count = 0;
};

const Fault& Wanted() {
  static const Fault fault = [] {
    Fault read;
    const char* text = getenv("TACIT_TEST_FAULT");
    std::istringstream in(text == nullptr ? "" : text);
    char colon;
    std::getline(in, read.call, ':');
    std::getline(in, read.part, ':');
    in >> read.first >> colon >> read.error >> colon >> read.count;
    return read;
  }();
  return fault;
}

bool Fails(const char* call, int fd) {
  const Fault& fault = Wanted();
  if (fault.first == 0 || fault.call != call) return false;
  char path[512];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = readlink(link.c_str(), path, sizeof(path));
  if (length < 0 ||
      std::string(path, static_cast<size_t>(length)).find(fault.part) == std::string::npos)
    return false;
  static std::atomic<int> calls = 0;
  const int number = ++calls;
  if (number < fault.first || number >= fault.first + fault.count) return false;
  errno = fault.error;
  return true;
}

}  // namespace

extern "C" {

int fdatasync(int fd) {
  return Fails("fdatasync", fd) ? -1 : static_cast<int>(syscall(SYS_fdatasync, fd));
}

ssize_t write(int fd, const void* bytes, size_t size) {
  return Fails("write", fd) ? -1 : static_cast<ssize_t>(syscall(SYS_write, fd, bytes, size));
}

}  // extern "C"
