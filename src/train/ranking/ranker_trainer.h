#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/worker_pool.h"
#include "mechanism/clipper.h"
#include "model/histories.h"
#include "model/ranking/candidates.h"
#include "noise/noise.h"
#include "privacy/charge.h"
#include "train/optimizer.h"

namespace tacit::train {

// How a ranker is learnt. All of it is public.
struct RankerTraining {
  uint64_t seed = 1;     // of its first parameters
  uint64_t steps = 200;  // each with every unit
  double sigma = 0;      // noise multiplier of a step; 0: an experiment without privacy
  size_t candidates = 100;
  // A unit is asked for so many of its last items, each given what came before it.
  size_t last_items = 6;
  double focus = 0.3;           // the loss's q
  double expected_units = 0;    // the public divisor
  double learning_rate = 0.03;  // rises over the first tenth of the steps, then falls to nothing
  double average_decay = 0.9;
};

// kInvalidArgument names what is out of its domain.
Status CheckOptions(const RankerTraining& options);

// Learns to put the candidates of a source in order. Each step is one Gaussian: every unit's
// gradient is brought to norm 1 and rounded to the grid, the sum gets integer noise on every number
// and is divided by the public divisor; what follows (Adam, a falling rate, a moving average of
// the parameters) is post-processing. The source is made of what was released before, so that
// release and steps compose as Gaussians do: mu^2 adds up.
//
// What units are asked is kept from step to step, a byte a number: last_items x candidates x
// kFeatures bytes a unit. One step after the other; not thread-safe, the work of a step is split
// over the workers.
class RankerTrainer {
 public:
  // REQUIRES CheckOptions(options), and histories of the source's catalogue. `noise` and `workers`
  // must outlive it.
  RankerTrainer(const RankerTraining& options, const model::Histories& histories,
                const model::ranking::CandidateSource& source, noise::NoiseSource& noise,
                WorkerPool& workers);
  ~RankerTrainer();

  const RankerTraining& options() const { return options_; }
  // What one step costs each unit; unbounded without noise.
  privacy::Charge charge() const;
  uint64_t steps_taken() const { return step_; }
  bool done() const { return step_ == options_.steps; }

  // To begin elsewhere. REQUIRES kRankerParameters numbers, before the first step.
  void SetInitial(std::vector<float> parameters);
  // REQUIRES a step that is left.
  void Step();
  std::span<const float> parameters() const { return parameters_; }
  // To order by: the moving average, once there was a step.
  std::vector<float> Average() const;

  // Of the latest step. Un-noised, private as the data: how many units had a question whose answer
  // was among its candidates, and the mean of their losses; the sum, in steps of the grid.
  struct Report {
    size_t units = 0;
    double loss = 0;
  };
  const Report& report() const { return report_; }
  std::span<const int64_t> sums() const { return sums_; }
  double grid_step() const;

 private:
  // An item that a unit is asked for, among its candidates.
  struct Question {
    std::vector<int8_t> rows;  // of the candidates, as Pack makes them
    size_t answer = 0;
  };
  struct Worker;
  void Ask(std::span<const uint32_t> history, const model::ranking::CandidateSource& source,
           model::ranking::Candidates* candidates, std::vector<Question>* questions) const;
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
