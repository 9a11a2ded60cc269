#pragma once

#include <span>

#include "base/result.h"
#include "privacy/ledger.h"

namespace tacit::privacy {

// The part of VerifyChain that is cheap enough for every start: indices, links and heads.
Status CheckLinks(std::span<const LedgerEntry> entries);

}  // namespace tacit::privacy
