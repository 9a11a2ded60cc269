#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/siphash.h"
#include "wiring/assembly.h"
#include "wiring/restore/gap.h"

namespace tacit::wiring {

// Checks that the configuration's source has the offsets that the gaps' learners have come to:
// kRefused names learner, partition and offset. A source that cannot be opened, or is not the one
// that the copy has read, is left to the start, which refuses it.
Status CheckReach(const Assembly& assembly, const std::string& source_identity,
                  std::span<const FoundGap> gaps);

// Reads the gaps' records again from the configuration's source, and counts the steps that each of
// their users can have been in: gaps of Users::kAll become kCounted. `source_identity` and `key`
// are the copy's. A source that delivers nothing for as long as `patience` has the rest no more. An
// error tells why the records cannot be counted, and every gap is as it was.
Status CountUsersAgain(const Assembly& assembly, const std::string& source_identity,
                       const SipHash::Key& key, std::span<FoundGap> gaps,
                       std::chrono::milliseconds patience = std::chrono::seconds(30));

}  // namespace tacit::wiring
