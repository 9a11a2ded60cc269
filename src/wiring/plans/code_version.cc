#include "wiring/plans/code_version.h"

namespace tacit::wiring {

std::string CodeVersion() { return TACIT_VERSION; }

}  // namespace tacit::wiring
