#include "store/model_growth.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crash_point.h"
#include "store/disk/rocks.h"
#include "store/disk/seal.h"
#include "store/growth.h"
#include "store/rows/row_codec.h"
#include "store/users/history_table.h"
#include "store/view/load.h"

namespace tacit::store {
namespace {

constexpr size_t kBatchBytes = size_t{4} << 20;

// Numbers in keys are taken again only when no row is under them.
uint16_t FreeNumber(const std::vector<TablePlace>& was, const std::vector<TablePlace>& is) {
  uint16_t free = 0;
  for (const std::vector<TablePlace>* places : {&was, &is})
    for (const TablePlace& place : *places)
      free = std::max(free, static_cast<uint16_t>(place.number + 1));
  return free;
}

std::vector<TablePlace> PlacesOf(const RowLayout& layout) {
  std::vector<TablePlace> places;
  for (uint32_t t = 0; t < layout.space.tables().size(); ++t) places.push_back(layout.PlaceOf(t));
  return places;
}

// The table's rows are written anew, under another number.
bool IsRewritten(const GrownModel::Table& table) {
  return table.from && (table.spread > 1 || table.rewrite);
}

std::string CalledOtherwise(const std::string& before) {
  return fmt::format("it was called '{}', and its account goes on", before);
}

PlannedGrowth Renamed(const LearnerRecord& record, const LearnerState& state, size_t place,
                      const LearnerLayout& layout) {
  PlannedGrowth growth{.place = place, .record = record, .model = {}};
  growth.record.name = layout.name;
  for (uint32_t t = 0; t < record.layout.space.tables().size(); ++t)
    growth.model.tables.push_back({.from = t});
  growth.model.dense = state.dense;
  growth.model.released = state.released;
  growth.model.gained = {CalledOtherwise(record.name)};
  return growth;
}

Result<PlannedGrowth> PlanOne(const LearnerRecord& record, const LearnerState& state,
                              const std::string& form, size_t place, const LearnerLayout& layout) {
  // A learner that has another name, and nothing else.
  if (CheckSameModel(record, layout, form)) return Renamed(record, state, place, layout);
  if (!layout.grow)
    return Fail(ErrorCode::kRefused,
                fmt::format("learner '{}' differs from the store's model '{}', and models of this "
                            "kind do not grow",
                            layout.name, record.name));
  const StoredModel stored{.rows = record.layout,
                           .fingerprint = record.model_fingerprint,
                           .form = form,
                           .dense = state.dense,
                           .released = state.released};
  auto grown = layout.grow(stored);
  if (!grown)
    return Fail(std::move(grown.error())
                    .Context(fmt::format("learner '{}' differs from the store's model of that name",
                                         layout.name)));
  if (layout.name != record.name) grown->gained.push_back(CalledOtherwise(record.name));
  if (grown->gained.empty() && grown->lost.empty())
    grown->gained.push_back("its inputs stand in another order");
  if (record.layout.seed != layout.rows.seed ||
      record.layout.average.decay() != layout.rows.average.decay())
    return Fail(ErrorCode::kRefused,
                fmt::format("learner '{}' differs from the store's model of that name: its initial "
                            "rows or its moving average are other ones; train it under another id",
                            layout.name));
  const auto tables = layout.rows.space.tables();
  TACIT_CHECK(grown->tables.size() == tables.size(), "a grown model has the configured tables");
  LearnerRecord next{record.key, layout.name, layout.promise.model_fingerprint, layout.rows};
  const std::vector<TablePlace> was = PlacesOf(record.layout);
  for (uint32_t t = 0; t < tables.size(); ++t) {
    const GrownModel::Table& table = grown->tables[t];
    TablePlace at{.number = 0, .initial = tables[t].first, .spread = 1};
    if (table.from) {
      TACIT_CHECK(
          table.rewrite || (record.layout.space.tables()[*table.from].dim == tables[t].dim &&
                            record.layout.state_floats[*table.from] == layout.rows.state_floats[t]),
          "rows keep their floats, or are rewritten");
      at = was[*table.from];
      at.spread *= table.spread;
      next.layout.initial_scale[t] = record.layout.initial_scale[*table.from];
    } else {
      next.layout.initial_scale[t] = 0;
    }
    if (!table.from || IsRewritten(table)) at.number = FreeNumber(was, next.layout.places);
    next.layout.places.push_back(at);
  }
  return PlannedGrowth{.place = place, .record = std::move(next), .model = *std::move(grown)};
}

// The first key of a table's rows in a shard.
RowKey FirstKey(uint64_t shard, uint16_t learner, uint32_t number) {
  return EncodeRowKey({PlaceHigh(shard, learner, number), 0});
}

void DeleteTable(const Rocks& rocks, uint32_t shards, uint16_t learner, uint16_t number,
                 rocksdb::WriteBatch* batch) {
  for (uint64_t shard = 0; shard < shards; ++shard) {
    const RowKey begin = FirstKey(shard, learner, number),
                 end = FirstKey(shard, learner, number + uint32_t{1});
    batch->DeleteRange(rocks.rows(shard), {begin.data(), begin.size()}, {end.data(), end.size()});
  }
}

// Copies each stored row of a table to all the rows that it becomes, under the table's new number.
// A start that was cut short may have left rows under that number: they are deleted first.
class Spreader {
 public:
  Spreader(const Rocks& rocks, const LearnerDirectory& directory, const KeepFolding& keep)
      : rocks_(rocks), shards_(directory.shards()), keep_(keep) {}

  Status Spread(const LearnerRecord& was, const LearnerRecord& is, uint32_t t,
                const GrownModel::Table& table) {
    const uint16_t from = was.layout.PlaceOf(*table.from).number, to = is.layout.PlaceOf(t).number;
    DeleteTable(rocks_, shards_, is.key, to, &batch_);
    for (uint64_t shard = 0; shard < shards_; ++shard) {
      const std::unique_ptr<rocksdb::Iterator> at(rocks_.db().NewIterator({}, rocks_.rows(shard)));
      const RowKey first = FirstKey(shard, is.key, from);
      const rocksdb::Slice prefix(first.data(), kRowKeyBytes - sizeof(uint64_t));
      for (at->Seek({first.data(), first.size()}); at->Valid() && at->key().starts_with(prefix);
           at->Next()) {
        const uint64_t bucket = SequenceOf({at->key().data() + prefix.size(), sizeof(uint64_t)});
        const uint64_t begin = bucket == 0 ? 0 : 1 + (bucket - 1) * table.spread;
        for (uint64_t next = begin; next < begin + (bucket == 0 ? 1 : table.spread); ++next) {
          TACIT_ASSIGN(const rocksdb::Slice floats,
                       FloatsOf(at->value(), was, is.layout, t, next, table));
          TACIT_RETURN_IF_ERROR(Put(is.key, to, next, floats));
        }
      }
      TACIT_RETURN_IF_ERROR(ToStatus(at->status(), "reading rows of store " + rocks_.path()));
    }
    return Write();
  }

 private:
  // The bytes of a row of the table, made of those of the row that it was. Valid until the next
  // call.
  Result<rocksdb::Slice> FloatsOf(const rocksdb::Slice& stored, const LearnerRecord& was,
                                  const RowLayout& layout, uint32_t t, uint64_t bucket,
                                  const GrownModel::Table& table) {
    if (!table.rewrite) return stored;
    was_.resize(was.layout.RowFloats(*table.from));
    if (!DecodeRow(stored.ToStringView(), was.layout.space.tables()[*table.from].dim,
                   was.layout.state_floats[*table.from], was_))
      return Fail(ErrorCode::kCorruption,
                  fmt::format("a row of learner '{}' in store {} has {} "
                              "bytes, and should have {}",
                              was.name, rocks_.path(), stored.size(), was_.size() * sizeof(float)));
    const RowSpace::Table& of = layout.space.tables()[t];
    is_.assign(layout.RowFloats(t), 0.0f);
    InitialRow(layout.seed, layout.InitialOf(t, of.first + bucket), layout.initial_scale[t],
               std::span(is_).first(of.dim));
    table.rewrite(was_, is_);
    return rocksdb::Slice(reinterpret_cast<const char*>(is_.data()), is_.size() * sizeof(float));
  }
  Status Put(uint16_t learner, uint16_t number, uint64_t bucket, const rocksdb::Slice& floats) {
    const RowKey key = EncodeRowKey({PlaceHigh(bucket % shards_, learner, number), bucket});
    batch_.Put(rocks_.rows(bucket % shards_), {key.data(), key.size()}, floats);
    ++rows_;
    return batch_.GetDataSize() < kBatchBytes ? Status() : Write();
  }
  Status Write() {
    if (keep_ && !keep_(rows_, 0))
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("opening store {} was given up", rocks_.path()));
    TACIT_RETURN_IF_ERROR(rocks_.WriteSynced(batch_));
    batch_.Clear();
    return {};
  }

  const Rocks& rocks_;
  const uint64_t shards_;
  const KeepFolding& keep_;
  rocksdb::WriteBatch batch_;
  std::vector<float> was_, is_;
  uint64_t rows_ = 0;
};

// Adds to the batch what the learner's record, form, parameters and released state are from the
// commit on.
void PutModel(const Rocks& rocks, const PlannedGrowth& growth, const LearnerLayout& layout,
              CommitSeq seq, rocksdb::WriteBatch* batch) {
  const uint16_t key = growth.record.key;
  auto* meta = rocks.family(Family::kMeta);
  batch->Put(meta, LearnerKey(meta::kLearnerPrefix, key), Seal(EncodeLearner(growth.record)));
  batch->Put(meta, LearnerKey(meta::kFormPrefix, key), Seal(layout.form));
  if (growth.model.dense)
    batch->Put(meta, LearnerKey(meta::kDensePrefix, key),
               Seal(EncodeDenseBase(seq, *growth.model.dense)));
  if (growth.model.released) {
    batch->Put(meta, LearnerKey(meta::kReleasedPrefix, key), Seal(*growth.model.released));
    batch->Put(meta, LearnerKey(meta::kMechanismCommitPrefix, key),
               Seal(ByteWriter().Put(seq.value).bytes()));
  } else {
    batch->Delete(meta, LearnerKey(meta::kReleasedPrefix, key));
    batch->Delete(meta, LearnerKey(meta::kMechanismCommitPrefix, key));
  }
}

void DropTables(const Rocks& rocks, uint32_t shards, const LearnerRecord& was,
                const LearnerRecord& is, rocksdb::WriteBatch* batch) {
  for (const TablePlace& old : PlacesOf(was.layout))
    if (!is.layout.TableOfNumber(old.number))
      DeleteTable(rocks, shards, was.key, old.number, batch);
}

// A commit is visible with its ledger entries, its term and its place in the order of folds.
void PutCommit(const OpenedStore& store, const std::vector<uint64_t>& entries, const CommitTip& tip,
               const Term& term, rocksdb::WriteBatch* batch) {
  const Rocks& rocks = *store.rocks;
  const auto put = [&](std::string_view key, std::string_view value) {
    batch->Put(rocks.family(Family::kMeta), AsSlice(key), Seal(value));
  };
  for (const uint64_t index : entries)
    batch->Put(rocks.family(Family::kLedger), SequenceKey(index),
               Seal(store.ledger.entries()[index].Encode()));
  put(meta::kTip, EncodeTip(tip));
  put(meta::kLedgerState, store.ledger.EncodeState());
  put(std::string(meta::kTermPrefix) + SequenceKey(tip.seq.value), EncodeTerm(term));
  FoldedRecord folded{tip.seq, {}};
  for (size_t key = 0; key < store.view.learners.size(); ++key)
    if (store.view.learners[key].dense)
      folded.dense.emplace_back(static_cast<uint16_t>(key), store.view.learners[key].dense_seq);
  put(meta::kFolded, EncodeFolded(folded));
  PutRowsMarkers(rocks, tip.seq, batch);
}

void Tell(const std::string& store, const std::vector<PlannedGrowth>& growths) {
  for (const PlannedGrowth& growth : growths) {
    for (const std::string& gain : growth.model.gained)
      spdlog::info("store {}: learner '{}' is taken over: {}", store, growth.record.name, gain);
    for (const std::string& loss : growth.model.lost)
      spdlog::warn("store {}: learner '{}' is taken over: {}", store, growth.record.name, loss);
  }
}

Status CheckRenames(const std::string& path, const std::vector<LearnerRecord>& records,
                    const std::vector<LearnerLayout>& learners,
                    const std::map<std::string, std::string>& renames) {
  const auto wrong = [](std::string what) {
    return Fail(ErrorCode::kInvalidArgument, std::move(what));
  };
  for (const auto& [now, before] : renames) {
    if (std::ranges::find(learners, now, &LearnerLayout::name) == learners.end())
      return wrong(fmt::format("'{}' cannot be called '{}': the configuration has no such learner",
                               before, now));
    if (std::ranges::find(learners, before, &LearnerLayout::name) != learners.end())
      return wrong(
          fmt::format("'{}' cannot be called '{}': the configuration still has it under the "
                      "old name",
                      before, now));
    if (std::ranges::find(records, before, &LearnerRecord::name) == records.end())
      return wrong(fmt::format("store {} has no learner '{}'", path, before));
    if (std::ranges::find(records, now, &LearnerRecord::name) != records.end())
      return wrong(fmt::format("'{}' cannot be called '{}': store {} has a learner of that name",
                               before, now, path));
  }
  return {};
}

}  // namespace

Result<std::vector<PlannedGrowth>> PlanGrowths(const LearnerDirectory& directory, const View& view,
                                               const std::vector<std::string>& forms,
                                               const std::vector<LearnerLayout>& learners,
                                               std::span<const size_t> others) {
  std::vector<PlannedGrowth> growths;
  for (const size_t place : others) {
    const LearnerRecord& record = directory.Configured(LearnerIndex(static_cast<uint16_t>(place)));
    TACIT_ASSIGN(PlannedGrowth growth,
                 PlanOne(record, view.learners[record.key], std::string(FormOf(forms, record.key)),
                         place, learners[place]));
    growths.push_back(std::move(growth));
  }
  return growths;
}

Status CheckLosses(const std::vector<PlannedGrowth>& growths) {
  for (const PlannedGrowth& growth : growths)
    if (!growth.model.lost.empty())
      return Fail(ErrorCode::kRefused,
                  fmt::format("learner '{}' differs from the store's model of that name, and would "
                              "lose something: {}; to take it over all the same, for no epsilon "
                              "and for good, run tacit store migrate --accept-losses with this "
                              "configuration",
                              growth.record.name, fmt::join(growth.model.lost, "; ")));
  return {};
}

Status TakeOver(const std::vector<PlannedGrowth>& growths, const KeepFolding& keep,
                OpenedStore& store) {
  if (growths.empty()) return {};
  TACIT_CHECK(store.view.overlay.empty(), "rows are folded before tables change");
  const Rocks& rocks = *store.rocks;
  const CommitTip before = store.view.tip;
  const CommitSeq seq(before.seq.value + 1);
  auto directory = std::make_shared<LearnerDirectory>(*store.directory);
  Spreader spreader(rocks, *directory, keep);
  rocksdb::WriteBatch batch;
  std::vector<privacy::Ledger::Heir> heirs;
  for (const PlannedGrowth& growth : growths) {
    const LearnerRecord& was = store.directory->records()[growth.record.key];
    for (uint32_t t = 0; t < growth.model.tables.size(); ++t) {
      const GrownModel::Table& table = growth.model.tables[t];
      if (IsRewritten(table)) TACIT_RETURN_IF_ERROR(spreader.Spread(was, growth.record, t, table));
    }
    const LearnerLayout& layout = store.options.learners[growth.place];
    PutModel(rocks, growth, layout, seq, &batch);
    DropTables(rocks, directory->shards(), was, growth.record, &batch);
    if (!growth.model.items.empty())
      TACIT_RETURN_IF_ERROR(RenumberHistories(rocks, was.key, growth.model.items, &batch));
    LearnerState& state = store.view.learners[was.key];
    state.dense = growth.model.dense;
    state.dense_seq = seq;
    state.released = growth.model.released;
    state.released_seq = seq;
    heirs.push_back({.promise = layout.promise,
                     .before = was.name == growth.record.name ? std::string() : was.name});
    directory->Replace(growth.record);
  }
  CrashPoint("growth.spread");
  TACIT_ASSIGN(const auto entries, store.ledger.TakeOver(seq, rocks.clock().UnixMillis(), heirs,
                                                         store.options.code_version));
  const auto& chain = store.ledger.entries();
  const CommitTip tip{seq, store.ledger.head(), chain.size(), store.ledger.Learners(),
                      store.ledger.Total()};
  const Term term{.first = seq, .id = store.term, .head_before = before.head};
  PutCommit(store, entries, tip, term, &batch);
  TACIT_RETURN_IF_ERROR(rocks.WriteSynced(batch));
  CrashPoint("growth.written");

  store.directory = std::move(directory);
  store.view.tip = tip;
  Terms terms = *store.view.terms;
  terms.Add(term);
  store.view.terms = std::make_shared<const Terms>(std::move(terms));
  store.view.ledger_tail = TailOf(chain, store.directory->records().size());
  store.term_begun = true;
  const WitnessRecord now = WitnessOf(store);
  for (const auto& witness : store.witnesses) TACIT_RETURN_IF_ERROR(witness->Write(now));
  CrashPoint("growth.witnessed");
  Tell(store.options.path, growths);
  return {};
}

Result<std::vector<Growth>> PlanGrowth(const std::string& path,
                                       const std::vector<LearnerLayout>& learners,
                                       const std::map<std::string, std::string>& renames) {
  TACIT_ASSIGN(const auto rocks, Rocks::OpenReadOnly(path));
  TACIT_ASSIGN(const Loaded loaded, Load(*rocks));
  const View view = loaded.MakeView();
  LearnerDirectory directory(loaded.shards, loaded.records);
  TACIT_RETURN_IF_ERROR(CheckRenames(path, loaded.records, learners, renames));
  TACIT_ASSIGN(const auto matched,
               directory.Match(learners, TrainedOf(view), loaded.forms, renames));
  TACIT_ASSIGN(const auto planned,
               PlanGrowths(directory, view, loaded.forms, learners, matched.others));
  std::vector<Growth> growths;
  for (const PlannedGrowth& growth : planned)
    growths.push_back({growth.record.name, growth.model.gained, growth.model.lost});
  return growths;
}

}  // namespace tacit::store
