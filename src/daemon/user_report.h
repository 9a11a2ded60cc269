#pragma once

#include <string_view>

#include "base/result.h"
#include "serve/routes/user_route.h"
#include "store/user_book.h"
#include "wiring/assembly.h"

namespace tacit::daemon {

// All that a store holds of one user, as of its last commit: histories by the catalogue's names,
// and used allowances.
Result<serve::UserReport> ReportUser(const wiring::Assembly& assembly, const store::UserBook& users,
                                     std::string_view id);

}  // namespace tacit::daemon
