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
#include "store/history.h"

namespace tacit::store {

// How the rows of one learner lie in the store: an embedding and the optimiser's floats behind it.
// A row that was never written is InitialRow(seed, row, scale) with zeroed optimiser floats. Where
// there is a moving average, the floats behind rows and dense parameters end in it, and it is what
// serving sees.
struct RowLayout {
  RowSpace space;
  std::vector<uint32_t> state_floats;  // per table: optimiser floats behind the embedding
  uint64_t seed = 0;
  std::vector<float> initial_scale;  // per table
  MovingAverage average;

  uint32_t RowFloats(uint32_t table) const {
    return space.tables()[table].dim + state_floats[table];
  }
};

// Rows changed by one commit, coalesced: ascending by row.
struct RowDelta {
  std::vector<uint64_t> rows;
  std::vector<size_t> end;  // end of each row's floats in `floats`
  std::vector<float> floats;

  size_t size() const { return rows.size(); }
  std::span<const float> Row(size_t i) const {
    const size_t begin = i == 0 ? 0 : end[i - 1];
    return {floats.data() + begin, end[i] - begin};
  }
  // Place of a row, or size() when it is not here. O(log size).
  size_t Find(uint64_t row) const;
  size_t bytes() const { return rows.size() * 16 + floats.size() * 4; }
};

// Dense parameters and their optimiser's state, as the trainer left them.
struct DenseState {
  std::vector<float> parameters;
  std::vector<float> optimizer;
};

// What the users of a learner of unit user have used, once all steps up to this one are counted.
struct AllowanceCommit {
  uint64_t step = 0;
  std::vector<UserUses> uses;  // of those whose counts have changed; each user once
};

// One learner's part of a commit.
struct LearnerCommit {
  LearnerIndex learner;
  std::shared_ptr<const RowDelta> rows;
  std::shared_ptr<const DenseState> dense;
  std::string position;  // encoded by the trainer; the store does not look inside
  std::vector<privacy::CommitCharge> charges;  // all of this learner: its steps, its releases
  // What its mechanism has released and goes on from, encoded by it; null: as it was.
  std::shared_ptr<const std::string> mechanism_state = nullptr;
  std::optional<AllowanceCommit> allowances = {};
  std::optional<HistoryCommit> histories = {};
};

// A group of steps made durable and visible together.
struct CommitRequest {
  std::vector<LearnerCommit> learners;
  std::string source_identity;  // Source::Identity() at this point
};

}  // namespace tacit::store
