#include "lab/next_item/sequence_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "console/terminal_line.h"

namespace tacit::lab {
namespace {

// Shows the progress of all runs on the terminal.
class RunsShown {
 public:
  RunsShown(size_t runs, bool show) : runs_(runs), show_(show), line_(clock_) {}
  ~RunsShown() {
    if (drawn_) line_.End();
  }
  // Adds a finished share of a run; from any thread.
  void Add(double share, const std::string& what) {
    std::lock_guard lock(mutex_);
    done_ += share;
    if (!show_ || !line_.is_terminal() || !line_.due()) return;
    line_.Draw(fmt::format("{} {:.1f} of {} runs, {}",
                           console::ProgressBar(done_ / static_cast<double>(runs_)), done_, runs_,
                           what));
    drawn_ = true;
  }

 private:
  const size_t runs_;
  const bool show_;
  const SystemClock clock_;
  std::mutex mutex_;
  console::TerminalLine line_;
  double done_ = 0;
  bool drawn_ = false;
};

Result<SequenceRun> MakeRun(const SequenceTask& task, const SequenceRunner& run, RunsShown* shown) {
  const std::string epsilon = std::isinf(task.epsilon) ? "none" : fmt::format("{:g}", task.epsilon);
  const std::string what = fmt::format("{} at epsilon {}", task.learner, epsilon);
  double told = 0;
  auto made =
      run(task, [&](double share) { shown->Add(share - std::exchange(told, share), what); });
  if (!made) return Fail(std::move(made.error()).Context(what));
  return made;
}

}  // namespace

Status MakeSequenceRuns(const std::vector<SequenceTask>& tasks, uint32_t jobs, bool show,
                        const SequenceRunner& run, SequenceResults* results) {
  RunsShown shown(tasks.size(), show);
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  Status failed;
  const auto work = [&] {
    for (size_t i; (i = next++) < tasks.size();) {
      auto made = MakeRun(tasks[i], run, &shown);
      Status status = made ? results->Add(*made) : Fail(std::move(made.error()));
      if (status) continue;
      std::lock_guard lock(mutex);
      if (failed) failed = std::move(status);
      next = tasks.size();
    }
  };
  std::vector<std::thread> others;
  for (uint32_t t = 1; t < std::min<size_t>(jobs, tasks.size()); ++t) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return failed;
}

}  // namespace tacit::lab
