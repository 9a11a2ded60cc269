#include "wiring/plans/file_plan.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

namespace tacit::wiring {
namespace {

// Open files besides the store's tables and the public's connections: logs being written, files of
// a running fold and compaction, brokers, the source's files, listening sockets, the operator's
// connections.
constexpr uint64_t kReserve = 192;
constexpr uint64_t kStoreMin = 64;
constexpr uint64_t kStoreMax = 1 << 20;
constexpr uint64_t kConnectionsMin = 16;

}  // namespace

uint64_t RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  rlimit raised = limit;
  raised.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

Result<FilePlan> PlanFiles(const config::Serve& serve, uint64_t limit) {
  const uint64_t wanted = serve.listen.empty() ? 0 : serve.max_connections;
  const uint64_t least = kReserve + kStoreMin + std::min(wanted, kConnectionsMin);
  if (limit < least)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the limit on open files is {}, and at least {} are needed: raise the "
                            "hard limit (ulimit -Hn, or LimitNOFILE= in the unit)",
                            limit, least));
  // The store gets half, plus what connections do not need.
  const uint64_t spare = limit - kReserve;
  const uint64_t store = std::clamp(spare - std::min(wanted, spare / 2), kStoreMin, kStoreMax);
  return FilePlan{.limit = limit,
                  .store = store,
                  .connections = static_cast<uint32_t>(std::min(wanted, spare - store))};
}

}  // namespace tacit::wiring
