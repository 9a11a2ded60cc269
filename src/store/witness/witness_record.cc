// The notation is base/bytes.h's.
//
// The file is two slots, at 0 and at `distance`, a power of two of at least 4096.
// A slot is two equal copies, at its beginning and half a `distance` further on. Zeros lie between
// them; bytes after the second one mean nothing.
//     copy    := bytes:u32 sealed                      `bytes` is the length of `sealed` (seal.h)
//     payload := magic:u32 format:u32 write:u64 distance:u32
//                lineage:byte*32 commit:u64 ledger_head:digest term:byte*16
//                learners:u16 learner*learners         all that the store has
//     magic   := "TWTN"
//     format  := 1
//     learner := name:string steps_charged:u64 has_charged:u8 [charged]
//                has_position:u8 [position:string] prices:u16 priced*prices
//     priced  := charged steps:u64
//     charged := mechanism:u8 noise_multiplier:f64 sigma_selection:f64 sigma_gradient:f64
//                clip_selection:f64 clip_gradient:f64 sampling_rate:f64 sigma_clip:f64 zcdp_rho:f64
//                unit:u8 adjacency:u8 participation:u8 allowance:u64 per_period:u64
//                period_steps:u64 dedupe_window:u64 delta:f64 block_steps:u64
// `write` is one more than that of the write before; even writes go
// into the first slot. `lineage` is in hexadecimal digits. A term of zeros means none. `charged` is
// there once the learner was charged: fields of its last ledger entry. A position is as in
// `offsets`, and is left out where it does not fit into the 512 KiB that all positions have
// together. `prices` are the at most 64 that were charged last, each with all the steps charged it.
#include "store/witness/witness_record.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "store/disk/seal.h"
#include "store/rows/learner_directory.h"
#include "store/witness/price_tally.h"

namespace tacit::store {
namespace {

constexpr uint32_t kMagic = 0x4e545754;  // "TWTN"
constexpr uint32_t kFormat = 1;
constexpr size_t kLineageDigits = 32;
constexpr uint32_t kMostCopyBytes = 16 << 20;
// Limit for all positions in a record, enough for about ten thousand partitions. A commit writes
// them twice.
constexpr size_t kMostPositionBytes = 512 << 10;
constexpr size_t kMostPrices = 64;  // of a learner

void PutCharged(const WitnessedLearner::Charged& charged, ByteWriter* out) {
  const privacy::Charge& c = charged.charge;
  out->Put(static_cast<uint8_t>(c.mechanism));
  for (double number : {c.noise_multiplier, c.sigma_selection, c.sigma_gradient, c.clip_selection,
                        c.clip_gradient, c.sampling_rate, c.sigma_clip, c.zcdp_rho})
    out->Put(number);
  out->Put(static_cast<uint8_t>(charged.unit)).Put(static_cast<uint8_t>(charged.adjacency));
  out->Put(static_cast<uint8_t>(charged.participation));
  const privacy::Bounds& b = charged.bounds;
  out->Put(b.allowance).Put(b.per_period).Put(b.period_steps).Put(b.dedupe_window);
  out->Put(charged.delta).Put(c.block_steps);
}

WitnessedLearner::Charged GetCharged(ByteReader* in) {
  WitnessedLearner::Charged charged;
  privacy::Charge& c = charged.charge;
  c.mechanism = static_cast<privacy::MechanismKind>(in->Get<uint8_t>());
  for (double* number :
       {&c.noise_multiplier, &c.sigma_selection, &c.sigma_gradient, &c.clip_selection,
        &c.clip_gradient, &c.sampling_rate, &c.sigma_clip, &c.zcdp_rho})
    *number = in->Get<double>();
  charged.unit = static_cast<privacy::Unit>(in->Get<uint8_t>());
  charged.adjacency = static_cast<privacy::Adjacency>(in->Get<uint8_t>());
  charged.participation = static_cast<privacy::ParticipationMode>(in->Get<uint8_t>());
  privacy::Bounds& b = charged.bounds;
  for (uint64_t* bound : {&b.allowance, &b.per_period, &b.period_steps, &b.dedupe_window})
    *bound = in->Get<uint64_t>();
  charged.delta = in->Get<double>();
  c.block_steps = in->Get<uint64_t>();
  return charged;
}

void PutLearner(const WitnessedLearner& learner, ByteWriter* out) {
  out->PutString(learner.name).Put(learner.steps);
  out->Put(static_cast<uint8_t>(learner.charged.has_value()));
  if (learner.charged) PutCharged(*learner.charged, out);
  out->Put(static_cast<uint8_t>(learner.position.has_value()));
  if (learner.position) out->PutString(*learner.position);
  out->Put(static_cast<uint16_t>(learner.prices.size()));
  for (const auto& [charged, steps] : learner.prices) {
    PutCharged(charged, out);
    out->Put(steps);
  }
}

WitnessedLearner GetLearner(ByteReader* in) {
  WitnessedLearner learner;
  learner.name = in->GetString();
  learner.steps = in->Get<uint64_t>();
  if (in->Get<uint8_t>() != 0) learner.charged = GetCharged(in);
  if (in->Get<uint8_t>() != 0) learner.position = in->GetString();
  const auto prices = in->Get<uint16_t>();
  for (uint16_t i = 0; i < prices && in->ok(); ++i) {
    const WitnessedLearner::Charged charged = GetCharged(in);
    learner.prices.push_back({charged, in->Get<uint64_t>()});
  }
  return learner;
}

}  // namespace

bool operator==(const WitnessedLearner& a, const WitnessedLearner& b) {
  // Compares the encoded bytes, so that a NaN equals itself.
  const auto bytes = [](const WitnessedLearner& learner) {
    ByteWriter out;
    PutLearner(learner, &out);
    return std::move(out).Take();
  };
  return bytes(a) == bytes(b);
}

std::vector<WitnessedLearner> WitnessLearners(const std::vector<LearnerRecord>& records,
                                              std::span<const std::string> positions,
                                              const privacy::Ledger& ledger,
                                              const PriceTally& prices) {
  TACIT_CHECK(positions.size() == records.size());
  const std::vector<privacy::LedgerTotal> totals = ledger.Learners();
  std::vector<WitnessedLearner> learners;
  size_t room = kMostPositionBytes;
  for (size_t i = 0; i < records.size(); ++i) {
    WitnessedLearner& learner = learners.emplace_back();
    learner.name = records[i].name;
    const auto total = std::ranges::find(totals, learner.name, &privacy::LedgerTotal::learner);
    if (total != totals.end()) learner.steps = total->steps;
    if (const privacy::LedgerEntry* entry = ledger.LastEntryOf(learner.name))
      learner.charged = ChargedIn(*entry);
    auto priced = prices.Of(learner.name);
    priced = priced.last(std::min(priced.size(), kMostPrices));
    learner.prices.assign(priced.begin(), priced.end());
    if (positions[i].size() > room) continue;
    room -= positions[i].size();
    learner.position = positions[i];
  }
  return learners;
}

WitnessedLearner::Charged ChargedIn(const privacy::LedgerEntry& entry) {
  return {.charge = entry.charge,
          .unit = entry.unit,
          .adjacency = entry.adjacency,
          .participation = entry.participation,
          .bounds = entry.bounds,
          .delta = entry.delta};
}

std::string EncodeCopy(const WitnessCopy& copy) {
  const WitnessRecord& record = copy.record;
  TACIT_CHECK(record.lineage.size() == kLineageDigits);
  ByteWriter payload;
  payload.Put(kMagic).Put(kFormat).Put(copy.write).Put(copy.distance);
  payload.PutArray(std::span<const char>(record.lineage)).Put(record.seq.value);
  payload.PutArray(std::span<const uint8_t>(record.head));
  payload.PutArray(std::span<const uint8_t>(record.term));
  payload.Put(static_cast<uint16_t>(record.learners.size()));
  for (const WitnessedLearner& learner : record.learners) PutLearner(learner, &payload);
  ByteWriter out;
  out.PutString(Seal(payload.bytes()));
  return std::move(out).Take();
}

std::optional<WitnessCopy> DecodeCopy(std::string_view bytes) {
  ByteReader outer(bytes);
  const auto length = outer.Get<uint32_t>();
  if (!outer.ok() || length > kMostCopyBytes || length > outer.remaining()) return std::nullopt;
  const auto payload = Unseal(bytes.substr(sizeof(length), length), "a copy");
  if (!payload) return std::nullopt;
  ByteReader in(*payload);
  if (in.Get<uint32_t>() != kMagic || in.Get<uint32_t>() != kFormat) return std::nullopt;
  WitnessCopy copy;
  copy.write = in.Get<uint64_t>();
  copy.distance = in.Get<uint32_t>();
  copy.record.lineage.resize(kLineageDigits);
  in.GetArray(std::span<char>(copy.record.lineage));
  copy.record.seq = CommitSeq(in.Get<uint64_t>());
  in.GetArray(std::span<uint8_t>(copy.record.head));
  in.GetArray(std::span<uint8_t>(copy.record.term));
  const auto learners = in.Get<uint16_t>();
  for (uint16_t i = 0; i < learners && in.ok(); ++i)
    copy.record.learners.push_back(GetLearner(&in));
  if (!in.at_end()) return std::nullopt;
  return copy;
}

bool IsBeforeFirst(std::string_view file) {
  return file.substr(0, 16).find("TWIT", 8) != file.npos;
}

}  // namespace tacit::store
