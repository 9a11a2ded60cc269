#include "feed/assembler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "feed/row_blocks.h"

namespace tacit::feed {
namespace {

// The part of a version end that those of all partitions of a version have in common.
std::string CommonPart(VersionEnd end) {
  end.partition = 0;
  end.records = 0;
  end.checksum = 0;
  return EncodeVersionEnd(end);
}

// Sorts rows by number; of a row that is there more than once the last one stays.
template <class Rows>
std::shared_ptr<const store::RowDelta> InOrder(Rows from) {
  if (std::ranges::adjacent_find(from.rows, std::ranges::greater_equal()) == from.rows.end())
    return std::make_shared<store::RowDelta>(
        store::RowDelta{std::move(from.rows), std::move(from.end), std::move(from.floats)});
  std::vector<size_t> order(from.rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return from.rows[i]; });
  auto delta = std::make_shared<store::RowDelta>();
  delta->rows.reserve(order.size());
  delta->end.reserve(order.size());
  delta->floats.reserve(from.floats.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t at = order[i];
    if (i + 1 < order.size() && from.rows[order[i + 1]] == from.rows[at]) continue;
    const auto floats = from.floats.begin();
    const auto begin = static_cast<ptrdiff_t>(at == 0 ? 0 : from.end[at - 1]);
    delta->rows.push_back(from.rows[at]);
    delta->floats.insert(delta->floats.end(), floats + begin,
                         floats + static_cast<ptrdiff_t>(from.end[at]));
    delta->end.push_back(delta->floats.size());
  }
  return delta;
}

// Joins the chunks of a learner, if there are any; those of an older, longer state are left over.
template <class Chunks>
Result<std::shared_ptr<const std::string>> JoinChunks(const Chunks& chunks, uint32_t count,
                                                      uint64_t bytes, std::string_view what) {
  if (chunks.empty()) return std::shared_ptr<const std::string>();
  auto joined = std::make_shared<std::string>();
  joined->reserve(bytes);
  for (uint64_t i = 0; i < count; ++i) {
    const auto chunk = chunks.find(i);
    if (chunk == chunks.end() || chunk->second.of != count ||
        chunk->second.version != chunks.begin()->second.version)
      return Fail(
          ErrorCode::kCorruption,
          fmt::format("{}: chunk {} of {} is missing, or of another version", what, i, count));
    *joined += chunk->second.bytes;
  }
  if (joined->size() != bytes)
    return Fail(ErrorCode::kCorruption,
                fmt::format("{}: {} bytes, the mark says {}", what, joined->size(), bytes));
  return std::shared_ptr<const std::string>(std::move(joined));
}

}  // namespace

Result<FeedIdentity> IdentityOf(const PlacedEnd& placed) {
  FeedIdentity identity{.feed = placed.end.feed,
                        .lineage = placed.origin.lineage,
                        .models = placed.origin.model,
                        .partitions = placed.end.partitions,
                        .whole_since = placed.end.whole_since,
                        .learners = {}};
  for (const LearnerAtEnd& learner : placed.end.learners) {
    TACIT_ASSIGN(store::LearnerRecord record, store::DecodeLearner(learner.key, learner.record));
    if (learner.key != identity.learners.size())
      return Fail(ErrorCode::kCorruption, "is a mark that lacks a learner");
    identity.learners.push_back(std::move(record));
  }
  return identity;
}

Assembler::Assembler(std::string topic, FeedIdentity identity, std::optional<CommitSeq> base,
                     Beginning beginning, Moves moves)
    : topic_(std::move(topic)),
      identity_(std::move(identity)),
      moves_(moves),
      base_(base),
      hole_(!base),
      settled_(base.has_value()),
      broken_(beginning == Beginning::kOfTopic) {
  for (uint32_t i = 0; i < identity_.partitions; ++i) {
    Part& part = parts_[static_cast<int32_t>(i)];
    part.knows = true;
    if (beginning == Beginning::kOfTopic) continue;
    TACIT_CHECK(base, "who reads on from a version has one");
    part.ours = true;
    part.ended = part.version = *base;
  }
}

tl::unexpected<Error> Assembler::Wrong(ErrorCode code, CommitSeq version,
                                       std::string_view what) const {
  return Fail(code, fmt::format("topic '{}': version {}: {}", topic_, version.value, what));
}

Status Assembler::Take(const stream::KafkaTopicRecord& record) {
  TACIT_ASSIGN(const Record decoded, DecodeTopicRecord(topic_, record));
  std::optional<PlacedEnd> end;
  if (decoded.place.kind == RecordKind::kVersionEnd) {
    TACIT_ASSIGN(end, DecodeTopicEnd(topic_, record, decoded));
  }
  Status taken = TakeDecoded(record, decoded, std::move(end));
  if (taken) return taken;
  return Fail(std::move(taken.error())
                  .Context(fmt::format("topic '{}': partition {}, offset {}", topic_,
                                       record.partition, record.offset)));
}

bool Assembler::IsOld(const Record& record, const Part& part) const {
  if (part.ours) return false;
  return record.origin.lineage != identity_.lineage ||
         record.origin.version < identity_.whole_since;
}

Status Assembler::CheckOrigin(const Record& record, const Part& part) const {
  const RecordOrigin& origin = record.origin;
  if (origin.lineage != identity_.lineage)
    return Fail(ErrorCode::kRefused,
                fmt::format("is of the store of lineage {}, and what came before of {}: another "
                            "store publishes there now",
                            ToHex(origin.lineage), ToHex(identity_.lineage)));
  if (origin.version < part.version)
    return Fail(ErrorCode::kRefused,
                fmt::format("is of version {}, after one of version {}: an older copy of the "
                            "trainer's store publishes there now",
                            origin.version.value, part.version.value));
  const RecordPlace& place = record.place;
  const bool of_all = place.kind == RecordKind::kVersionEnd || place.kind == RecordKind::kLedger;
  if (!of_all && place.learner >= identity_.learners.size())
    return Fail(ErrorCode::kRefused,
                fmt::format("is of learner {}, which the marks do not have", place.learner));
  const uint64_t model =
      of_all ? identity_.models : ModelId(identity_.learners[place.learner].model_fingerprint);
  if (origin.model == model) return {};
  return Fail(
      ErrorCode::kRefused,
      fmt::format("is of another model than those before{}: the trainer's models have changed",
                  of_all ? "" : " of learner '" + identity_.learners[place.learner].name + "'"));
}

Status Assembler::TakeDecoded(const stream::KafkaTopicRecord& record, const Record& decoded,
                              std::optional<PlacedEnd> end) {
  const auto found = parts_.find(record.partition);
  if (found == parts_.end())
    return Fail(
        ErrorCode::kRefused,
        fmt::format("is in a partition beyond the {} that the marks have", identity_.partitions));
  Part& part = found->second;
  if (IsOld(decoded, part)) {
    part.knows = false;
    return {};
  }
  TACIT_RETURN_IF_ERROR(CheckOrigin(decoded, part));
  part.ours = true;
  if (decoded.origin.version != part.version) {
    part.knows = part.knows && part.records == 0;  // else the version end between them is gone
    part.version = decoded.origin.version;
    part.records = part.checksum = 0;
  }
  if (base_ && decoded.origin.version <= *base_) {  // the base has it
    if (end) part.ended = part.version;
    part.knows = part.knows || end;
    return {};
  }
  Pending& pending = pending_[decoded.origin.version];
  const uint64_t bytes = record.key.value_or("").size() + record.value.value_or("").size();
  pending.bytes += bytes;
  pending_bytes_ += bytes;
  if (end) return TakeEnd(record.partition, *std::move(end), part);
  pending.records += 1;
  part.records += 1;
  part.checksum += decoded.checksum;
  switch (decoded.place.kind) {
    case RecordKind::kRow:
      pending.row_bytes += bytes;
      return TakeRow(decoded, &pending);
    case RecordKind::kBlock:
      pending.row_bytes += bytes;
      return TakeBlock(decoded, &pending);
    case RecordKind::kDense:
      return TakeChunk(decoded, &pending.dense[decoded.place.learner]);
    case RecordKind::kReleased:
      return TakeChunk(decoded, &pending.released[decoded.place.learner]);
    case RecordKind::kLedger:
      pending.entries[decoded.place.number] = std::string(decoded.payload);
      return {};
    case RecordKind::kVersionEnd:
      break;
  }
  return {};
}

Result<uint32_t> Assembler::TableOf(const Record& record, bool blocks) const {
  if (moves_ == Moves::kNeeded && !record.origin.moves)
    return Fail(ErrorCode::kRefused,
                "has rows that do not tell how they moved: its trainer has no workers.topic");
  const store::LearnerRecord& learner = identity_.learners[record.place.learner];
  const auto table = learner.layout.TableOfNumber(record.place.table);
  if (table && SendsBlocks(learner.layout, record.origin.moves) == blocks) return *table;
  return Fail(ErrorCode::kCorruption,
              fmt::format("is {} {} of table {} of learner '{}': the mark's layout has no such {}",
                          blocks ? "block" : "row", record.place.number, record.place.table,
                          learner.name, blocks ? "block" : "row"));
}

// The bytes of a row that are kept.
std::string_view Assembler::Kept(const Record& record, std::string_view row) const {
  if (!record.origin.moves || moves_ == Moves::kNeeded) return row;
  return row.substr(0, row.size() - kMoveFloats * sizeof(float));
}

Status Assembler::TakeRow(const Record& record, Pending* to) const {
  const store::LearnerRecord& learner = identity_.learners[record.place.learner];
  TACIT_ASSIGN(const uint32_t number, TableOf(record, false));
  const RowSpace::Table& table = learner.layout.space.tables()[number];
  const size_t floats = SentFloats(learner.layout, number, record.origin.moves);
  if (record.place.number >= table.rows || record.payload.size() != floats * sizeof(float))
    return Fail(
        ErrorCode::kCorruption,
        fmt::format("is row {} of table {} of learner '{}' and has {} bytes: the mark's "
                    "layout has no such row",
                    record.place.number, record.place.table, learner.name, record.payload.size()));
  to->rows[learner.key].Add(table.first + record.place.number, Kept(record, record.payload));
  return {};
}

Status Assembler::TakeBlock(const Record& record, Pending* to) const {
  const store::LearnerRecord& learner = identity_.learners[record.place.learner];
  TACIT_ASSIGN(const uint32_t number, TableOf(record, true));
  const RowSpace::Table& table = learner.layout.space.tables()[number];
  TACIT_ASSIGN(const Block block, DecodeBlock(record.payload));
  const size_t floats = SentFloats(learner.layout, number, record.origin.moves);
  // A number that is too large is found before it is multiplied.
  bool fits = record.place.number <= table.rows / kBlockRows &&
              block.floats.size() == block.rows() * floats * sizeof(float);
  const uint64_t first = fits ? record.place.number * kBlockRows : 0;
  Rows& changed = to->rows[learner.key];
  Rows& unchanged = to->unchanged[learner.key];
  block.ForRows([&](size_t at, std::string_view bytes, bool has_changed) {
    fits = fits && first + at < table.rows;
    if (fits)
      (has_changed ? changed : unchanged).Add(table.first + first + at, Kept(record, bytes));
  });
  if (fits) return {};
  return Fail(ErrorCode::kCorruption,
              fmt::format("is block {} of table {} of learner '{}' and has {} bytes for {} rows: "
                          "the mark's layout has no such block",
                          record.place.number, record.place.table, learner.name,
                          record.payload.size(), block.rows()));
}

Status Assembler::TakeChunk(const Record& record, Chunks* to) {
  Chunk chunk{.version = record.origin.version, .bytes = {}};
  if (record.payload.size() < sizeof(chunk.of))
    return Fail(ErrorCode::kCorruption,
                fmt::format("is a chunk of {} bytes", record.payload.size()));
  std::memcpy(&chunk.of, record.payload.data(), sizeof(chunk.of));
  chunk.bytes = record.payload.substr(sizeof(chunk.of));
  (*to)[record.place.number] = std::move(chunk);
  return {};
}

Status Assembler::CheckEnd(const PlacedEnd& placed) const {
  const VersionEnd& end = placed.end;
  if (end.feed != identity_.feed)
    return Fail(ErrorCode::kRefused,
                "is a mark of another feed than those before: the topic was made anew, or another "
                "copy of the trainer's store has taken it over");
  if (end.partitions != identity_.partitions)
    return Fail(ErrorCode::kRefused, fmt::format("is a mark of {} partitions, those before have {}",
                                                 end.partitions, identity_.partitions));
  bool same = end.learners.size() == identity_.learners.size();
  for (size_t i = 0; same && i < end.learners.size(); ++i)
    same = end.learners[i].record == store::EncodeLearner(identity_.learners[i]);
  if (!same)
    return Fail(ErrorCode::kRefused, "is a mark of other models: the trainer's have changed");
  return {};
}

Status Assembler::TakeEnd(int32_t partition, PlacedEnd placed, Part& part) {
  TACIT_RETURN_IF_ERROR(CheckEnd(placed));
  const VersionEnd& end = placed.end;
  const CommitSeq version = placed.origin.version;
  part.fits = part.records == end.records && part.checksum == end.checksum;
  const bool follows = end.whole_since == version || (part.knows && end.previous == part.ended);
  if (!part.fits || !follows) {
    hole_ = true;
    settled_ = false;
    broken_ = true;
  }
  part.ended = version;
  part.knows = true;
  part.records = part.checksum = 0;
  if (version >= newest_) {
    newest_ = version;
    newest_time_ms_ = end.time_ms;
  }
  pending_[version].ends.insert_or_assign(partition, std::move(placed));
  return {};
}

void Assembler::NoteEnds(const std::map<int32_t, PartitionSight>& sights) {
  hole_ = false;
  for (auto& [partition, part] : parts_) {
    const auto found = sights.find(partition);
    TACIT_CHECK(found != sights.end(), "the ends of all partitions have to be noted");
    part.noted = found->second;
  }
}

Status Assembler::Settle(const std::map<int32_t, uint64_t>& position) {
  CommitSeq last;
  bool nothing_newer = true;
  for (const auto& [partition, part] : parts_) {
    const auto at = position.find(partition);
    if (at == position.end() || at->second < part.noted.end) return {};
    nothing_newer =
        nothing_newer && at->second == part.noted.end && part.noted.next >= part.noted.end;
    last = std::max(last, part.ended);
  }
  if (last.value == 0 || (base_ && last <= *base_)) return {};
  const bool even =
      std::ranges::all_of(parts_, [&](const auto& one) { return one.second.ended == last; });
  const bool fits = std::ranges::all_of(parts_, [](const auto& one) { return one.second.fits; });
  if (even && !fits && nothing_newer)
    return Wrong(ErrorCode::kCorruption, last,
                 "a partition has other records of it than its mark says, and nothing newer that "
                 "has taken their places: the feed is damaged");
  // The records of a version may be gone by a newer one, which is waited for.
  if (even && !fits) {
    hole_ = true;
    return {};
  }
  first_ = last;
  settled_ = true;
  return {};
}

std::optional<CommitSeq> Assembler::FindWhole() const {
  for (auto at = pending_.rbegin(); at != pending_.rend(); ++at) {
    if (at->first < std::max(first_, taken_)) break;
    if (at->second.ends.size() == identity_.partitions) return at->first;
  }
  return std::nullopt;
}

Result<std::optional<WholeVersion>> Assembler::TakeWhole(
    const std::map<int32_t, uint64_t>& position) {
  if (hole_) return std::optional<WholeVersion>();
  if (!settled_) TACIT_RETURN_IF_ERROR(Settle(position));
  if (!settled_) return std::optional<WholeVersion>();
  const auto version = FindWhole();
  if (!version) return std::optional<WholeVersion>();
  TACIT_ASSIGN(WholeVersion whole, Merge(*version));
  base_ = *version;
  // The last hole is older than all that is pending: Settle lets nothing else through.
  broken_ = false;
  return std::optional(std::move(whole));
}

Status Assembler::CheckEnds(const Pending& of) const {
  const VersionEnd& any = of.ends.begin()->second.end;
  uint64_t records = 0;
  const std::string common = CommonPart(any);
  for (const auto& [partition, placed] : of.ends) {
    records += placed.end.records;
    if (CommonPart(placed.end) != common)
      return Wrong(ErrorCode::kCorruption, any.tip.seq, "the marks of two partitions differ");
  }
  if (records != any.all_records)
    return Wrong(ErrorCode::kCorruption, any.tip.seq,
                 fmt::format("its marks count {} records, and say that there are {}", records,
                             any.all_records));
  return {};
}

Status Assembler::MergeChunks(const VersionEnd& end, std::map<uint16_t, Chunks> dense,
                              std::map<uint16_t, Chunks> released,
                              std::map<uint16_t, VersionLearner>* to) const {
  for (const LearnerAtEnd& at_end : end.learners) {
    const std::string& name = identity_.learners[at_end.key].name;
    VersionLearner& learner = (*to)[at_end.key];
    learner.key = at_end.key;
    const bool begins = !base_;
    auto parameters =
        JoinChunks(dense[at_end.key], at_end.dense_chunks, at_end.dense_floats * sizeof(float),
                   fmt::format("the dense parameters of learner '{}'", name));
    if (!parameters) return Wrong(parameters.error().code, end.tip.seq, parameters.error().message);
    if (*parameters) {
      auto floats = std::make_shared<std::vector<float>>(at_end.dense_floats);
      std::memcpy(floats->data(), (*parameters)->data(), (*parameters)->size());
      learner.dense = std::move(floats);
    }
    auto state = JoinChunks(released[at_end.key], at_end.released_chunks, at_end.released_bytes,
                            fmt::format("the released state of learner '{}'", name));
    if (!state) return Wrong(state.error().code, end.tip.seq, state.error().message);
    learner.released = *std::move(state);
    if (begins && ((at_end.dense_floats > 0 && !learner.dense) ||
                   (at_end.released_bytes > 0 && !learner.released)))
      return Wrong(ErrorCode::kCorruption, end.tip.seq,
                   fmt::format("learner '{}' has no parameters there, or no released state, and "
                               "its mark says that it has",
                               name));
  }
  return {};
}

void Assembler::Rows::Add(uint64_t row, std::string_view bytes) {
  rows.push_back(row);
  const size_t begin = floats.size();
  floats.resize(begin + bytes.size() / sizeof(float));
  std::memcpy(floats.data() + begin, bytes.data(), bytes.size());
  end.push_back(floats.size());
}

void Assembler::Append(std::map<uint16_t, Rows>* rows, std::map<uint16_t, Rows>* to) {
  for (auto& [key, from] : *rows) {
    Rows& all = (*to)[key];
    if (all.rows.empty()) {
      all = std::move(from);
      continue;
    }
    const size_t before = all.floats.size();
    all.rows.insert(all.rows.end(), from.rows.begin(), from.rows.end());
    for (const size_t one_end : from.end) all.end.push_back(before + one_end);
    all.floats.insert(all.floats.end(), from.floats.begin(), from.floats.end());
  }
  rows->clear();
}

std::vector<VersionLearner> Assembler::TakeRows() {
  TACIT_CHECK(!base_, "rows go ahead of a first version only");
  std::map<uint16_t, Rows> rows;
  for (auto& [version, one] : pending_) {
    if (one.rows.empty() && one.unchanged.empty()) continue;
    Append(&one.rows, &rows);
    Append(&one.unchanged, &rows);
    pending_bytes_ -= one.row_bytes;
    one.taken_bytes += std::exchange(one.row_bytes, 0);
    taken_ = std::max(taken_, version);
  }
  std::vector<VersionLearner> learners;
  for (auto& [key, from] : rows) learners.push_back({.key = key, .rows = InOrder(std::move(from))});
  return learners;
}

Result<WholeVersion> Assembler::Merge(CommitSeq version) {
  const Pending& last = pending_.at(version);
  TACIT_RETURN_IF_ERROR(CheckEnds(last));
  WholeVersion whole{
      .end = last.ends.begin()->second.end, .learners = {}, .entries = {}, .next = {}};
  for (const auto& [partition, placed] : last.ends) whole.next[partition] = placed.offset + 1;
  std::map<uint16_t, Rows> rows;
  std::map<uint16_t, Chunks> dense, released;
  uint64_t held = 0;
  const auto end = pending_.upper_bound(version);
  for (auto at = pending_.begin(); at != end; ++at) {
    Pending& one = at->second;
    Append(&one.rows, &rows);
    if (broken_) Append(&one.unchanged, &rows);
    for (auto& [key, chunks] : one.dense)
      for (auto& [number, chunk] : chunks) dense[key][number] = std::move(chunk);
    for (auto& [key, chunks] : one.released)
      for (auto& [number, chunk] : chunks) released[key][number] = std::move(chunk);
    for (auto& [number, entry] : one.entries) whole.entries[number] = std::move(entry);
    whole.records += one.records;
    whole.bytes += one.bytes;
    held += one.bytes - one.taken_bytes;
  }
  std::map<uint16_t, VersionLearner> learners;
  TACIT_RETURN_IF_ERROR(MergeChunks(whole.end, std::move(dense), std::move(released), &learners));
  for (auto& [key, from] : rows) learners[key].rows = InOrder(std::move(from));
  for (auto& [key, learner] : learners) whole.learners.push_back(std::move(learner));
  pending_.erase(pending_.begin(), end);
  pending_bytes_ -= held;
  return whole;
}

}  // namespace tacit::feed
