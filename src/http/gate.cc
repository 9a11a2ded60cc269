#include "http/gate.h"

namespace tacit::http {

bool Gate::Enter() {
  const MutexLock lock(mutex_);
  if (inside_ >= capacity_) return false;
  ++inside_;
  return true;
}

void Gate::Leave() {
  const MutexLock lock(mutex_);
  if (--inside_ == 0) empty_.NotifyAll();
}

bool Gate::WaitEmpty(SteadyTime deadline) {
  const MutexLock lock(mutex_);
  return empty_.WaitUntil(mutex_, deadline, [&]() TACIT_REQUIRES(mutex_) { return inside_ == 0; });
}

}  // namespace tacit::http
