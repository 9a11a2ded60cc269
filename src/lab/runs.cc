#include "lab/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "base/threads/mutex.h"
#include "console/terminal_line.h"

namespace tacit::lab {
namespace {

std::string DurationText(double seconds) {
  const auto minutes = static_cast<uint64_t>(seconds / 60);
  if (minutes >= 60) return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
  return minutes > 0 ? fmt::format("{} min", minutes) : fmt::format("{:.0f} s", seconds);
}

// Shows the progress of all runs on the terminal.
class RunsShown {
 public:
  RunsShown(size_t runs, bool show)
      : runs_(static_cast<double>(runs)), show_(show), start_(clock_.Now()), line_(clock_) {}
  ~RunsShown() {
    if (drawn_) line_.End();
  }
  // Adds a finished share of a run; from any thread.
  void Add(double share, const std::string& name) {
    const MutexLock lock(mutex_);
    done_ += share;
    if (!show_ || !line_.is_terminal() || !line_.due()) return;
    const double left = Seconds(clock_.Now() - start_) * (runs_ - done_) / std::max(done_, 1e-9);
    line_.Draw(fmt::format("{} {:.1f} of {} runs, {} left, {}", console::ProgressBar(done_ / runs_),
                           done_, runs_, DurationText(left), name));
    drawn_ = true;
  }

 private:
  const double runs_;
  const bool show_;
  const SystemClock clock_;
  const Clock::TimePoint start_;
  Mutex mutex_;
  console::TerminalLine line_ TACIT_GUARDED_BY(mutex_);
  double done_ TACIT_GUARDED_BY(mutex_) = 0;
  bool drawn_ TACIT_GUARDED_BY(mutex_) = false;
};

}  // namespace

Status MakeRuns(const Runs& runs, uint32_t jobs, bool show) {
  RunsShown shown(runs.number, show);
  std::atomic<size_t> next = 0;
  Mutex mutex;
  Status failed;
  const auto work = [&] {
    for (size_t i; (i = next++) < runs.number;) {
      const std::string name = runs.name(i);
      double told = 0;
      Status made =
          runs.make(i, [&](double share) { shown.Add(share - std::exchange(told, share), name); });
      if (made) continue;
      const MutexLock lock(mutex);
      if (failed) failed = Fail(std::move(made.error()).Context(name));
      next = runs.number;
    }
  };
  std::vector<std::thread> others;
  for (uint32_t t = 1; t < std::min<size_t>(jobs, runs.number); ++t) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return failed;
}

}  // namespace tacit::lab
