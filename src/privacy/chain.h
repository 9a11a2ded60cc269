#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "privacy/ledger.h"

namespace tacit::privacy {

// The format without bounds, of entries and of states; still read.
inline constexpr uint8_t kFormatWithoutBounds = 2;

// The cheap part of VerifyChain, run at every start: checks indices, links and heads.
Status CheckLinks(std::span<const LedgerEntry> entries);

// The part of VerifyChain that looks at the fields of one entry, without its links and its cost. A
// charge that passes may be added up.
Status CheckEntry(const LedgerEntry& entry);

// The error for intact bytes of another format version. There is no migration: an account must not
// be guessed.
tl::unexpected<Error> OtherFormat(std::string_view what, uint8_t found, uint8_t known);

}  // namespace tacit::privacy
