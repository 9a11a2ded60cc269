#include "daemon/reloader.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "base/files/log.h"
#include "config/changes.h"

namespace tacit::daemon {

namespace {

void TellRefused(const Error& error) {
  LogEvent(spdlog::level::err, "reload_failed", {{"why", error.message}},
           fmt::format("SIGHUP: {}; the configuration stays as it was", error.message));
}

}  // namespace

void Reloader::Reload() {
  const auto read = read_();
  if (!read) return TellRefused(read.error());
  const auto changes = config::ChangesOf(running_, *read);
  if (changes.empty()) return spdlog::info("SIGHUP: the configuration is as it was");
  config::Config next = running_;
  config::TakeReloaded(*read, &next);
  if (const Status taken = take_(next); !taken) return TellRefused(taken.error());
  running_ = std::move(next);
  std::set<std::string> stays;
  for (const config::Change& change : config::ChangesOf(running_, *read)) stays.insert(change.key);
  for (const config::Change& change : changes) {
    const bool taken = !stays.contains(change.key);
    LogEvent(
        taken ? spdlog::level::info : spdlog::level::warn, taken ? "reloaded" : "reload_refused",
        {{"key", change.key}, {"before", change.before}, {"now", change.now}},
        taken
            ? fmt::format("SIGHUP: {} is {} now, and was {}", change.key, change.now, change.before)
            : fmt::format("SIGHUP: {} is {} in the file, and stays {} until tacitd is started "
                          "anew: {}",
                          change.key, change.now, change.before,
                          change.reload == config::AtReload::kTaken
                              ? "listeners are made with it or without it"
                              : config::WhyItStays(change.key)));
  }
}

}  // namespace tacit::daemon
