// The notation is base/bytes.h's.
//
// The blob of a commit, in `deltas`, sealed:
//     delta   := format:u32 commit:u64 previous:string tip:string
//                kept:u32 entry:string*kept           entries it extended, as they were before
//                entries:u32 entry:string*entries     entries it extended or added, as they are now
//                source:string learners:u16 learner*learners
//     format  := 1
//     learner := key:u16 position:string has_rows:u8 has_dense:u8 [rows] [dense]
//     rows    := rows:u64 floats:u64 row:u64*rows end:u64*rows value:f32*floats
//     dense   := parameters:u64 optimizer:u64 f32*parameters f32*optimizer
// `previous` and `tip` hold a `commit tip` each; an entry is a privacy::LedgerEntry, encoded. `row`
// ascends, `end` counts floats and never falls; the last `end` is `floats`.
//
// The tip, in `meta` under `tip`, sealed:
//     commit tip := commit:u64 ledger_head:digest ledger_entries:u64 totals:u32 total*totals total
//     total      := learner:string unit:u8 epsilon:f64 delta:f64 steps:u64
// The last total is that of all learners together, with an empty name. `unit` is 128 more where
// some charge did not cover labels.
//
// A folded learner's dense state, in `meta` under `dense/`, sealed:
//     base    := commit:u64 dense
#include "store/view/delta_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "store/disk/seal.h"

namespace tacit::store {
namespace {

constexpr uint32_t kDeltaFormat = 1;
constexpr uint8_t kNotAllCovered = 128;
static_assert(sizeof(size_t) == sizeof(uint64_t), "row ends are written as u64");

void PutTotal(ByteWriter& writer, const privacy::LedgerTotal& total) {
  const uint8_t reserved = total.not_covered.empty() ? 0 : kNotAllCovered;
  writer.PutString(total.learner)
      .Put(static_cast<uint8_t>(static_cast<uint8_t>(total.unit) | reserved))
      .Put(total.epsilon)
      .Put(total.delta)
      .Put(total.steps);
}

privacy::LedgerTotal GetTotal(ByteReader& reader) {
  privacy::LedgerTotal total;
  total.learner = reader.GetString();
  const auto unit = reader.Get<uint8_t>();
  total.unit = static_cast<privacy::Unit>(unit & ~kNotAllCovered);
  if ((unit & kNotAllCovered) != 0)
    for (const privacy::MechanismRow& row : privacy::kMechanisms)  // one of them has such words
      if (!row.not_covered.empty()) total.not_covered = row.not_covered;
  total.epsilon = reader.Get<double>();
  total.delta = reader.Get<double>();
  total.steps = reader.Get<uint64_t>();
  return total;
}

void PutStrings(ByteWriter& writer, const std::vector<std::string>& strings) {
  writer.Put(static_cast<uint32_t>(strings.size()));
  for (const std::string& text : strings) writer.PutString(text);
}

std::vector<std::string> GetStrings(ByteReader& reader) {
  std::vector<std::string> strings;
  const auto count = reader.Get<uint32_t>();
  for (uint32_t i = 0; i < count && reader.ok(); ++i) strings.emplace_back(reader.GetString());
  return strings;
}

// Reads a vector of `count` elements; fails the reader if the bytes left are too few.
template <class T>
std::vector<T> GetVector(ByteReader& reader, uint64_t count) {
  if (count > reader.remaining() / sizeof(T)) {
    while (reader.ok()) reader.Get<uint8_t>();
    return {};
  }
  std::vector<T> values(count);
  reader.GetArray(std::span<T>(values));
  return values;
}

Status Damaged(std::string_view what) {
  return Fail(ErrorCode::kCorruption,
              fmt::format("{} cannot be read: its fields do not fit", what));
}

// Checks that rows ascend and that every row has its floats.
bool IsOrderly(const RowDelta& delta) {
  return std::is_sorted(delta.end.begin(), delta.end.end()) &&
         std::adjacent_find(delta.rows.begin(), delta.rows.end(), std::greater_equal<>()) ==
             delta.rows.end() &&
         (delta.end.empty() ? 0 : delta.end.back()) == delta.floats.size();
}

std::pair<uint16_t, LearnerCommit> GetLearner(ByteReader& reader) {
  const auto key = reader.Get<uint16_t>();
  LearnerCommit learner;
  learner.position = reader.GetString();
  const bool has_rows = reader.Get<uint8_t>() != 0, has_dense = reader.Get<uint8_t>() != 0;
  if (has_rows) {
    const auto rows = reader.Get<uint64_t>(), floats = reader.Get<uint64_t>();
    auto delta = std::make_shared<RowDelta>();
    delta->rows = GetVector<uint64_t>(reader, rows);
    delta->end = GetVector<size_t>(reader, rows);
    delta->floats = GetVector<float>(reader, floats);
    learner.rows = std::move(delta);
  }
  if (has_dense) {
    const auto parameters = reader.Get<uint64_t>(), optimizer = reader.Get<uint64_t>();
    auto dense = std::make_shared<DenseState>();
    dense->parameters = GetVector<float>(reader, parameters);
    dense->optimizer = GetVector<float>(reader, optimizer);
    learner.dense = std::move(dense);
  }
  return {key, std::move(learner)};
}

}  // namespace

std::string EncodeTip(const CommitTip& tip) {
  ByteWriter writer;
  writer.Put(tip.seq.value).PutArray(std::span<const uint8_t>(tip.head)).Put(tip.ledger_entries);
  writer.Put(static_cast<uint32_t>(tip.learners.size()));
  for (const auto& learner : tip.learners) PutTotal(writer, learner);
  PutTotal(writer, tip.total);
  return std::move(writer).Take();
}

Result<CommitTip> DecodeTip(std::string_view bytes) {
  ByteReader reader(bytes);
  CommitTip tip;
  tip.seq = CommitSeq(reader.Get<uint64_t>());
  reader.GetArray(std::span<uint8_t>(tip.head));
  tip.ledger_entries = reader.Get<uint64_t>();
  const auto learners = reader.Get<uint32_t>();
  for (uint32_t i = 0; i < learners && reader.ok(); ++i) tip.learners.push_back(GetTotal(reader));
  tip.total = GetTotal(reader);
  if (!reader.at_end()) return Fail(Damaged("the commit tip").error());
  return tip;
}

void DeltaBlob::Own(ByteWriter writer) {
  owned_.push_back(std::move(writer).Take());
  pieces_.push_back(owned_.back());
}

template <class T>
void DeltaBlob::View(const std::vector<T>& values) {
  pieces_.emplace_back(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

DeltaBlob::DeltaBlob(const DeltaRecord& record) {
  ByteWriter head;
  head.Put(kDeltaFormat).Put(record.tip.seq.value);
  head.PutString(EncodeTip(record.previous)).PutString(EncodeTip(record.tip));
  PutStrings(head, record.previous_entries);
  PutStrings(head, record.entries);
  head.PutString(record.source_identity).Put(static_cast<uint16_t>(record.learners.size()));
  pieces_.emplace_back();  // the seal, once the rest is known
  Own(std::move(head));
  for (const auto& [key, learner] : record.learners) {
    ByteWriter part;
    part.Put(key).PutString(learner.position);
    part.Put(static_cast<uint8_t>(learner.rows != nullptr));
    part.Put(static_cast<uint8_t>(learner.dense != nullptr));
    if (learner.rows) {
      part.Put(uint64_t{learner.rows->size()}).Put(uint64_t{learner.rows->floats.size()});
      Own(std::exchange(part, {}));
      View(learner.rows->rows);
      View(learner.rows->end);
      View(learner.rows->floats);
    }
    if (learner.dense)
      part.Put(uint64_t{learner.dense->parameters.size()})
          .Put(uint64_t{learner.dense->optimizer.size()});
    Own(std::move(part));
    if (!learner.dense) continue;
    View(learner.dense->parameters);
    View(learner.dense->optimizer);
  }
  ByteWriter seal;
  seal.Put(SealOf(pieces_));
  owned_.push_back(std::move(seal).Take());
  pieces_.front() = owned_.back();
}

size_t DeltaBlob::bytes() const {
  size_t bytes = 0;
  for (std::string_view piece : pieces_) bytes += piece.size();
  return bytes;
}

Result<DeltaRecord> DecodeDelta(std::string_view sealed, CommitSeq seq) {
  const std::string what = fmt::format("the delta of commit {}", seq.value);
  TACIT_ASSIGN(const std::string_view payload, Unseal(sealed, what));
  ByteReader reader(payload);
  const auto format = reader.Get<uint32_t>();
  if (format != kDeltaFormat)
    return Fail(ErrorCode::kRefused,
                fmt::format("{} has format {}, this program reads {}", what, format, kDeltaFormat));
  const auto stored_seq = reader.Get<uint64_t>();
  DeltaRecord record;
  TACIT_ASSIGN(record.previous, DecodeTip(reader.GetString()));
  TACIT_ASSIGN(record.tip, DecodeTip(reader.GetString()));
  record.previous_entries = GetStrings(reader);
  record.entries = GetStrings(reader);
  record.source_identity = reader.GetString();
  const auto learners = reader.Get<uint16_t>();
  for (uint16_t i = 0; i < learners && reader.ok(); ++i) {
    record.learners.push_back(GetLearner(reader));
    const RowDelta* rows = record.learners.back().second.rows.get();
    if (rows != nullptr && !IsOrderly(*rows)) return Fail(Damaged(what).error());
  }
  if (!reader.at_end() || stored_seq != seq.value || record.tip.seq != seq)
    return Fail(Damaged(what).error());
  return record;
}

std::string EncodeDenseBase(CommitSeq seq, const DenseState& state) {
  ByteWriter writer;
  writer.Reserve(24 + 4 * (state.parameters.size() + state.optimizer.size()));
  writer.Put(seq.value).Put(uint64_t{state.parameters.size()});
  writer.Put(uint64_t{state.optimizer.size()});
  writer.PutArray(std::span<const float>(state.parameters));
  writer.PutArray(std::span<const float>(state.optimizer));
  return std::move(writer).Take();
}

Status DecodeDenseBase(std::string_view bytes, LearnerState* learner) {
  ByteReader reader(bytes);
  learner->dense_seq = CommitSeq(reader.Get<uint64_t>());
  const auto parameters = reader.Get<uint64_t>(), optimizer = reader.Get<uint64_t>();
  auto state = std::make_shared<DenseState>();
  state->parameters = GetVector<float>(reader, parameters);
  state->optimizer = GetVector<float>(reader, optimizer);
  if (!reader.at_end()) return Damaged("a dense state");
  learner->dense = std::move(state);
  return {};
}

}  // namespace tacit::store
