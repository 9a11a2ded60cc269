#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/threads/worker_pool.h"
#include "base/tuned.h"
#include "mechanism/clipper.h"
#include "model/histories.h"
#include "model/ranking/candidates.h"
#include "noise/noise.h"
#include "privacy/charge.h"
#include "train/optimizer/optimizer.h"

namespace tacit::train {

// Public options of a ranker's training.
struct RankerTraining {
  uint64_t seed = 1;                     // for the initial parameters
  uint64_t steps = tuned::kRankerSteps;  // each takes every unit
  double sigma = 0;  // noise multiplier of a step; 0: an experiment without privacy
  size_t candidates = tuned::kRankerCandidates;
  // Each unit is asked for this many of its last items, each from the items before it.
  size_t last_items = tuned::kRankerLastItems;
  double focus = tuned::kRankerFocus;  // q of the loss
  double expected_units = 0;           // the public divisor
  // Rises over the first tenth of the steps, then falls to nothing.
  double learning_rate = tuned::kRankerLearningRate;
  double average_decay = 0.9;
};

// kInvalidArgument names what is out of its domain.
Status CheckOptions(const RankerTraining& options);

// Trains a ranker of a source's candidates. Each step is one Gaussian: every unit's gradient is
// scaled to norm 1 and rounded to the grid; the sum gets integer noise on every number and is
// divided by the public divisor. What follows (Adam, a falling rate, a moving average of the
// parameters) is post-processing. The source is made of earlier releases, so the source's release
// and the steps compose as Gaussians do: mu^2 adds up.
//
// The questions to each unit are kept from step to step, a byte a number: last_items x candidates x
// kFeatures bytes a unit. The work of a step is split over the workers. Not thread-safe.
class RankerTrainer {
 public:
  // REQUIRES CheckOptions(options), and histories of the source's catalogue. No unit is asked for
  // the first `known` items of its history (empty: none). `noise` and `workers` must outlive the
  // trainer.
  RankerTrainer(const RankerTraining& options, const model::Histories& histories,
                const model::ranking::CandidateSource& source, noise::NoiseSource& noise,
                WorkerPool& workers, std::span<const uint32_t> known = {});
  ~RankerTrainer();

  const RankerTraining& options() const { return options_; }
  // The cost of one step to each unit; unbounded without noise.
  privacy::Charge charge() const;
  uint64_t steps_taken() const { return step_; }
  bool done() const { return step_ == options_.steps; }

  // Replaces the initial parameters. REQUIRES kRankerParameters numbers, before the first step.
  void SetInitial(std::vector<float> parameters);
  // Takes one step. REQUIRES !done().
  void Step();
  std::span<const float> parameters() const { return parameters_; }
  // The parameters to rank with: the moving average, once there was a step.
  std::vector<float> Average() const;

  // Report of the latest step: the units that had a question whose answer was among its candidates,
  // and the mean of their losses. sums() is the latest sum, in steps of the grid. Un-noised, as
  // private as the data.
  struct Report {
    size_t units = 0;
    double loss = 0;
  };
  const Report& report() const { return report_; }
  std::span<const int64_t> sums() const { return sums_; }
  double grid_step() const;

 private:
  // An item that a unit is asked for, and its candidates.
  struct Question {
    std::vector<int8_t> rows;  // the candidates' features, from Pack
    size_t answer = 0;
  };
  struct Worker;
  void Ask(std::span<const uint32_t> history, size_t known,
           const model::ranking::CandidateSource& source, model::ranking::Candidates* candidates,
           std::vector<Question>* questions) const;
  void AddUnit(const std::vector<Question>& questions, Worker* worker) const;

  const RankerTraining options_;
  noise::NoiseSource& noise_;
  WorkerPool& pool_;
  const std::unique_ptr<mechanism::Clipper> clipper_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::vector<Question>> questions_;  // per unit
  std::vector<float> parameters_, state_, update_;
  std::vector<int64_t> sums_;
  uint64_t step_ = 0;
  Report report_;
};

}  // namespace tacit::train
