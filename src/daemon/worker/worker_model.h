#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/siphash.h"
#include "feed/model_mark.h"
#include "model/linear/row.h"
#include "store/replica/replica_store.h"
#include "store/rows/working_rows.h"
#include "store/types/learner_layout.h"

namespace tacit::daemon {

// The rows of a linear learner as its summers read them: weight, last move and that move's release
// at their places of model/linear/row.h. They are changed by Put alone. Memory: some 70 bytes a row
// that was ever released.
class SummedRows final : public store::WorkingRows {
 public:
  // The floats of a row as a feed with moves has them: weight, move, release.
  static constexpr size_t kFloats = 3;

  // Returns what the row was; nothing if it is new.
  std::optional<std::array<float, kFloats>> Put(uint64_t row, std::span<const float> floats);
  // A row that was never released is all 0.
  Status Gather(std::span<const uint64_t> rows, std::span<float*> out) override;
  void MarkChanged(std::span<const uint64_t>) override {}
  std::shared_ptr<const store::RowDelta> TakeDelta() override { return nullptr; }
  Stats stats() const override { return {.bytes = held_.capacity() * sizeof(Held)}; }

 private:
  // Up to the last float that a summer reads.
  using Held = std::array<float, model::linear::kPeriod + 1>;

  std::unordered_map<uint64_t, uint32_t> places_;  // in held_
  std::vector<Held> held_;
  Held none_{};
};

// The model that a worker sums by: a replica's store in memory. It holds a version's head, released
// states and rows, and nothing that is served. It lives as long as its feed is followed; a feed
// that is refused is followed anew into another one. Not thread-safe.
class WorkerModel final : public store::ReplicaStore {
 public:
  // Learners as the configuration has them, and the key of a version's mark.
  WorkerModel(std::vector<store::LearnerLayout> learners, const SipHash::Key& mark_key);

  std::shared_ptr<const store::Snapshot> Latest() const override { return latest_; }
  std::string feed() const override { return feed_; }
  std::string position() const override { return position_; }
  const std::vector<store::LearnerRecord>& learners() const override { return records_; }
  Status Begin(const store::ReplicaOrigin& origin) override;
  Status Fill(const std::vector<store::ReplicaLearner>& learners) override;
  // kRefused too where the version is not the one that its publisher marked.
  Status Apply(store::ReplicaVersion version) override;
  Status Settle() override { return {}; }
  uint64_t unfolded() const override { return 0; }

  // The place in the configuration of the learner with this key in the store; nothing if it has
  // none.
  std::optional<size_t> PlaceOf(uint16_t key) const;
  // All of these by place in the configuration.
  SummedRows& rows(size_t learner) { return *rows_[learner]; }
  // Null before the learner's first release.
  std::shared_ptr<const std::string> released(size_t learner) const { return released_[learner]; }

 private:
  Status Put(const store::ReplicaLearner& from);
  Status CheckMark(const store::ReplicaVersion& version) const;

  const std::vector<store::LearnerLayout> configured_;
  feed::ModelMark mark_;  // of what is held
  std::vector<std::unique_ptr<SummedRows>> rows_;
  std::vector<std::shared_ptr<const std::string>> released_;
  std::vector<store::LearnerRecord> records_;
  std::vector<std::optional<size_t>> place_;  // by key
  std::string feed_, lineage_, position_;
  std::shared_ptr<const store::Snapshot> latest_;
};

}  // namespace tacit::daemon
