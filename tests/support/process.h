#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "support/eventually.h"
#include "support/temp_dir.h"

namespace tacit::test {

// The end of a program, and what it said.
struct Ended {
  int exit_code = -1;  // -1: killed by `signal`
  int signal = 0;
  std::string out, err;
};

// A child process with its output collected in files. Killed when the object goes.
class Process {
 public:
  // `environment` entries are "NAME=value", on top of the test's own.
  explicit Process(std::vector<std::string> command, std::vector<std::string> environment = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Signal(int signal);
  // SIGSTOP; returns when every thread has stopped.
  void Suspend();
  void Continue() { Signal(SIGCONT); }
  // The end, or nothing when it has not come within a test's patience.
  std::optional<Ended> Wait() { return WaitFor(kPatience); }
  // The end, or nothing when it has not come in time.
  std::optional<Ended> WaitFor(std::chrono::milliseconds timeout);
  // The output written so far.
  std::string Out() const;
  std::string Err() const;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  std::string out_path_, err_path_;
  std::optional<Ended> ended_;
};

// Runs a program to its end; kills it and fails the test after `timeout`.
Ended Run(std::vector<std::string> command, std::vector<std::string> environment = {},
          std::chrono::milliseconds timeout = 4 * kPatience);

// The folder of the packages that tools/NAME-packages.txt lists. "", with the reason, if they are
// not there, and a failure too where TACIT_REQUIRE asks for NAME.
std::string PypiFolder(const std::string& name, std::string* missing);

std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, std::string_view bytes);

}  // namespace tacit::test
