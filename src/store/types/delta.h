#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/moving_average.h"
#include "base/result.h"
#include "base/row_space.h"
#include "base/user_uses.h"
#include "privacy/ledger.h"
#include "store/types/history.h"

namespace tacit::store {

// The place of a table in a store whose model has grown since it began (model_growth.h): rows keep
// the keys that they had, and those that were never written the values.
struct TablePlace {
  uint16_t number = 0;   // in keys
  uint64_t initial = 0;  // the row that bucket 0 begins as, for InitialRow
  uint32_t spread = 1;   // buckets that began as one, except bucket 0, which is alone
  friend bool operator==(const TablePlace&, const TablePlace&) = default;
};

// The layout of a learner's rows in the store: an embedding followed by the optimiser's floats. A
// row that was never written is InitialRow(seed, row, scale) with zeroed optimiser floats. With a
// moving average, the floats after rows and dense parameters end in it, and serving reads it.
struct RowLayout {
  RowSpace space;
  std::vector<uint32_t> state_floats;  // per table: optimiser floats after the embedding
  uint64_t seed = 0;
  std::vector<float> initial_scale;  // per table
  MovingAverage average;
  // Embeddings are rounded to bfloat16 as they are committed, and stored so (row_codec.h). May
  // differ from run to run.
  bool bf16 = false;
  // Per table; empty in a model that has not grown: table t has number t and begins as its own
  // rows.
  std::vector<TablePlace> places = {};

  uint32_t RowFloats(uint32_t table) const {
    return space.tables()[table].dim + state_floats[table];
  }
  TablePlace PlaceOf(uint32_t table) const {
    if (!places.empty()) return places[table];
    return {.number = static_cast<uint16_t>(table), .initial = space.tables()[table].first};
  }
  // The table with this number in keys; nothing if there is none.
  std::optional<uint32_t> TableOfNumber(uint16_t number) const;
  // The row that this one begins as, for InitialRow. REQUIRES a row of the table.
  uint64_t InitialOf(uint32_t table, uint64_t row) const;
};

// Limit for a working model's numbers; its square is still a float.
inline constexpr float kNumberMost = 1e18f;

class RowArrival;

// Rows changed by one commit, coalesced: ascending by row.
struct RowDelta {
  std::vector<uint64_t> rows;
  std::vector<size_t> end;  // end of each row's floats in `floats`
  std::vector<float> floats;
  // The way home of rows that were changed elsewhere, which owns this delta (row_arrival.h): nobody
  // reads any of the rows before Arrive. If null, they are here.
  RowArrival* arrival = nullptr;

  size_t size() const { return rows.size(); }
  std::span<const float> Row(size_t i) const {
    const size_t begin = i == 0 ? 0 : end[i - 1];
    return {floats.data() + begin, end[i] - begin};
  }
  // The row's index, or size() if it is missing. O(log size).
  size_t Find(uint64_t row) const;
  size_t bytes() const { return rows.size() * 16 + floats.size() * 4; }
};

// Dense parameters and their optimiser's state, from the trainer.
struct DenseState {
  std::vector<float> parameters;
  std::vector<float> optimizer;
};

// The allowances used by a user-unit learner's users, counting all steps up to `step`.
struct AllowanceCommit {
  uint64_t step = 0;
  std::vector<UserUses> uses;  // only users whose counts have changed; each once
};

// One learner's part of a commit. Null members are unchanged.
struct LearnerCommit {
  LearnerIndex learner = {};
  std::shared_ptr<const RowDelta> rows = nullptr;
  std::shared_ptr<const DenseState> dense = nullptr;
  std::string position = {};                        // encoded by the trainer; opaque to the store
  std::vector<privacy::CommitCharge> charges = {};  // this learner's only: its steps and releases
  std::shared_ptr<const std::string> released = nullptr;  // the mechanism's state, encoded
  std::optional<AllowanceCommit> allowances = {};
  std::optional<HistoryCommit> histories = {};
  // The steps that an unfinished period's units are in, encoded by the trainer: as secret as their
  // records, and never in a delta, a witness or a release. Empty if there is none any more; nothing
  // if unchanged.
  std::optional<std::string> allocation = {};
};

// A learner as of a commit, from which a start goes on. Null members were never committed.
struct LearnerState {
  std::shared_ptr<const DenseState> dense = nullptr;
  CommitSeq dense_seq = {};  // the commit that wrote it
  std::string position = {};
  std::shared_ptr<const std::string> released = nullptr;
  CommitSeq released_seq = {};  // the commit that wrote it
};

// A group of steps that become durable and visible together.
struct CommitRequest {
  std::vector<LearnerCommit> learners;
  std::string source_identity;  // Source::Identity() at this point
};

}  // namespace tacit::store
