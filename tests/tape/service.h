#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ops/backend.h"
#include "stream/steps/participation.h"
#include "tape/histories.h"
#include "tape/run.h"
#include "train/learner/learner.h"
#include "unit/train/remembering_store.h"

namespace tacit::tape {

// All that a commit may show, as bytes, and its price.
struct ShownCommit {
  std::string bill = {}, position = {}, dense = {}, released = {}, rows = {};
  double mu_squared = 0, rho = 0;  // of all charges until then
};

std::string BytesOf(std::span<const float> numbers);
std::string TextOf(const privacy::CommitCharge& charge);

// All rows that there are, one after the other.
std::vector<float> AllRows(store::WorkingRows& rows, const store::RowLayout& layout);

// A store that remembers its commits, and what is raw in them for the next start.
class WorldStore final : public train::RememberingStore, public stream::AllowanceView {
 public:
  explicit WorldStore(const store::RowLayout& layout);

  // Mu squared in place of epsilon, which takes seconds.
  double EpsilonAfter(std::span<const privacy::CommitCharge> charges) const override;
  Status Commit(store::CommitRequest request, std::function<void(Status)> done) override;
  Result<uint64_t> Read(std::span<UserUses> users) override;

  // Copies the counts of users; puts the copy back in their place, and charges all users for the
  // steps since, up to this one, as a restore does.
  void CopyCounts() { copy_ = counts_; }
  void RestoreCounts(uint64_t step, uint32_t allowance, const Planted::AfterGap& after_gap);

  std::span<const ShownCommit> shown() const { return shown_; }
  const store::DenseState* dense() const { return dense_.get(); }
  const std::string* released() const { return released_.get(); }
  Histories& histories() { return histories_; }

 private:
  const store::RowLayout layout_;
  std::vector<ShownCommit> shown_;
  std::shared_ptr<const store::DenseState> dense_;
  std::shared_ptr<const std::string> released_;
  Histories histories_;
  struct Counts {
    std::map<Hash128, UserUses> uses;
    UserUses floor;     // of users without a count
    uint64_t step = 0;  // that they are as of
  };
  Counts counts_, copy_;
};

// A stream's way through the product's participation and trainer, over starts at places of its own:
// behind any step, within a held period too.
class Service {
 public:
  struct Options {
    uint64_t seed = 1;         // of the places where it stops and starts again
    double budget = HUGE_VAL;  // mu squared
    bool lets_all_in = false;  // users are let in beyond their allowance
    Planted::AfterGap after_gap = {};
    std::function<void(stream::StepBatch*)> plant = {};  // changes the steps that are cut
  };
  // Makes the learner of a start that goes on from the store's last commit.
  using Make = std::function<std::unique_ptr<train::Learner>(uint64_t steps_taken)>;

  Service(const Subject& subject, const event::Batch& records, Options options);

  // Runs to the end of the stream; returns the reason to end earlier, "" if there was none.
  std::string Run(const Make& make);

  WorldStore& store() { return store_; }
  // The parts of a learner that goes on from the store's last commit.
  wiring::LearnerParts Parts(std::unique_ptr<noise::NoiseSource> noise, store::WorkingRows& rows,
                             Histories& histories, uint64_t steps_taken);

 private:
  bool MayLoseCounts() const;
  bool Cut(uint64_t most, std::vector<train::LearnerStep>* steps);
  std::string Train(std::vector<train::LearnerStep> steps, const Make& make);

  const Subject& subject_;
  const event::Batch& records_;
  const Options options_;
  WorkerPool workers_{{.workers = 1}};
  const std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
  WorldStore store_;
  stream::Position position_;
};

}  // namespace tacit::tape
