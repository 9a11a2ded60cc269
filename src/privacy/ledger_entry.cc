#include "base/bytes.h"
#include "privacy/chain.h"
#include "privacy/ledger.h"

namespace tacit::privacy {
namespace {

constexpr uint8_t kFormatWithoutBounds = 2;

// Keeps these hashes apart from hashes of anything else.
std::string_view Domain(uint8_t format) {
  return format == kFormatWithoutBounds ? "tacit.ledger.entry.v2" : "tacit.ledger.entry.v3";
}

// All fields but the head.
void EncodeFields(const LedgerEntry& e, ByteWriter* out) {
  out->Put(e.format).Put(e.index).PutString(e.learner);
  out->Put(static_cast<uint8_t>(e.charge.mechanism))
      .Put(e.charge.noise_multiplier)
      .Put(e.charge.sigma_selection)
      .Put(e.charge.sigma_gradient)
      .Put(e.charge.clip_selection)
      .Put(e.charge.clip_gradient)
      .Put(e.charge.sampling_rate)
      .Put(e.charge.sigma_clip)
      .Put(e.charge.zcdp_rho);
  out->Put(static_cast<uint8_t>(e.unit))
      .Put(static_cast<uint8_t>(e.adjacency))
      .Put(static_cast<uint8_t>(e.participation));
  if (e.format != kFormatWithoutBounds)
    out->Put(e.bounds.allowance)
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
  e->format = in->Get<uint8_t>();
  e->index = in->Get<uint64_t>();
  e->learner = in->GetString();
  if (!GetEnum(in, MechanismKind::kNonPrivate, MechanismKind::kCounts, &e->charge.mechanism))
    return false;
  for (double* number :
       {&e->charge.noise_multiplier, &e->charge.sigma_selection, &e->charge.sigma_gradient,
        &e->charge.clip_selection, &e->charge.clip_gradient, &e->charge.sampling_rate,
        &e->charge.sigma_clip, &e->charge.zcdp_rho})
    *number = in->Get<double>();
  if (!GetEnum(in, Unit::kEvent, Unit::kUser, &e->unit) ||
      !GetEnum(in, Adjacency::kZeroOut, Adjacency::kReplaceOne, &e->adjacency) ||
      !GetEnum(in, ParticipationMode::kOnce, ParticipationMode::kPoisson, &e->participation))
    return false;
  if (e->format != kFormatWithoutBounds)
    for (uint64_t* bound : {&e->bounds.allowance, &e->bounds.per_period, &e->bounds.period_steps,
                            &e->bounds.dedupe_window})
      *bound = in->Get<uint64_t>();
  for (uint64_t* number : {&e->steps, &e->first_commit, &e->last_commit})
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
  const uint8_t format = bytes.empty() ? kFormat : static_cast<uint8_t>(bytes[0]);
  if (format != kFormat && format != kFormatWithoutBounds)
    return OtherFormat("a ledger entry", format, kFormat);
  ByteReader in(bytes);
  LedgerEntry entry;
  if (!DecodeFields(&in, &entry))
    return Fail(ErrorCode::kCorruption, "a ledger entry is not well-formed");
  return entry;
}

Digest LedgerEntry::ComputeHead() const {
  ByteWriter fields;
  EncodeFields(*this, &fields);
  return Sha256().Update(Domain(format)).Update(fields.bytes()).Finish();
}

}  // namespace tacit::privacy
