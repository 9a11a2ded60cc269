#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/ids.h"
#include "base/result.h"
#include "privacy/charge.h"
#include "store/delta.h"
#include "stream/participation.h"

namespace tacit::train {

// What happened in a step. Un-noised: operator-only.
struct StepReport {
  // Of click models: predictions made before learning; valid until the next step.
  std::span<const float> logits = {};
  // Of models of the next item: units that were asked, before learning, for their first new item,
  // and those that had it among their ten best.
  uint64_t asked = 0, hits = 0;
  uint64_t examples = 0;  // in the step
  double loss_sum = 0;    // over `losses` of them, or of its units
  uint64_t losses = 0;
  uint64_t rows_touched = 0;  // distinct rows the step's units activated
  uint64_t rows_written = 0;
  uint64_t row_floats_written = 0;  // coordinates of those rows' gradients
  uint64_t units_clipped = 0;
};

// A model, what guards it and what moves it: the trainer's seam. One private step after the other;
// knows nothing of streams, commits or budgets. Not thread-safe.
class Learner {
 public:
  Learner(std::string id, LearnerIndex index) : id_(std::move(id)), index_(index) {}
  virtual ~Learner() = default;
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  const std::string& id() const { return id_; }
  LearnerIndex index() const { return index_; }

  // What a step costs each unit in it; and what is released besides when a step opens a period.
  virtual privacy::Charge charge() const = 0;
  virtual std::optional<privacy::Charge> opening_charge() const { return std::nullopt; }

  // Predicts, then learns. Returns false, with nothing changed, when `abandon` became true before
  // anything was released.
  virtual Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                                StepReport* report) = 0;
  // Predicts alone, for the report; looks at what is there, where whole periods are learnt from.
  virtual Status Preview(const stream::StepBatch& batch, StepReport* report) = 0;

  // For a commit: a copy of the dense state; null for a learner that has none.
  virtual std::shared_ptr<const store::DenseState> CopyDense() const = 0;
  // What was released and is gone on from; null when it is as it was at the last call, or loaded.
  virtual std::shared_ptr<const std::string> TakeMechanismState() { return nullptr; }
  // What users did in the steps taken, where it is to be remembered.
  virtual std::optional<store::HistoryCommit> TakeHistories() { return std::nullopt; }
  // Goes on from what had been released. kCorruption names the learner.
  virtual Status LoadMechanismState(std::string_view bytes) = 0;
  // A new key for the noise; asked for at every commit.
  virtual void Rekey() = 0;

 private:
  const std::string id_;
  const LearnerIndex index_;
};

}  // namespace tacit::train
