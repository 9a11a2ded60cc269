#include "cuda/learn/plan_watch.h"

#include "base/files/log.h"

namespace tacit::cuda {

void PlanWatch::Tell() {
  spdlog::warn(
      "GPU {}: a step is larger than those for which memory was taken at the start, of up to {}: "
      "it takes more, which stays for later steps. Where the GPU has too little left, training "
      "ends at the last commit",
      device_->facts().ordinal, std::exchange(planned_, {}));
}

}  // namespace tacit::cuda
