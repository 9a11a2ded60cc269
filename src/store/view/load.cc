// Small values of `meta`, sealed. The notation is base/bytes.h's.
//     folded  := commit:u64 learners:u32 (learner:u16 commit_of_dense_state:u64)*learners
//     term    := id:byte*16 head_before:digest       under `term/` and the term's first commit
//     ancestors := count:u32 (lineage:string through:u64 head:digest)*count
// `head_before` is the ledger head of the commit before the term.
#include "store/view/load.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "store/disk/format.h"
#include "store/disk/seal.h"

namespace tacit::store {
namespace {

Status Broken(const Rocks& rocks, std::string_view what) {
  return Fail(ErrorCode::kCorruption, fmt::format("store {}: {}", rocks.path(), what));
}

Result<std::string> Need(const Rocks& rocks, std::string_view key) {
  TACIT_ASSIGN(auto value, rocks.Get(Family::kMeta, key));
  if (!value) return Fail(Broken(rocks, fmt::format("'{}' is missing", key)).error());
  return *std::move(value);
}

// Reads the identity of the store and of its learners.
Status LoadIdentity(const Rocks& rocks, Loaded& loaded) {
  TACIT_ASSIGN(const bool written, CheckStoreFormat(rocks));
  if (!written) return {};
  TACIT_RETURN_IF_ERROR(rocks.rows_status());
  TACIT_ASSIGN(loaded.lineage, Need(rocks, meta::kLineage));
  TACIT_ASSIGN(const auto release, rocks.Get(Family::kMeta, meta::kRelease));
  loaded.release = release.has_value();
  TACIT_ASSIGN(const auto replica, rocks.Get(Family::kMeta, meta::kReplica));
  loaded.replica = replica.has_value();
  if (!loaded.release && !loaded.replica) {
    TACIT_ASSIGN(const std::string salt, Need(rocks, meta::kSalt));
    ByteReader(salt).GetArray(std::span<uint8_t>(loaded.salt));
    TACIT_ASSIGN(const std::string user_key, Need(rocks, meta::kUserKey));
    if (user_key.size() != loaded.user_key.size()) return Broken(rocks, "its identity is damaged");
    ByteReader(user_key).GetArray(std::span<uint8_t>(loaded.user_key));
  }
  TACIT_ASSIGN(const auto ancestors, rocks.Get(Family::kMeta, meta::kAncestors));
  if (ancestors) {
    TACIT_ASSIGN(loaded.ancestors, DecodeAncestors(*ancestors));
  }
  TACIT_ASSIGN(const std::string shards, Need(rocks, meta::kShards));
  loaded.shards = ByteReader(shards).Get<uint32_t>();
  TACIT_ASSIGN(const auto learners, rocks.Scan(Family::kMeta, meta::kLearnerPrefix));
  for (const auto& [key, bytes] : learners) {
    const uint64_t learner = SequenceOf(std::string_view(key).substr(meta::kLearnerPrefix.size()));
    if (learner != loaded.records.size()) return Broken(rocks, "a learner's record is missing");
    TACIT_ASSIGN(LearnerRecord record, DecodeLearner(static_cast<uint16_t>(learner), bytes));
    loaded.records.push_back(std::move(record));
  }
  loaded.learners.resize(loaded.records.size());
  loaded.forms.resize(loaded.records.size());
  TACIT_ASSIGN(auto forms, rocks.Scan(Family::kMeta, meta::kFormPrefix));
  for (auto& [key, form] : forms) {
    const uint64_t learner = SequenceOf(std::string_view(key).substr(meta::kFormPrefix.size()));
    if (learner >= loaded.forms.size()) return Broken(rocks, "a learner's record is missing");
    loaded.forms[learner] = std::move(form);
  }
  if (loaded.lineage.size() != 32 || loaded.shards == 0)
    return Broken(rocks, "its identity is damaged");
  return {};
}

// Checks the chain's links only; the ledger's own tools verify the entries' contents.
Status LoadLedger(const Rocks& rocks, Loaded& loaded) {
  TACIT_ASSIGN(const auto encoded, rocks.Scan(Family::kLedger, ""));
  Digest head{};
  for (const auto& [key, bytes] : encoded) {
    TACIT_ASSIGN(privacy::LedgerEntry entry, privacy::LedgerEntry::Decode(bytes));
    if (SequenceOf(key) != loaded.entries.size() || entry.index != loaded.entries.size() ||
        entry.previous_head != head)
      return Broken(rocks, fmt::format("ledger entry {} breaks the chain", loaded.entries.size()));
    head = entry.head;
    loaded.entries.push_back(std::move(entry));
  }
  if (loaded.entries.size() != loaded.tip.ledger_entries || head != loaded.tip.head)
    return Broken(rocks, fmt::format("the ledger ends at entry {}, its tip says {}",
                                     loaded.entries.size(), loaded.tip.ledger_entries));
  return {};
}

// The marker is in the same sorted file as the rows. If it is below `folded`, a file is missing; if
// above, a crash came between ingesting a file and deleting its deltas.
Status CheckRowsMarker(const Rocks& rocks, rocksdb::ColumnFamilyHandle* family, CommitSeq folded) {
  std::string sealed;
  const auto got = rocks.db().Get({}, family, AsSlice(kRowsMarkerKey), &sealed);
  if (got.IsNotFound())
    return folded.value == 0 ? Status{} : Broken(rocks, "the rows' marker is missing");
  TACIT_RETURN_IF_ERROR(ToStatus(got, "reading rows of store " + rocks.path()));
  TACIT_ASSIGN(const std::string_view marker, Unseal(sealed, "the rows' marker"));
  const auto rows = ByteReader(marker).Get<uint64_t>();
  if (rows < folded.value)
    return Broken(rocks, fmt::format("rows reach commit {}, but commits up to {} are folded", rows,
                                     folded.value));
  return {};
}

Status LoadFolded(const Rocks& rocks, Loaded& loaded) {
  TACIT_ASSIGN(const auto bytes, rocks.Get(Family::kMeta, meta::kFolded));
  if (bytes) {
    TACIT_ASSIGN(const FoldedRecord folded, DecodeFolded(*bytes));
    loaded.folded = folded.seq;
    for (const auto& [learner, seq] : folded.dense) {
      TACIT_ASSIGN(const std::string dense, Need(rocks, LearnerKey(meta::kDensePrefix, learner)));
      if (learner >= loaded.learners.size()) return Broken(rocks, "a learner's record is missing");
      LearnerState& state = loaded.learners[learner];
      TACIT_RETURN_IF_ERROR(DecodeDenseBase(dense, &state));
      if (state.dense_seq != seq)
        return Broken(rocks,
                      fmt::format("the dense state of learner '{}' is of commit {}, not {}",
                                  loaded.records[learner].name, state.dense_seq.value, seq.value));
    }
  }
  for (auto* family : rocks.row_families())
    TACIT_RETURN_IF_ERROR(CheckRowsMarker(rocks, family, loaded.folded));
  return {};
}

// Row counts and widths of a delta must fit the learner it names.
bool Fits(uint16_t key, const RowDelta* rows, const std::vector<LearnerRecord>& records) {
  if (key >= records.size()) return false;
  if (rows == nullptr) return true;
  const RowLayout& layout = records[key].layout;
  for (size_t i = 0; i < rows->size(); ++i) {
    const uint64_t row = rows->rows[i];
    if (row >= layout.space.rows() ||
        rows->Row(i).size() != layout.RowFloats(layout.space.TableOf(row)))
      return false;
  }
  return true;
}

Status LoadDeltas(const Rocks& rocks, Loaded& loaded) {
  const std::unique_ptr<rocksdb::Iterator> it(
      rocks.db().NewIterator({}, rocks.family(Family::kDeltas)));
  CommitSeq last = loaded.folded;
  // Those before are of the outbox (outbox.h).
  for (it->Seek(SequenceKey(last.value + 1)); it->Valid(); it->Next()) {
    const CommitSeq next(SequenceOf(it->key().ToStringView()));
    if (!loaded.replica && next.value != last.value + 1)
      return Broken(rocks, fmt::format("the delta of commit {} is missing", last.value + 1));
    auto delta = DecodeDelta(it->value().ToStringView(), next);
    if (!delta) return Fail(std::move(delta.error()).Context("store " + rocks.path()));
    // The versions of a replica leave numbers out.
    if (loaded.replica && delta->previous.seq != last)
      return Broken(rocks,
                    fmt::format("the delta of version {} is missing", delta->previous.seq.value));
    for (const auto& [key, commit] : delta->learners)
      if (!Fits(key, commit.rows.get(), loaded.records))
        return Broken(rocks, fmt::format("the delta of commit {} does not fit its learner {}",
                                         next.value, key));
    loaded.deltas.push_back(*std::move(delta));
    last = next;
  }
  TACIT_RETURN_IF_ERROR(ToStatus(it->status(), "reading store " + rocks.path()));
  if (last != loaded.tip.seq)
    return Broken(rocks, fmt::format("deltas end before commit {}, the tip is {}", last.value + 1,
                                     loaded.tip.seq.value));
  return {};
}

Status LoadReleased(const Rocks& rocks, Loaded& loaded) {
  TACIT_ASSIGN(auto states, rocks.Scan(Family::kMeta, meta::kReleasedPrefix));
  for (auto& [key, state] : states) {
    const uint64_t learner = SequenceOf(std::string_view(key).substr(meta::kReleasedPrefix.size()));
    if (learner >= loaded.learners.size()) return Broken(rocks, "a learner's record is missing");
    loaded.learners[learner].released = std::make_shared<const std::string>(std::move(state));
    const auto place = static_cast<uint16_t>(learner);
    TACIT_ASSIGN(const std::string seq,
                 Need(rocks, LearnerKey(meta::kMechanismCommitPrefix, place)));
    loaded.learners[learner].released_seq = CommitSeq(ByteReader(seq).Get<uint64_t>());
  }
  return {};
}

Status LoadTerms(const Rocks& rocks, Loaded& loaded) {
  TACIT_ASSIGN(const auto terms, rocks.Scan(Family::kMeta, meta::kTermPrefix));
  for (const auto& [key, bytes] : terms) {
    Term term{.first =
                  CommitSeq(SequenceOf(std::string_view(key).substr(meta::kTermPrefix.size())))};
    ByteReader reader(bytes);
    reader.GetArray(std::span<uint8_t>(term.id));
    reader.GetArray(std::span<uint8_t>(term.head_before));
    if (!reader.at_end() || term.id == kNoTerm || term.first > loaded.tip.seq)
      return Broken(rocks, fmt::format("the term of commit {} is damaged", term.first.value));
    loaded.terms.Add(term);
  }
  return {};
}

Status LoadPositions(const Rocks& rocks, Loaded& loaded) {
  TACIT_ASSIGN(const auto positions, rocks.Scan(Family::kOffsets, ""));
  for (const auto& [key, position] : positions) {
    if (SequenceOf(key) >= loaded.learners.size())
      return Broken(rocks, "a learner's record is missing");
    loaded.learners[SequenceOf(key)].position = position;
  }
  return {};
}

// A store without histories has only the time of its last commit.
Status LoadKnownTime(const Rocks& rocks, Loaded& loaded) {
  for (const privacy::LedgerEntry& entry : loaded.entries)
    loaded.known_time_ms = std::max(loaded.known_time_ms, entry.last_time_ms);
  TACIT_ASSIGN(const auto known, rocks.Get(Family::kMeta, meta::kKnownTime));
  if (known) loaded.known_time_ms = ByteReader(*known).Get<int64_t>();
  return {};
}

}  // namespace

Result<Loaded> LoadAccount(const Rocks& rocks) {
  Loaded loaded;
  TACIT_RETURN_IF_ERROR(LoadIdentity(rocks, loaded));
  if (loaded.fresh()) return loaded;
  TACIT_ASSIGN(const auto tip, rocks.Get(Family::kMeta, meta::kTip));
  if (tip) {
    TACIT_ASSIGN(loaded.tip, DecodeTip(*tip));
    TACIT_ASSIGN(loaded.ledger_state, Need(rocks, meta::kLedgerState));
    TACIT_ASSIGN(loaded.source_identity, Need(rocks, meta::kSource));
  }
  TACIT_RETURN_IF_ERROR(LoadTerms(rocks, loaded));
  TACIT_RETURN_IF_ERROR(LoadLedger(rocks, loaded));
  TACIT_RETURN_IF_ERROR(LoadPositions(rocks, loaded));
  return loaded;
}

Result<Loaded> Load(const Rocks& rocks) {
  TACIT_ASSIGN(Loaded loaded, LoadAccount(rocks));
  if (loaded.fresh()) return loaded;
  TACIT_RETURN_IF_ERROR(LoadFolded(rocks, loaded));
  TACIT_RETURN_IF_ERROR(LoadDeltas(rocks, loaded));
  TACIT_RETURN_IF_ERROR(LoadReleased(rocks, loaded));
  TACIT_RETURN_IF_ERROR(LoadKnownTime(rocks, loaded));
  return loaded;
}

View Loaded::MakeView() const {
  View view{lineage, tip, std::make_shared<const Terms>(terms), source_identity, learners, {}};
  view.ancestors = ancestors;
  for (const DeltaRecord& delta : deltas) {
    view.overlay.push_back(MakeOverlay(delta, records.size()));
    for (const auto& [key, commit] : delta.learners) {
      if (!commit.dense) continue;
      view.learners[key].dense = commit.dense;
      view.learners[key].dense_seq = delta.tip.seq;
    }
  }
  return view;
}

StoreChain Loaded::Chain() const {
  StoreChain chain{
      .lineage = lineage, .seq = tip.seq, .terms = terms, .heads = {}, .ancestors = ancestors};
  chain.heads[tip.seq] = tip.head;
  for (const DeltaRecord& delta : deltas) chain.heads[delta.previous.seq] = delta.previous.head;
  return chain;
}

Status Loaded::TakeBackLast() {
  TACIT_CHECK(!deltas.empty(), "a folded commit cannot be taken back");
  const DeltaRecord last = std::move(deltas.back());
  deltas.pop_back();
  tip = last.previous;
  entries.resize(tip.ledger_entries);
  const size_t changed = last.previous_entries.size();
  if (changed > entries.size())
    return Fail(ErrorCode::kCorruption, "a delta names more ledger entries than there were");
  for (size_t i = 0; i < changed; ++i) {
    TACIT_ASSIGN(entries[entries.size() - changed + i],
                 privacy::LedgerEntry::Decode(last.previous_entries[i]));
  }
  return {};
}

std::string EncodeTerm(const Term& term) {
  ByteWriter writer;
  writer.PutArray(std::span<const uint8_t>(term.id));
  writer.PutArray(std::span<const uint8_t>(term.head_before));
  return std::move(writer).Take();
}

std::string EncodeFolded(const FoldedRecord& record) {
  ByteWriter writer;
  writer.Put(record.seq.value).Put(static_cast<uint32_t>(record.dense.size()));
  for (const auto& [learner, seq] : record.dense) writer.Put(learner).Put(seq.value);
  return std::move(writer).Take();
}

Result<FoldedRecord> DecodeFolded(std::string_view bytes) {
  ByteReader reader(bytes);
  FoldedRecord record{CommitSeq(reader.Get<uint64_t>()), {}};
  const auto learners = reader.Get<uint32_t>();
  for (uint32_t i = 0; i < learners && reader.ok(); ++i) {
    const auto learner = reader.Get<uint16_t>();
    record.dense.emplace_back(learner, CommitSeq(reader.Get<uint64_t>()));
  }
  if (!reader.at_end()) return Fail(ErrorCode::kCorruption, "'folded' is damaged");
  return record;
}

std::string EncodeAncestors(std::span<const Ancestor> ancestors) {
  ByteWriter writer;
  writer.Put(static_cast<uint32_t>(ancestors.size()));
  for (const Ancestor& ancestor : ancestors)
    writer.PutString(ancestor.lineage)
        .Put(ancestor.through.value)
        .PutArray(std::span<const uint8_t>(ancestor.head));
  return std::move(writer).Take();
}

Result<std::vector<Ancestor>> DecodeAncestors(std::string_view bytes) {
  ByteReader reader(bytes);
  std::vector<Ancestor> ancestors;
  const auto count = reader.Get<uint32_t>();
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    Ancestor& ancestor = ancestors.emplace_back();
    ancestor.lineage = reader.GetString();
    ancestor.through = CommitSeq(reader.Get<uint64_t>());
    reader.GetArray(std::span<uint8_t>(ancestor.head));
  }
  if (!reader.at_end()) return Fail(ErrorCode::kCorruption, "'ancestors' is damaged");
  return ancestors;
}

}  // namespace tacit::store
