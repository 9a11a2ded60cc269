#pragma once

#include <string>

#include "base/result.h"
#include "wiring/assembly.h"

// Looks at what lies in a source before it is learnt from. It changes nothing at the brokers, and
// leaves no position, no offset of a group, no dead letter and no metric behind.
namespace tacit::wiring {

// The end of `tacitd --check-config`: comments on what the brokers say of a topic, and on how many
// of the source's first records can be learnt from. Brokers that do not answer within a moment are
// a note: the rest holds without them.
struct SourceLook {
  std::string text;
  Status first_start = {};  // CheckFirstRecords', of the same records
};
SourceLook LookAtSource(const Assembly& assembly);

// The look of a store's first start. kInvalidArgument: fewer than 1 in 100 of the first 1,000
// records can be learnt from; the message has reason, place and keys, and nothing of a record.
// Passes where source.accept_unreadable or source.halt_above is set, where fewer than 100 records
// are there, and where they cannot be read. `past_cut`: as in LiveParts.
Status CheckFirstRecords(const Assembly& assembly, const std::string& past_cut = "");

}  // namespace tacit::wiring
