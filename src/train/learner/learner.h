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
#include "privacy/bill.h"
#include "privacy/charge.h"
#include "store/types/delta.h"
#include "stream/steps/participation.h"
#include "train/learner/part_figures.h"
#include "train/learner/rank_totals.h"
#include "train/learner/step_phases.h"

namespace tacit::train {

// The outcome of a step. Un-noised: operator-only.
struct StepReport {
  // Click models: predictions made before learning; valid until the next step.
  std::span<const float> logits = {};
  // Next-item models: units asked, before learning, for their first new item.
  RankTotals ranked = {};
  uint64_t examples = 0;  // in the step
  double loss_sum = 0;    // over `losses` examples or units
  uint64_t losses = 0;
  // The same of examples of this step that were predicted before, as previews.
  double earlier_loss_sum = 0;
  uint64_t earlier_losses = 0;
  uint64_t rows_touched = 0;  // distinct rows that the step's units activated
  uint64_t rows_written = 0;
  uint64_t row_floats_written = 0;  // coordinates of those rows' gradients
  uint64_t units_clipped = 0;
  StepPhases phases{};  // zeros where they are not measured
};

// The step's public frame, for its learner's bill. Valid as long as the step.
inline privacy::BilledStep Billed(const stream::StepBatch& step) {
  return {.whole_period = step.whole_period(),
          .opens_period = step.kind == stream::StepBatch::Kind::kPeriodFirst,
          .period_steps = step.period_steps,
          .ranges = step.ranges};
}

// A model with its mechanism and optimiser, as the trainer sees it. Takes one private step after
// the other; knows nothing of streams, commits or budgets. Not thread-safe.
class Learner {
 public:
  Learner(std::string id, LearnerIndex index) : id_(std::move(id)), index_(index) {}
  virtual ~Learner() = default;
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  const std::string& id() const { return id_; }
  LearnerIndex index() const { return index_; }

  // The cost of a step to each unit in it; and of what opening a period releases in addition.
  virtual privacy::Charge charge() const = 0;
  virtual std::optional<privacy::Charge> opening_charge() const { return std::nullopt; }

  // Told of the step that waits behind the one about to be taken, so that its rows may be fetched
  // meanwhile. Valid until Withdraw, which may wait for other threads; releases nothing.
  virtual void Announce(const stream::StepBatch&) {}
  virtual void Withdraw() {}
  // Predicts, then learns. Returns false, with nothing changed, when `abandon` became true before
  // anything was released.
  virtual Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                                StepReport* report) = 0;
  // Predicts only, for the report; a learner that learns from whole periods also observes the
  // batch, unless it is held out. Of a held-out batch every unit is asked, and the users' items are
  // remembered until the learner is destroyed.
  virtual Status Preview(const stream::StepBatch& batch, StepReport* report) = 0;
  // Adds a part that another process has summed up by this model (PartSummer): the next step learns
  // from its events, as from those of a preview. kInvalidArgument: it is of another query, or the
  // learner takes none. kCorruption: these are no bytes of a part; nothing has changed.
  virtual Result<PartFigures> AddPart(std::string_view /*bytes*/) {
    return Fail(ErrorCode::kInvalidArgument, "models of this kind are not summed in parts");
  }
  // Ends the previews of which another process has these sums too (StepBatch::recount): the next
  // step learns from them as from any. Returns false if the other process has summed up otherwise;
  // without bytes there is nothing to compare.
  virtual Result<bool> EndRecount(std::string_view /*bytes*/) {
    return Fail(ErrorCode::kInvalidArgument, "models of this kind are not summed in parts");
  }

  // Checks that the model gives finite numbers on public inputs. Uses noised releases only, never
  // records. Called before each commit.
  virtual Result<bool> GivesNumbers() { return true; }

  // Brings what CopyDense and the learner's working rows say up to the last step; called before a
  // commit reads them. A learner whose model lies elsewhere, in a GPU's memory, copies it home.
  virtual Status Settle() { return {}; }
  // Copies the dense state for a commit; null for a learner without one.
  virtual std::shared_ptr<const store::DenseState> CopyDense() const = 0;
  // The released state, encoded; null if unchanged since the last call or load. Null as well where
  // it is the model, and that has stopped being numbers: no start could load it.
  virtual std::shared_ptr<const std::string> TakeReleased() { return nullptr; }
  // User histories to store with the next commit, if this learner keeps any.
  virtual std::optional<store::HistoryCommit> TakeHistories() { return std::nullopt; }
  // Resumes from an earlier release. kCorruption names the learner.
  virtual Status LoadReleased(std::string_view bytes) = 0;
  // Draws a new key for the noise; called at every commit.
  virtual void Rekey() = 0;

 private:
  const std::string id_;
  const LearnerIndex index_;
};

}  // namespace tacit::train
