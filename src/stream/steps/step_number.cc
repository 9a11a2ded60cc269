#include <atomic>

#include "stream/steps/participation.h"

namespace tacit::stream {

uint64_t NewStepNumber() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

}  // namespace tacit::stream
