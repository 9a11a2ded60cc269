#include "base/crash_point.h"

namespace tacit {

void CrashPoint(const char*) {}

}  // namespace tacit
