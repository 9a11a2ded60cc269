#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files/log.h"
#include "base/result.h"
#include "console/stop_signals.h"
#include "daemon/daemon.h"
#include "daemon/front.h"
#include "daemon/service_metrics.h"
#include "daemon/watchdog.h"
#include "metrics/registry.h"
#include "serve/api.h"
#include "train/ledger_metrics.h"
#include "wiring/assembly.h"
#include "wiring/plans/file_plan.h"

namespace tacit::daemon {

// The parts that every mode of tacitd has: the server with its files, metrics of the process, the
// configuration that is read again, and the watchdog. A mode opens it, tells of its start, makes
// parts of its own, lets it answer from them and runs it. Used by one thread.
class Service {
 public:
  // Reads the configuration and the files that it names, before a mode opens its store.
  // kInvalidArgument names what is wrong. The arguments outlive it.
  static Result<std::unique_ptr<Service>> Open(const wiring::Assembly& assembly, const Start& start,
                                               metrics::Registry& registry,
                                               console::StopSignals& signals);
  // The same for a mode that only serves: kInvalidArgument where no caller could reach it.
  static Result<std::unique_ptr<Service>> OpenToServe(const wiring::Assembly& assembly,
                                                      const Start& start,
                                                      metrics::Registry& registry,
                                                      console::StopSignals& signals);

  // The division of the files that this process may have open.
  const wiring::FilePlan& files() const { return files_; }
  // Metrics of a ledger that this process does not write.
  train::LedgerMetrics MakeLedgerMetrics() const;

  // Logs the first line, which says in `text` what the mode does with the store at this commit,
  // and the warnings of the configuration behind it.
  void TellStart(const std::string& store, uint64_t commit, std::string_view text,
                 std::vector<LogField> more = {}) const;

  // Shows metrics of the service and starts the server, which is none where the configuration names
  // no address. Of `services` a mode fills in what it answers from and what it can say of itself;
  // what follows from the configuration is filled in here.
  Status Answer(serve::Services services, ServiceParts parts);

  // The mode's share in the run.
  struct Work {
    std::string ready;                         // what the service manager is told
    std::vector<Watchdog::Stage> stages = {};  // beside the server's
    // Takes over its part of a configuration that was read again.
    std::function<void(const config::Config&)> change = [](const config::Config&) {};
    std::function<void()> reload = [] {};  // what it reads again itself
    std::chrono::milliseconds look{100};   // the time between two questions:
    std::function<bool()> goes_on = [] { return true; };
    std::function<void()> stop = [] {};  // called before the server stops
  };
  // Runs until a signal asks for a stop, which returns true, or the work does not go on. After a
  // signal answers go on for serve.drain_ms. The server has stopped then. SIGHUP reads again the
  // configuration, the server's files and what `work` has.
  bool Run(const Work& work);

 private:
  Service(const wiring::Assembly& assembly, const Start& start, metrics::Registry& registry,
          console::StopSignals& signals)
      : assembly_(assembly), start_(start), registry_(registry), signals_(signals) {}

  const wiring::Assembly& assembly_;
  const Start& start_;
  metrics::Registry& registry_;
  console::StopSignals& signals_;
  const SystemClock clock_;
  config::Config written_;  // the configuration as it was read
  wiring::FilePlan files_;
  std::unique_ptr<Front> front_;
};

}  // namespace tacit::daemon
