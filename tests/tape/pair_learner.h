#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lab/audit/twin_noise.h"
#include "train/learner/learner.h"

// A learner in two worlds that differ in one unit, on one tape: the world that has the unit leads,
// the other is given all that left of the first (lab/audit/twin_noise.h).
namespace tacit::tape {

// The unit in which the worlds differ: a user, or the record at an offset.
struct Canary {
  std::string user;     // if empty, a record
  uint64_t offset = 0;  // of the record
  // The other world has the unit with no features, and not without it: labels are not covered.
  bool keeps_label = false;

  bool Has(const event::Batch& examples, size_t i) const {
    return user.empty() ? examples.offset[i] == offset : examples.user[i] == user;
  }
};

// A step, or a preview, with the unit and without it.
struct BothSteps {
  stream::StepBatch with, without;
  bool has_unit = false;
};
// Both have one more unit with the unit's own rows, since which rows a step's sum holds follows
// from who touched them, and not from the noise. `covered`: of steps that touch rows.
BothSteps StepsOf(const stream::StepBatch& step, const Canary& unit, bool covered);

// The noise of one call of a step, in the standard deviations that it was asked for, less that of
// the same call of the next step: noise that comes again is none.
struct DrawnNoise {
  std::vector<double> last;  // of a step that has no next one yet
  uint64_t numbers = 0;
  double squares = 0;  // each is 1 on average

  void See(const lab::TwinNoise::Call& call);
};

// A query of a step, by how far the unit moves its sums before noise, in steps of their grid.
struct UnitsPart {
  std::string query;
  double bound = 0;
  std::vector<int64_t> moved;
};

// The tape of all steps so far, read.
struct Reading {
  std::vector<std::string> wrong;  // at most one sentence of a kind a step
  // The largest distance between the worlds in parts of a query's bound, by query.
  std::map<std::string, double, std::less<>> reach;
  // The price of the queries that each step declares: the squares of bound over deviation.
  std::vector<double> declared;
  // Mu squared between the worlds in all steps, were the noise what was asked for.
  double apart = 0;
  std::map<size_t, DrawnNoise> drawn;         // by the place of the call in its step
  std::vector<std::vector<UnitsPart>> parts;  // by step, call by call
  std::vector<lab::TwinNoise> tapes;          // of the world that leads, by step
  uint64_t choices = 0;                       // by score
  uint64_t steps = 0, steps_with_unit = 0;
  bool parted = false;  // the worlds chose differently by score: nothing follows

  // The state of the world that leads, as a commit has it; null if there is none.
  std::shared_ptr<const store::DenseState> dense;
  std::shared_ptr<const std::string> released;

  void Wrong(std::string_view sentence);
};

// One world's learner, with its noise and all that shows its state.
struct World {
  std::unique_ptr<train::Learner> learner = nullptr;
  lab::TwinNoise* noise = nullptr;
  std::function<Status()> settle = {};            // after a step
  std::function<std::vector<float>()> rows = {};  // all rows there are
};

// The pair as the trainer sees it. Reads the tape of each step into `reading`, which outlives it.
class PairLearner final : public train::Learner {
 public:
  struct Options {
    Canary unit;
    bool covered = false;
    std::function<void(stream::StepBatch*)> plant = {};  // changes what both learners are shown
    // Tapes of a run of other records: both worlds are given what left there. If null, a source
    // draws.
    const std::vector<lab::TwinNoise>* leads = nullptr;
  };
  PairLearner(World with, World without, Options options,
              std::unique_ptr<noise::NoiseSource> source, Reading* reading);

  privacy::Charge charge() const override { return with_.learner->charge(); }
  std::optional<privacy::Charge> opening_charge() const override {
    return with_.learner->opening_charge();
  }
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        train::StepReport* report) override;
  Status Preview(const stream::StepBatch& batch, train::StepReport* report) override;
  std::shared_ptr<const store::DenseState> CopyDense() const override {
    return with_.learner->CopyDense();
  }
  Status LoadReleased(std::string_view) override { return {}; }
  void Rekey() override {}

 private:
  BothSteps Both(const stream::StepBatch& step) const;
  // The states in which the worlds differ; empty if they are the same.
  std::string Difference();

  World with_, without_;
  const Options options_;
  const std::unique_ptr<noise::NoiseSource> source_;
  Reading& reading_;
};

// Reads the two tapes of a step against each other, and against what it is charged. `difference`
// is that of the states after it: a choice by score may come out differently, for the noise of
// scores is not on the tape. All else follows from what left.
void ReadStep(const lab::TwinNoise& with, const lab::TwinNoise& without, double charged,
              const std::string& difference, Reading* reading);

}  // namespace tacit::tape
