#pragma once

#include <string>

namespace tacit::wiring {

// The version of this binary, recorded in every ledger entry.
std::string CodeVersion();

}  // namespace tacit::wiring
