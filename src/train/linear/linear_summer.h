#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/score_histogram.h"
#include "mechanism/row_sums.h"
#include "mechanism/unit_vector.h"
#include "model/linear/predict.h"
#include "model/linear/state.h"
#include "stream/steps/participation.h"
#include "train/linear/linear_part.h"
#include "train/linear/linear_places.h"
#include "train/linear/linear_query.h"

namespace tacit::train {

// Predicts a linear learner's events and adds them up, against the model as it is. Several summers
// of one learner may work side by side, each on events of its own: their sums add up to the
// period's. Not thread-safe. Memory: that of its places and of open sums.
class LinearSummer {
 public:
  // Examples whose places stay in a core's cache: they are read at once.
  static constexpr size_t kAtOnce = 512;

  // The predictions of a step, a number for each example.
  struct Seen {
    std::span<float> logits, losses;
  };

  // The references must outlive the summer. `bins`: those that it counts predictions by; 0: a part
  // has no figures of predictions.
  LinearSummer(const LinearQuery& query, LinearRows& rows, uint32_t bins = 0);

  bool open() const { return sums_.has_value(); }
  // Begins to sum. REQUIRES sums of the query, without units, and that none are open.
  void Open(mechanism::RowSums sums);
  // Predicts examples [begin, end) of the step by `model`, and adds them to the open sums if `add`.
  // REQUIRES whole units if it adds.
  Status See(const stream::StepBatch& step, size_t begin, size_t end,
             const model::linear::State& model, bool add, const Seen& seen);
  // Returns the part since Open, whose sums are open no more. No value of a large column has a
  // place any more.
  LinearPart Close();
  // Drops the sums as if no event had come.
  void Abandon();

  LinearPlaces& places() { return places_; }
  // The open sums. REQUIRES that there are some.
  mechanism::RowSums& sums() { return *sums_; }

 private:
  void Predict(std::span<const float> labels, double bias, bool add, const Seen& seen);
  void AddEvents(const stream::StepBatch& step, size_t begin, size_t end);
  void AddUnit(const event::Batch& examples, size_t first, size_t begin, size_t end);
  void AddEvent(size_t example, float label, double weight);
  std::array<double, kLinearNumbers> NumbersOf(size_t example, float label) const;

  const LinearQuery& query_;
  LinearPlaces places_;
  std::optional<mechanism::RowSums> sums_;
  const std::optional<ScoreBins> bins_;
  PartFigures figures_;  // since Open

  // Working memory. Of the examples read last: what they add up to, and their residuals.
  std::vector<model::linear::Effect> effects_;
  std::vector<double> residuals_;
  mechanism::UnitVector unit_{0};
};

}  // namespace tacit::train
