// An entry of the ledger, byte by byte. The notation is base/bytes.h's.
//     entry := letter:u8 format:u8   "E", 1
//              growth:u8             1: no run; from here on the learner's model is another
//              index:u64             place in the chain, from 0
//              learner:string        its id
//              before:string         of a growth with another id: the one until then; else empty
//              mechanism:u8          MechanismKind of charge.h
//              noise_multiplier:f64  of the step's Gaussian queries together; 0: unbounded;
//                                    infinite: it has none
//              sigma_selection:f64 sigma_gradient:f64
//                                    parts of the step's noise; 0: no such query
//              clip_selection:f64 clip_gradient:f64
//                                    the norms they are multiples of
//              sampling_rate:f64     probability that an eligible unit is in the step; `once`: 1
//              sigma_clip:f64        noise of adaptive clipping's count; 0: no such query
//              zcdp_rho:f64          of the queries that no sampling amplifies
//              block_steps:u64       steps of a block, in one of which a unit is; 0: there are
//                                    none
//              unit:u8               1 event, 2 user
//              adjacency:u8          1 zero-out, 2 add-remove, 3 replace-one
//              participation:u8      1 once, 2 poisson, 3 allocate
//              bounds
//              steps:u64             in the run; 0: a growth, or entries before have paid for
//              them first_commit:u64 last_commit:u64 first_time_ms:i64 last_time_ms:i64
//                                    of those commits, since 1970, UTC; never falls
//              delta:f64             the delta that epsilon is stated at
//              worst:spending        of the learner's worst unit, this run included
//              epsilon:f64           upper bound for `worst`
//              model_fingerprint:digest code_version:string
//              ranges_digest:digest  running digest of the salted offset ranges (ledger.cc)
//              previous_head:digest  32 zero bytes for entry 0
//              head:digest           SHA-256 of "tacit.ledger.entry.1" and all bytes before it
//     bounds := allowance:u64        unit user: steps that a user is in or eligible for, over the
//                                    life of the learner; 0: no bound
//               per_period:u64       unit user, `once`: of them in a period; 0: no bound
//               period_steps:u64     unit user, and `allocate`: steps that a held period counts
//                                    for; else 0
//               dedupe_window:u64    a record is a copy if this many offsets before it hold its
//                                    (user, event id); 0: ids are not compared
// spending.cc has the grammar of a spending.
#include "base/bytes.h"
#include "privacy/chain.h"
#include "privacy/ledger.h"

namespace tacit::privacy {
namespace {

constexpr char kEntryLetter = 'E';

// Encodes all fields but the head.
void EncodeFields(const LedgerEntry& e, ByteWriter* out) {
  out->Put(kEntryLetter).Put(kLedgerFormat).Put(static_cast<uint8_t>(e.is_growth));
  out->Put(e.index).PutString(e.learner).PutString(e.before);
  out->Put(static_cast<uint8_t>(e.charge.mechanism))
      .Put(e.charge.noise_multiplier)
      .Put(e.charge.sigma_selection)
      .Put(e.charge.sigma_gradient)
      .Put(e.charge.clip_selection)
      .Put(e.charge.clip_gradient)
      .Put(e.charge.sampling_rate)
      .Put(e.charge.sigma_clip)
      .Put(e.charge.zcdp_rho)
      .Put(e.charge.block_steps)
      .Put(static_cast<uint8_t>(e.unit))
      .Put(static_cast<uint8_t>(e.adjacency))
      .Put(static_cast<uint8_t>(e.participation))
      .Put(e.bounds.allowance)
      .Put(e.bounds.per_period)
      .Put(e.bounds.period_steps)
      .Put(e.bounds.dedupe_window);
  out->Put(e.steps).Put(e.first_commit).Put(e.last_commit);
  out->Put(e.first_time_ms).Put(e.last_time_ms).Put(e.delta);
  e.worst.EncodeTo(out);
  out->Put(e.epsilon);
  out->PutArray(std::span<const uint8_t>(e.model_fingerprint)).PutString(e.code_version);
  out->PutArray(std::span<const uint8_t>(e.ranges_digest))
      .PutArray(std::span<const uint8_t>(e.previous_head));
}

// Reads an enumeration whose values are first..last.
template <class Enum>
bool GetEnum(ByteReader* in, Enum first, Enum last, Enum* value) {
  *value = static_cast<Enum>(in->Get<uint8_t>());
  return *value >= first && *value <= last;
}

bool DecodeFields(ByteReader* in, LedgerEntry* e) {
  const auto growth = in->Get<uint8_t>();
  if (growth > 1) return false;
  e->is_growth = growth == 1;
  e->index = in->Get<uint64_t>();
  e->learner = in->GetString();
  e->before = in->GetString();
  if (!GetEnum(in, MechanismKind::kNonPrivate, kLastMechanism, &e->charge.mechanism)) return false;
  for (double* number :
       {&e->charge.noise_multiplier, &e->charge.sigma_selection, &e->charge.sigma_gradient,
        &e->charge.clip_selection, &e->charge.clip_gradient, &e->charge.sampling_rate,
        &e->charge.sigma_clip, &e->charge.zcdp_rho})
    *number = in->Get<double>();
  e->charge.block_steps = in->Get<uint64_t>();
  if (!GetEnum(in, Unit::kEvent, kLastUnit, &e->unit) ||
      !GetEnum(in, Adjacency::kZeroOut, kLastAdjacency, &e->adjacency) ||
      !GetEnum(in, ParticipationMode::kOnce, kLastParticipationMode, &e->participation))
    return false;
  for (uint64_t* number : {&e->bounds.allowance, &e->bounds.per_period, &e->bounds.period_steps,
                           &e->bounds.dedupe_window, &e->steps, &e->first_commit, &e->last_commit})
    *number = in->Get<uint64_t>();
  e->first_time_ms = in->Get<int64_t>();
  e->last_time_ms = in->Get<int64_t>();
  e->delta = in->Get<double>();
  if (!Spending::Decode(in, &e->worst)) return false;
  e->epsilon = in->Get<double>();
  in->GetArray(std::span<uint8_t>(e->model_fingerprint));
  e->code_version = in->GetString();
  for (Digest* digest : {&e->ranges_digest, &e->previous_head, &e->head})
    in->GetArray(std::span<uint8_t>(*digest));
  return in->at_end();
}

}  // namespace

std::string LedgerEntry::Encode() const {
  ByteWriter out;
  EncodeFields(*this, &out);
  out.PutArray(std::span<const uint8_t>(head));
  return std::move(out).Take();
}

Result<LedgerEntry> LedgerEntry::Decode(std::string_view bytes) {
  TACIT_RETURN_IF_ERROR(CheckFormat("a ledger entry", bytes, kEntryLetter));
  ByteReader in(bytes.substr(2));
  LedgerEntry entry;
  if (!DecodeFields(&in, &entry))
    return Fail(ErrorCode::kCorruption, "a ledger entry is not well-formed");
  return entry;
}

Digest LedgerEntry::ComputeHead() const {
  ByteWriter fields;
  EncodeFields(*this, &fields);
  return Sha256().Update("tacit.ledger.entry.1").Update(fields.bytes()).Finish();
}

}  // namespace tacit::privacy
