#include "console/standard_streams.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "console/exit_code.h"
#include "console/shortage.h"

namespace tacit::console {
namespace {

// Standard error may be what failed, so that nothing is thrown here.
int ReportLost(const char* program, const char* why) {
  std::fprintf(stderr, "%s: what was printed is not complete: %s\n", program, why);
  return kExitFailed;
}

int ReportThrown(const char* program, std::string why) {
  std::ranges::replace(why, '\n', ' ');
  return Report(program, {ErrorCode::kInternal, std::move(why)});
}

}  // namespace

void HoldStandardStreams() {
  // Else a limit on file sizes would end the process in the middle of a file.
  ::signal(SIGXFSZ, SIG_IGN);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one, since those below are open.
    (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int RunWithOutput(const char* program, const std::function<int()>& body) {
  int code = kExitFailed;
  try {
    code = body();
  } catch (const std::exception& error) {
    // From fmt for a stream that takes no more, or else from a library for what nobody foresaw.
    if (std::ferror(stdout) != 0 || std::ferror(stderr) != 0)
      return ReportLost(program, error.what());
    const char* const shortage = ShortageText(error);
    code = ReportThrown(program, shortage != nullptr ? shortage : error.what());
  }
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return code;
  // A failure before the last flush left no errno.
  const int lost = ReportLost(program, flushed ? "writing it failed" : std::strerror(errno));
  return code == kExitDone ? lost : code;
}

}  // namespace tacit::console
