#pragma once

#include <functional>

#include "config/config.h"

namespace tacit::daemon {

// Reads the configuration again on SIGHUP. A running daemon takes over the keys whose
// description says so. The log names each change, and each key that has another value in
// the file and stays. A file that cannot be read changes nothing; nor does one that names another
// file that is bad. Used by one thread.
class Reloader {
 public:
  using Read = std::function<Result<config::Config>()>;
  using Take = std::function<Status(const config::Config& running)>;

  // `running` was read by `read`. `take` hands the daemon the configuration that it goes on with;
  // where that fails, the daemon goes on as it was.
  Reloader(config::Config running, Read read, Take take)
      : running_(std::move(running)), read_(std::move(read)), take_(std::move(take)) {}

  void Reload();

 private:
  config::Config running_;
  const Read read_;
  const Take take_;
};

}  // namespace tacit::daemon
