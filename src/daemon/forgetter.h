#pragma once

#include <string>
#include <string_view>

#include "base/threads/paced_thread.h"
#include "metrics/registry.h"
#include "serve/routes/user_route.h"
#include "store/user_book.h"
#include "train/opt_out.h"
#include "wiring/assembly.h"

namespace tacit::daemon {

// Forgets users of a running store when the operator asks. Their histories are deleted at once; a
// thread of its own erases the bytes from the files, begins with what an earlier run left, and
// tries again within a minute after a failure. Its end gives up what is being erased, and the next
// run goes on. Thread-safe. What it is constructed with must outlive it.
class Forgetter {
 public:
  Forgetter(store::UserBook& users, const wiring::Assembly& assembly, const train::OptOut* opt_out,
            metrics::Registry& registry);

  // The operator's commands; valid as long as this object.
  serve::UserCommands Commands();

 private:
  Result<serve::UserReport> Show(std::string_view id) const;
  Result<serve::UserReport> Forget(std::string_view id);
  bool Erase();

  store::UserBook& users_;
  const wiring::Assembly& assembly_;
  const train::OptOut* const opt_out_;  // null if there is none
  const metrics::Counter forgotten_, erased_;
  PacedThread thread_;  // the last member: it uses all others
};

}  // namespace tacit::daemon
