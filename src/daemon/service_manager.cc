#include "daemon/service_manager.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "base/files/unique_fd.h"

namespace tacit::daemon {
namespace {

// Sends lines to the socket that $NOTIFY_SOCKET names: a path, or behind an @ a name that is in no
// folder (sd_notify(3)). A manager that is not there must not hinder the daemon.
void Notify(std::string_view lines) {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  if (name == nullptr) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = std::strlen(name);
  if (length < 2 || length >= sizeof(address.sun_path) || (*name != '/' && *name != '@')) return;
  std::memcpy(address.sun_path, name, length);
  if (*name == '@') address.sun_path[0] = '\0';
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return;
  (void)::sendto(socket.get(), lines.data(), lines.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
}

// A line end in a text would begin another assignment.
std::string OneLine(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  return text;
}

// The number in a variable of the environment; 0 where there is none.
uint64_t NumberIn(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return 0;
  uint64_t number = 0;
  const char* const end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, number);
  return error == std::errc() && stopped == end ? number : 0;
}

constexpr std::string_view kMoreTime = "EXTEND_TIMEOUT_USEC=30000000";

}  // namespace

bool UnderServiceManager() { return std::getenv("NOTIFY_SOCKET") != nullptr; }

void NotifyStarting(const std::string& status) {
  Notify(fmt::format("STATUS={}\nWATCHDOG=1\n{}", OneLine(status), kMoreTime));
}
void NotifyReady(const std::string& status) {
  Notify(fmt::format("READY=1\nSTATUS={}", OneLine(status)));
}
void NotifyStatus(const std::string& status) { Notify(fmt::format("STATUS={}", OneLine(status))); }
void NotifyReloading() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  Notify(fmt::format(
      "RELOADING=1\nMONOTONIC_USEC={}",
      static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000));
}
void NotifyReloaded() { Notify("READY=1"); }
void NotifyStopping() { Notify(fmt::format("STOPPING=1\n{}", kMoreTime)); }
void NotifyAlive() { Notify("WATCHDOG=1"); }

std::chrono::microseconds WatchdogPatience() {
  const uint64_t pid = NumberIn("WATCHDOG_PID");
  if (pid != 0 && pid != static_cast<uint64_t>(::getpid())) return {};
  // A longer one than any process lives is none, and would not fit a clock.
  constexpr std::chrono::microseconds kMost = std::chrono::hours(24 * 365);
  return std::chrono::microseconds(
      std::min<uint64_t>(NumberIn("WATCHDOG_USEC"), uint64_t{kMost.count()}));
}

}  // namespace tacit::daemon
