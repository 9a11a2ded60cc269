#include "daemon/store_opening.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>
#include <utility>

#include "base/files/log.h"
#include "base/text.h"
#include "base/threads/mutex.h"
#include "console/stop_signals.h"
#include "daemon/service_manager.h"
#include "store/disk/folder.h"
#include "store/disk/unfinished_restore.h"

namespace tacit::daemon {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;
using Opened = Result<std::unique_ptr<store::Store>>;

constexpr milliseconds kGlance(20);
constexpr milliseconds kPatience(800);  // with the glances, less than a second
constexpr milliseconds kStandby(250);
constexpr std::chrono::seconds kTellSystemd(1), kTellLog(5);

// Progress of the opening thread, for the thread that waits for it.
class Opening {
 public:
  // Returns false if the opening is to be given up.
  bool At(const store::OpenProgress& progress) {
    const MutexLock lock(mutex_);
    progress_ = progress;
    return !stopping_;
  }
  void Stop() { stopping_ = true; }
  std::string Text(const std::string& path) const {
    const MutexLock lock(mutex_);
    std::string text = fmt::format("opening store {}: {}", path, progress_.doing);
    if (progress_.of > 0)
      text += fmt::format(", {} of {}", WithThousands(progress_.done), WithThousands(progress_.of));
    return text;
  }

 private:
  std::atomic<bool> stopping_ = false;
  mutable Mutex mutex_;
  store::OpenProgress progress_ TACIT_GUARDED_BY(mutex_){.doing = "beginning"};
};

// Reports the opening to systemd and the log at intervals.
class Teller {
 public:
  void Tell(const Opening& opening, const std::string& path) {
    const auto now = Steady::now();
    if (now - systemd_ < kTellSystemd) return;
    systemd_ = now;
    NotifyStarting(opening.Text(path));
    if (now - log_ < kTellLog) return;
    log_ = now;
    spdlog::info("{}", opening.Text(path));
  }

 private:
  Steady::time_point systemd_ = Steady::now(), log_ = systemd_ - kTellLog + kTellSystemd;
};

}  // namespace

Opened OpenWhileListening(store::StoreOptions options, console::StopSignals& signals,
                          console::ExitCode when_stuck) {
  const std::string path = options.path;
  Opening opening;
  options.on_open = [&](const store::OpenProgress& progress) { return opening.At(progress); };
  std::promise<Opened> promise;
  std::future<Opened> opened = promise.get_future();
  std::thread thread([&] { promise.set_value(store::Store::Open(std::move(options))); });
  Teller teller;
  while (opened.wait_for(kGlance) != std::future_status::ready) {
    teller.Tell(opening, path);
    if (!signals.WaitFor(milliseconds(0))) continue;
    opening.Stop();
    spdlog::info("asked to stop while {}: given up, and nothing is lost", opening.Text(path));
    if (opened.wait_for(kPatience) == std::future_status::ready) break;
    // RocksDB cannot be interrupted. The store is left as after a kill; the next start recovers it.
    spdlog::default_logger()->flush();
    std::_Exit(when_stuck);
  }
  thread.join();
  Opened store = opened.get();
  if (signals.WaitFor(milliseconds(0))) return std::unique_ptr<store::Store>();
  return store;
}

Result<bool> WaitUntilFree(const std::string& store, console::StopSignals& signals) {
  for (bool warned = false;;) {
    // The first wait keeps a start from being tried again and again, should it find the store held
    // in a way that cannot be asked for here.
    NotifyAlive();
    if (signals.WaitFor(kStandby)) return false;
    TACIT_ASSIGN(const bool held, store::IsHeldByAnother(store));
    if (held) continue;
    TACIT_ASSIGN(const store::Restoring restored, store::IsBeingRestored(store));
    if (restored == store::Restoring::kNo) return true;
    if (restored == store::Restoring::kMayBe && !std::exchange(warned, true))
      spdlog::warn(
          "{} is another user's, and cannot be asked whether a restore of store {} runs: this is "
          "taken for one and waited for. If none runs, remove the file",
          store::RestoreLockFile(store), store);
  }
}

}  // namespace tacit::daemon
