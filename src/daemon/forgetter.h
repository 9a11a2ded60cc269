#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "metrics/registry.h"
#include "serve/routes/user_route.h"
#include "store/store.h"
#include "train/opt_out.h"
#include "wiring/assembly.h"

namespace tacit::daemon {

// Forgets users of a running store when the operator asks. Their histories are deleted at once; a
// thread of its own erases the bytes from the files, begins with what an earlier run left, and
// tries again within a minute after a failure. Thread-safe. What it is constructed with must
// outlive it.
class Forgetter {
 public:
  Forgetter(store::Store& store, const wiring::Assembly& assembly, const train::OptOut* opt_out,
            metrics::Registry& registry);
  // Gives up what is being erased; the next run goes on.
  ~Forgetter();
  Forgetter(const Forgetter&) = delete;
  Forgetter& operator=(const Forgetter&) = delete;

  // The operator's commands; valid as long as this object.
  serve::UserCommands Commands();

 private:
  Result<serve::UserReport> Show(std::string_view id) const;
  Result<serve::UserReport> Forget(std::string_view id);
  void Loop();

  store::Store& store_;
  const wiring::Assembly& assembly_;
  const train::OptOut* const opt_out_;  // null: there is none
  const metrics::Counter forgotten_, erased_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = true;                   // an earlier run may have left something
  std::atomic<bool> stopping_ = false;  // gives up what is being erased
  std::thread thread_;                  // the last member: it uses all others
};

}  // namespace tacit::daemon
