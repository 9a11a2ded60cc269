#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "privacy/ledger.h"

namespace tacit::privacy {

// The format of entries and of states, which have it after a letter of their own.
inline constexpr uint8_t kLedgerFormat = 1;

// The cheap part of VerifyChain, run at every start: checks indices, links and heads.
Status CheckLinks(std::span<const LedgerEntry> entries);

// The part of VerifyChain that looks at the fields of one entry, without its links and its cost. A
// charge that passes may be added up.
Status CheckEntry(const LedgerEntry& entry);

// Checks the letter and the format that bytes begin with. kRefused: they are of another format.
// There is no migration: an account must not be guessed.
Status CheckFormat(std::string_view what, std::string_view bytes, char letter);

}  // namespace tacit::privacy
