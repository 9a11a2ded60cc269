#include "support/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>

namespace tacit::test {
namespace {

std::string TempFile() {
  std::string path = std::filesystem::temp_directory_path() / "tacit-test-XXXXXX";
  const int fd = mkstemp(path.data());
  if (fd >= 0) close(fd);
  return path;
}

void RedirectTo(const std::string& path, int fd) {
  const int file = open(path.c_str(), O_WRONLY | O_TRUNC);
  if (file < 0 || dup2(file, fd) < 0) _exit(127);
}

}  // namespace

Process::Process(std::vector<std::string> command, std::vector<std::string> environment)
    : out_path_(TempFile()), err_path_(TempFile()) {
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    for (std::string& entry : environment) putenv(entry.data());
    // A test may have blocked signals of its own.
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    RedirectTo("/dev/null", STDIN_FILENO);
    RedirectTo(out_path_, STDOUT_FILENO);
    RedirectTo(err_path_, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
}

Process::~Process() {
  if (!ended_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove(out_path_, ignored);
  std::filesystem::remove(err_path_, ignored);
}

void Process::Signal(int signal) {
  if (!ended_) kill(pid_, signal);
}

void Process::Suspend() {
  if (ended_) return;
  kill(pid_, SIGSTOP);
  // The end of the process is left for WaitFor to take.
  siginfo_t seen;
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &seen, WSTOPPED | WEXITED | WNOWAIT), 0);
}

std::optional<Ended> Process::WaitFor(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!ended_) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      ended_ = Ended{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                     .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                     .out = Out(),
                     .err = Err()};
    } else if (std::chrono::steady_clock::now() >= deadline) {
      return std::nullopt;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return ended_;
}

std::string Process::Out() const { return ReadFile(out_path_); }
std::string Process::Err() const { return ReadFile(err_path_); }

Ended Run(std::vector<std::string> command, std::vector<std::string> environment,
          std::chrono::milliseconds timeout) {
  const std::string name = command[0];
  Process process(std::move(command), std::move(environment));
  if (auto ended = process.WaitFor(timeout)) return *ended;
  ADD_FAILURE() << name << " did not end in time; it said:\n" << process.Err();
  process.Signal(SIGKILL);
  return process.Wait().value_or(Ended{});
}

std::string PypiFolder(const std::string& name, std::string* missing) {
  const Ended ready = Run({std::string(TACIT_SOURCE_DIR) + "/tools/pypi", name, "ready"});
  if (ready.exit_code == 0) return ready.out.substr(0, ready.out.find('\n'));
  *missing = "needs tools/" + name + "-packages.txt: " + ready.out + ready.err;
  const char* required = std::getenv("TACIT_REQUIRE");
  EXPECT_TRUE(required == nullptr || std::string_view(required).find(name) == std::string::npos)
      << "TACIT_REQUIRE has " << name << ": " << *missing;
  return "";
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace tacit::test
