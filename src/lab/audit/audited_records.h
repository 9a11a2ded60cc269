#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "event/batch.h"
#include "event/codec.h"
#include "lab/audit/audit_parts.h"
#include "stream/source.h"
#include "wiring/assembly.h"

// The records of an audit of trained models: a source's first ones, of which some are left out and
// some are changed. Those left out keep their offsets, as records that cannot be read do; so
// one unit's absence moves no other unit to another step.
namespace tacit::lab {

// The id of an example's unit: a keyed hash of its user, or its offset.
uint64_t UnitOf(const event::Batch& batch, size_t example, bool of_users);

// Opens the source of a configuration, which ends after this many records are read (or a poll's
// worth more).
Result<std::unique_ptr<stream::Source>> OpenFirstRecords(const config::Source& source,
                                                         uint64_t records_most);

// Calls `take` with the good records of the source, in order; `of_users`: of those that name their
// user alone.
using TakeBatch = std::function<Status(const event::Batch& batch)>;
Status ForAuditedRecords(const wiring::Assembly& assembly, bool of_users, uint64_t records_most,
                         const TakeBatch& take);

// Gives a batch's changed records the other label; for a model of the next item, of `items`, drawn
// items that were taken. Leaves out records that `keep` says no to.
void ArrangeRecords(const AuditParts& parts, bool reference, bool of_users, uint32_t items,
                    const std::function<bool(const AuditParts::Place&)>& keep, event::Batch* batch);

// The source's codec, of whose records those alone come that are learnt from. `parts` must outlive
// it.
std::unique_ptr<event::Codec> MakeArrangedCodec(std::unique_ptr<event::Codec> codec,
                                                const AuditParts& parts, bool reference,
                                                bool of_users, uint32_t items);

}  // namespace tacit::lab
