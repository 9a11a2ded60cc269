// A trainer or a replica like tacitd's, whose feed's topic is in librdkafka's mock of a broker: the
// mock answers no question for a topic's settings, and so they are not asked.
//   feed_child trainer|replica CONFIG [KEY=VALUE...]
#include <string>
#include <vector>

#include "base/files/log.h"
#include "console/exit_code.h"
#include "console/stop_signals.h"
#include "daemon/daemon.h"
#include "wiring/assembly.h"

namespace {

tacit::Result<int> RunChild(const std::string& what, const std::string& path,
                            const std::vector<std::string>& overrides) {
  tacit::console::HoldHangups();
  TACIT_ASSIGN(tacit::config::Config config, tacit::config::Load(path, overrides));
  tacit::InitLogging(tacit::LogFormat::kText, config.log.level);
  TACIT_ASSIGN(tacit::wiring::Assembly assembly, tacit::wiring::Assemble(std::move(config)));
  const tacit::daemon::Start start{
      .config = path,
      .read =
          [&] { return tacit::config::Load(path, overrides, tacit::config::LogFiles::kUnread); },
      .check_feed = [] { return tacit::Status(); }};
  if (what == "replica") return tacit::daemon::RunReplica(assembly, start, "");
  return tacit::daemon::RunDaemon(std::move(assembly), start, {});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return tacit::console::kExitUsage;
  const auto code = RunChild(argv[1], argv[2], {argv + 3, argv + argc});
  return code ? *code : tacit::console::Report("feed_child", code.error());
}
