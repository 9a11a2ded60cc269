#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "privacy/ledger.h"

namespace tacit::privacy {

// The part of VerifyChain that is cheap enough for every start: indices, links and heads.
Status CheckLinks(std::span<const LedgerEntry> entries);

// For bytes that are whole but of another version of a format. There is no migration: an account
// must not be guessed at.
tl::unexpected<Error> OtherFormat(std::string_view what, uint8_t found, uint8_t known);

}  // namespace tacit::privacy
