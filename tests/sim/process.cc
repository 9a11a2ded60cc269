#include "sim/process.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace tacit::sim {

Life Live(const Options& options, const std::function<int()>& body) {
  std::fflush(nullptr);
  const int output = memfd_create("output", MFD_CLOEXEC);
  const pid_t child = fork();
  if (output < 0 || child < 0) std::abort();
  if (child == 0) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    int exit_code = 0;
    const Outcome outcome = Simulate(options, [&] { exit_code = body(); });
    std::printf("%s\n", outcome.finding.c_str());
    std::fflush(nullptr);
    _exit(outcome.finding.empty() ? exit_code : kStuck);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) std::abort();
  Life life{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
            .words = std::string(static_cast<size_t>(lseek(output, 0, SEEK_END)), '\0')};
  (void)!pread(output, life.words.data(), life.words.size(), 0);
  close(output);
  options.disk->EndProcess();
  return life;
}

}  // namespace tacit::sim
