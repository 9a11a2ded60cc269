#include "http/gate.h"

namespace tacit::serve {

bool Gate::Enter() {
  const std::lock_guard lock(mutex_);
  if (inside_ >= capacity_) return false;
  ++inside_;
  return true;
}

void Gate::Leave() {
  const std::lock_guard lock(mutex_);
  if (--inside_ == 0) empty_.notify_all();
}

bool Gate::WaitEmpty(SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  return empty_.wait_until(lock, deadline, [&] { return inside_ == 0; });
}

}  // namespace tacit::serve
