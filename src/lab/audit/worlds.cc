#include "lab/audit/worlds.h"

#include <utility>
#include <vector>

#include "base/threads/mutex.h"
#include "base/threads/worker_pool.h"

namespace tacit::lab {

Status RunInBothWorlds(uint64_t runs, uint32_t workers, const RunOnceIn& once,
                       audit::RunStatistics* statistics) {
  std::vector<double> without(runs), with(runs);
  Mutex mutex;
  Status failed;
  WorkerPool pool({.workers = workers});
  pool.Run(runs, [&](size_t begin, size_t end, size_t worker) {
    for (; begin < end; ++begin)
      for (const bool canary : {false, true}) {
        auto seen = once(worker, canary);
        if (seen) {
          (canary ? with : without)[begin] = *seen;
          continue;
        }
        const MutexLock lock(mutex);
        failed = Fail(std::move(seen.error()));
        return;
      }
  });
  TACIT_RETURN_IF_ERROR(std::move(failed));
  statistics->without.insert(statistics->without.end(), without.begin(), without.end());
  statistics->with.insert(statistics->with.end(), with.begin(), with.end());
  return {};
}

}  // namespace tacit::lab
