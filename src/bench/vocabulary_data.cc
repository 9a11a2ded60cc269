#include "bench/vocabulary_data.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/hash.h"
#include "mechanism/clipper.h"
#include "mechanism/private_step.h"
#include "mechanism/row_selector.h"
#include "stream/steps/sum_blocks.h"

namespace tacit::bench {
namespace {

using Setting = VocabularySetting;

// Public random numbers, reproducible from the seed.
class PublicUniform {
 public:
  explicit PublicUniform(uint64_t seed)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {}
  // Returns a number in (0, 1).
  double Next() {
    const auto words = Philox(
        {static_cast<uint32_t>(count_), static_cast<uint32_t>(count_ >> 32), 0x766f6361, 0}, key_);
    ++count_;
    const uint64_t bits = uint64_t{words[0]} << 21 ^ words[1] >> 11;
    return (static_cast<double>(bits) + 0.5) * 0x1p-53;
  }

 private:
  const std::array<uint32_t, 2> key_;
  uint64_t count_ = 0;
};

// Draws a rank from 1, 2, ... `most` with probability in proportion to rank^-exponent, by rejection
// (Devroye 1986, X.6.1); ranks above `most` are drawn again.
uint64_t ZipfRank(double exponent, uint64_t most, PublicUniform& uniform) {
  const double b = std::exp2(exponent - 1);
  while (true) {
    const double x = std::floor(std::pow(uniform.Next(), -1 / (exponent - 1)));
    const double t = std::pow(1 + 1 / x, exponent - 1);
    const double v = uniform.Next();
    if (x <= static_cast<double>(most) && v * x * (t - 1) / (b - 1) <= t / b)
      return static_cast<uint64_t>(x);
  }
}

// Scatters ranks over the table, one to one: 2654435761 is a prime that divides no vocabulary.
uint64_t IdOfRank(uint64_t rank, uint64_t vocabulary) {
  return rank % vocabulary * (2654435761 % vocabulary) % vocabulary;
}

stream::StepBatch MakeStep(uint64_t vocabulary, uint64_t first_offset, PublicUniform& uniform) {
  stream::StepBatch step;
  event::Batch& batch = step.examples;
  batch.slots = 1;
  for (uint32_t i = 0; i < Setting::kBatch; ++i) {
    batch.offset.push_back(first_offset + i);
    batch.timestamp_ms.push_back(0);
    batch.row.push_back(
        IdOfRank(ZipfRank(Setting::kZipfExponent, vocabulary, uniform), vocabulary));
    batch.slot_end.push_back(i + 1);
    batch.label.push_back(uniform.Next() < 0.25 ? 1.0f : 0.0f);
    step.unit_of.push_back(i);
  }
  step.units = Setting::kBatch;
  step.sum_block_end = stream::BlocksByOffset(batch.offset, 1);
  step.ranges = {{0, first_offset, first_offset + Setting::kBatch}};
  return step;
}

}  // namespace

mechanism::SigmaSplit VocabularySigmas() {
  return mechanism::SplitSigma(Setting::kSigma, Setting::kSigmaRatio);
}

train::ClickOptions VocabularyLearner(uint64_t vocabulary) {
  train::ClickOptions options;
  options.id = "vocabulary";
  options.index = LearnerIndex(0);
  options.model.space.AddTable("id", vocabulary, Setting::kDim);
  options.model.hidden.clear();
  options.optimizer.kind = train::OptimizerNamed("sgd");
  options.optimizer.learning_rate = 0.1f;
  options.optimizer.row_learning_rate = 0.1f;
  return options;
}

std::unique_ptr<mechanism::Mechanism> VocabularyAdaFest(const RowSpace& space) {
  return mechanism::MakeAdaFest(space, {.sigma_selection = VocabularySigmas().selection,
                                        .sigma_gradient = VocabularySigmas().gradient,
                                        .clip_selection = Setting::kClipSelection,
                                        .clip_gradient = Setting::kClipGradient,
                                        .threshold = Setting::kThreshold,
                                        .expected_batch = Setting::kBatch});
}

std::unique_ptr<mechanism::Mechanism> VocabularyDense(const RowSpace& space) {
  return mechanism::MakePrivateStep(
      space, mechanism::MakeAllRows(),
      mechanism::MakeFlatClipper(Setting::kClipGradient, Setting::kSigma),
      {.sigma_gradient = Setting::kSigma, .expected_batch = Setting::kBatch});
}

std::vector<stream::StepBatch> VocabularySteps(uint64_t vocabulary, size_t count, uint64_t seed) {
  PublicUniform uniform(seed);
  std::vector<stream::StepBatch> steps;
  for (size_t s = 0; s < count; ++s)
    steps.push_back(MakeStep(vocabulary, s * Setting::kBatch, uniform));
  return steps;
}

std::vector<uint64_t> ZipfRows(double exponent, uint64_t vocabulary, size_t count, uint64_t seed) {
  PublicUniform uniform(seed);
  std::vector<uint64_t> rows(count);
  for (uint64_t& row : rows) row = IdOfRank(ZipfRank(exponent, vocabulary, uniform), vocabulary);
  return rows;
}

SelectionFigures MeasureSelection(const RowSpace& space,
                                  const std::vector<stream::StepBatch>& steps) {
  const auto mechanism = VocabularyAdaFest(space);
  const auto noise = noise::MakeNoiseSource();
  model::ActivationIndexer indexer;
  model::Activations activations;
  model::RowSelection selection;
  SelectionFigures figures;
  const double n = static_cast<double>(steps.size());
  for (const stream::StepBatch& step : steps) {
    const event::Batch& batch = step.examples;
    indexer.Index(batch.row, batch.slot_end, batch.slots, step.unit_of, step.units, &activations);
    mechanism->Select({.activations = activations}, *noise, &selection);
    uint64_t kept = 0;
    for (const uint32_t place : activations.slot_row) kept += selection.kept[place];
    figures.touched_rows += static_cast<double>(activations.rows.size()) / n;
    figures.kept_rows +=
        static_cast<double>(std::count(selection.kept.begin(), selection.kept.end(), 1)) / n;
    figures.kept_mass +=
        static_cast<double>(kept) / static_cast<double>(activations.slot_row.size()) / n;
    figures.extra_rows += static_cast<double>(selection.extra.size()) / n;
  }
  figures.extra_rows_expected = mechanism->ExpectedExtraRows();
  return figures;
}

}  // namespace tacit::bench
