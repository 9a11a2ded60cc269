#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mechanism/mechanism.h"
#include "mechanism/sigma_split.h"
#include "stream/steps/participation.h"
#include "train/click/click_learner.h"

namespace tacit::bench {

// The setting of paper 003's table 4: one embedding table of dimension 64, batch 1024. This struct
// fixes what the paper leaves open. The model is a logistic regression on the embedding (65 dense
// parameters, no hidden layer), so that a step is gather, forward, backward, selection, clipped
// sum, noise and update of rows, and little else.
//
// Ids follow Zipf's law with the same exponent at every size, scattered over the table; the
// threshold is the same too. One step costs what a Gaussian of sigma = (sigma1^-2 + sigma2^-2)^-1/2
// = 1 does, under dense DP-SGD as under AdaFEST.
struct VocabularySetting {
  static constexpr uint32_t kDim = 64;
  static constexpr uint32_t kBatch = 1024;
  static constexpr double kZipfExponent = 1.3;
  static constexpr double kSigma = 1;          // of a step
  static constexpr double kSigmaRatio = 2;     // sigma1 / sigma2
  static constexpr double kClipSelection = 1;  // C1; an event activates one row
  static constexpr double kClipGradient = 1;   // C2
  static constexpr double kThreshold = 12.5;   // tau
};

// Plain SGD, so that rows carry no state.
train::ClickOptions VocabularyLearner(uint64_t vocabulary);

mechanism::SigmaSplit VocabularySigmas();

// `space` must outlive them.
std::unique_ptr<mechanism::Mechanism> VocabularyAdaFest(const RowSpace& space);
std::unique_ptr<mechanism::Mechanism> VocabularyDense(const RowSpace& space);

// `count` full batches of distinct events. Different seeds give different events.
std::vector<stream::StepBatch> VocabularySteps(uint64_t vocabulary, size_t count, uint64_t seed);

// Rows of a table by Zipf's law, scattered as those are.
std::vector<uint64_t> ZipfRows(double exponent, uint64_t vocabulary, size_t count, uint64_t seed);

// The rows that AdaFEST keeps in these steps; averages over the steps.
struct SelectionFigures {
  double touched_rows = 0;         // distinct rows activated
  double kept_rows = 0;            // distinct rows activated and kept
  double kept_mass = 0;            // share of the activations that are of kept rows
  double extra_rows = 0;           // written without having been touched, as drawn
  double extra_rows_expected = 0;  // c * p0
};
SelectionFigures MeasureSelection(const RowSpace& space,
                                  const std::vector<stream::StepBatch>& steps);

}  // namespace tacit::bench
