#pragma once

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <string>

#include "console/standard_streams.h"

// An end that a sanitizer gives a process, told from one of the product's. libFuzzer ends one that
// aborts in the same way.
inline constexpr int kBrokenExit = 77;
extern "C" const char* __asan_default_options() { return "exitcode=77:detect_leaks=0"; }

namespace tacit::fuzz {

inline uint64_t BytesHeldBy(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/statm", process));
  uint64_t all = 0, held = 0;
  in >> all >> held;
  return held * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Runs what may take long, or much memory, in a child without a network, and kills it then. Returns
// false if the child was ended by anything else than its own will.
inline bool EndsWell(const std::function<int()>& run) {
  constexpr auto kTimeMost = std::chrono::seconds(3);
  constexpr uint64_t kBytesMost = uint64_t{2} << 30;
  const pid_t child = fork();
  if (child == 0) {
    (void)unshare(CLONE_NEWUSER | CLONE_NEWNET);
    _exit(console::RunWithOutput("fuzz", run));
  }
  int status = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (waitpid(child, &status, WNOHANG) == 0) {
    usleep(1000);
    if (std::chrono::steady_clock::now() - begin > kTimeMost || BytesHeldBy(child) > kBytesMost)
      kill(child, SIGKILL);
  }
  return WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) != kBrokenExit;
}

}  // namespace tacit::fuzz
